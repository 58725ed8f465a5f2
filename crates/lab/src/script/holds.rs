//! What may be asked of a request, by `when` and by `expect` alike.

use crate::request::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

/// Facts about a request. All that are given must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Holds {
    /// The model; `*` stands for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Texts that some string of `system` or `messages` holds, each.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    #[schemars(with = "OneOrMore")]
    pub contains: Vec<String>,
    /// Texts that no string of `system` or `messages` holds.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    #[schemars(with = "OneOrMore")]
    pub lacks: Vec<String>,
    /// Texts that some string of the user messages at the end holds, each.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    #[schemars(with = "OneOrMore")]
    pub last_contains: Vec<String>,
    /// Texts that no string of the user messages at the end holds.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    #[schemars(with = "OneOrMore")]
    pub last_lacks: Vec<String>,
    /// Calls, by id or by tool name, whose results are in the user messages at the end, each.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    #[schemars(with = "OneOrMore")]
    pub result_for: Vec<String>,
    /// Whether the results at the end (those of `result_for`, else all) are errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_is_error: Option<bool>,
    /// How many results the user messages at the end hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<usize>,
    /// How many messages there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Whether a stream was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streamed: Option<bool>,
    /// Tools that are offered, each.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    #[schemars(with = "OneOrMore")]
    pub tools: Vec<String>,
}

impl Holds {
    /// Returns what does not hold, in words; nothing when all holds.
    pub(crate) fn why_not(&self, request: &Request) -> Option<String> {
        self.about_the_whole(request)
            .or_else(|| self.about_texts(request))
            .or_else(|| self.about_results(request))
    }

    fn about_the_whole(&self, request: &Request) -> Option<String> {
        if let Some(want) = &self.model
            && !glob(want, request.model())
        {
            return Some(format!("model is `{}`, not `{want}`", request.model()));
        }
        if let Some(want) = self.streamed
            && want != request.is_streamed()
        {
            return Some(format!("stream is {}, not {want}", request.is_streamed()));
        }
        if let Some(want) = self.messages
            && want != request.messages().len()
        {
            return Some(format!("there are {} messages, not {want}", request.messages().len()));
        }
        if let Some(want) = self.max_tokens
            && want != request.max_tokens()
        {
            return Some(format!("max_tokens is {}, not {want}", request.max_tokens()));
        }
        let lacking = self.tools.iter().find(|name| !request.has_tool(name))?;
        Some(format!("no tool `{lacking}` is offered"))
    }

    fn about_texts(&self, request: &Request) -> Option<String> {
        if let Some(lacking) = self.contains.iter().find(|text| !request.contains(text)) {
            return Some(format!("the request does not contain {lacking:?}"));
        }
        if let Some(unwanted) = self.lacks.iter().find(|text| request.contains(text)) {
            return Some(format!("the request contains {unwanted:?}"));
        }
        if let Some(lacking) = self.last_contains.iter().find(|text| !request.last_contains(text)) {
            return Some(format!("the last message does not contain {lacking:?}"));
        }
        let unwanted = self.last_lacks.iter().find(|text| request.last_contains(text))?;
        Some(format!("the last message contains {unwanted:?}"))
    }

    fn about_results(&self, request: &Request) -> Option<String> {
        if self.result_for.is_empty() && self.result_is_error.is_none() && self.results.is_none() {
            return None;
        }
        let results = request.last_results();
        if let Some(want) = self.results
            && want != results.len()
        {
            return Some(format!("there are {} results, not {want}", results.len()));
        }
        if let Some(lacking) = self.result_for.iter().find(|call| !results.iter().any(|r| r.is_for(call))) {
            return Some(format!("there is no result for `{lacking}`"));
        }
        let want = self.result_is_error?;
        let meant = |id: &str, name: Option<&str>| {
            self.result_for.is_empty()
                || self.result_for.iter().any(|call| call == id || Some(call.as_str()) == name)
        };
        let wrong = results.iter().find(|r| meant(r.id, r.name) && r.is_error != want)?;
        Some(format!("is_error of the result for `{}` is {}, not {want}", wrong.id, wrong.is_error))
    }
}

/// The schema of a member that may be one text or a list of them.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

fn one_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    struct Visit;
    impl<'de> de::Visitor<'de> for Visit {
        type Value = Vec<String>;
        fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
            f.write_str("a text or a list of texts")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<String>, E> {
            Ok(vec![text.to_owned()])
        }
        fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Vec<String>, A::Error> {
            Vec::deserialize(de::value::SeqAccessDeserializer::new(seq))
        }
    }
    from.deserialize_any(Visit)
}

/// Whether `text` fits a pattern in which `*` stands for any text.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().expect("split yields at least one part");
    for part in parts {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, want) in [
            ("claude-a", "claude-a", true),
            ("claude-a", "claude-ab", false),
            ("claude-*", "claude-ab", true),
            ("*", "", true),
            ("*-b", "a-b", true),
            ("*-b", "a-c", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("ab*b", "ab", false),
        ] {
            assert_eq!(glob(pattern, text), want, "{pattern} {text}");
        }
    }
}
