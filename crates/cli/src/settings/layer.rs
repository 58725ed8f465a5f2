//! One settings file: read, checked against the table, and taken apart into values.
//!
//! Promises: a wrong value is named with file, line, column and key; an unknown key or one that a project may
//! not set is a warning, and is left out; a file is never written.
//! Deliberately not here: which files there are and which one wins (`settings`).

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::table::{Kind, Project, SETTINGS, Setting, nearest};
use crate::exit::CliError;

/// What one source says. Keys are the names of the table.
#[derive(Debug, Default, PartialEq)]
pub struct Layer {
    /// Where it is from, as people are told.
    pub from: String,
    pub values: BTreeMap<&'static str, Value>,
    pub warnings: Vec<String>,
}

/// Whose word a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The person's own.
    User,
    /// It came with the project.
    Project,
}

/// Takes a settings text apart.
///
/// Errors: a text that is not a JSON object, or a known key with a value that it cannot have.
pub fn parse(text: &str, from: &str, trust: Trust) -> Result<Layer, CliError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { text, layer: Layer { from: from.to_owned(), ..Layer::default() }, trust };
    let root = serde_json::from_str::<&RawValue>(text).map_err(|error| reader.syntax(&error))?;
    reader.object(root, "")?;
    Ok(reader.layer)
}

struct Reader<'a> {
    text: &'a str,
    layer: Layer,
    trust: Trust,
}

impl<'a> Reader<'a> {
    /// Walks one object; `prefix` is empty or ends with a dot.
    fn object(&mut self, raw: &'a RawValue, prefix: &str) -> Result<(), CliError> {
        let Ok(members) = serde_json::from_str::<BTreeMap<String, &'a RawValue>>(raw.get()) else {
            let what = match prefix {
                "" if self.layer.from == "--settings" => "it",
                "" => "the file",
                prefix => prefix.trim_end_matches('.'),
            };
            let hint = "write it in braces, such as {\"model\": \"…\"}";
            return Err(self.wrong(raw, format_args!("{what} must be a JSON object"), hint));
        };
        for (key, raw) in members {
            let name = format!("{prefix}{key}");
            if let Some(setting) = super::table::setting(&name) {
                self.value(setting, raw)?;
            } else if SETTINGS.iter().any(|setting| setting.name.starts_with(&format!("{name}."))) {
                self.object(raw, &format!("{name}."))?;
            } else if name != "$schema" {
                self.unknown(&name);
            }
        }
        Ok(())
    }

    fn value(&mut self, setting: &'static Setting, raw: &'a RawValue) -> Result<(), CliError> {
        let value: Value = serde_json::from_str(raw.get()).expect("a raw value is JSON");
        if !setting.kind.takes(&value) {
            let shown = crate::render::plain::clip(raw.get(), 60);
            let message =
                format_args!("{} must be {}, not {shown}", setting.name, setting.kind.words()).to_string();
            return Err(self.wrong(raw, message, "correct the value, or remove the key"));
        }
        if self.trust == Trust::Project && !may_come_from_project(setting, &value) {
            self.layer.warnings.push(format!(
                "{}: {} is not taken from a project, which may be somebody else's; set it in your own settings",
                self.layer.from, setting.name
            ));
            return Ok(());
        }
        self.layer.values.insert(setting.name, value);
        Ok(())
    }

    fn unknown(&mut self, name: &str) {
        let hint = match nearest(name, SETTINGS.iter().map(|setting| setting.name)) {
            Some(near) => format!("; did you mean {near}?"),
            None => "; it is ignored".to_owned(),
        };
        let shown = crate::render::plain::one_line(&crate::render::plain::clip(name, 80));
        self.layer.warnings.push(format!("{}: unknown key {shown}{hint}", self.layer.from));
    }

    fn wrong(&self, raw: &RawValue, message: impl std::fmt::Display, hint: &str) -> CliError {
        // A raw value borrows from the text, so its address tells where it stands.
        let offset = (raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let (line, column) = position(self.text, offset);
        CliError::config(format_args!("{}:{line}:{column}: {message}", self.layer.from), hint)
    }

    fn syntax(&self, error: &serde_json::Error) -> CliError {
        let (line, column) = (error.line(), error.column());
        let words = error.to_string();
        let words = words.split(" at line ").next().unwrap_or(&words);
        let key = last_key(self.text, line, column).map(|key| format!(" at key {key}")).unwrap_or_default();
        CliError::config(
            format_args!("{}:{line}:{column}: not JSON{key}: {words}", self.layer.from),
            "correct it there (JSON has no comments and no comma before a closing bracket)",
        )
    }
}

fn may_come_from_project(setting: &Setting, value: &Value) -> bool {
    match setting.project {
        Project::Any => true,
        Project::Only(values) => value.as_str().is_some_and(|text| values.contains(&text)),
        Project::Never => false,
    }
}

/// Returns line and column, both from 1, columns in characters.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[start..].chars().count() + 1)
}

/// Returns the last key that stands before a place, for a file that is not JSON.
fn last_key(text: &str, line: usize, column: usize) -> Option<String> {
    let line_start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let end = (line_start + column).min(text.len());
    let bytes = &text.as_bytes()[..end];
    let (mut at, mut key) = (0, None);
    while at < bytes.len() {
        if bytes[at] != b'"' {
            at += 1;
            continue;
        }
        let start = at + 1;
        at = start;
        while at < bytes.len() && bytes[at] != b'"' {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        let after = bytes.get(at + 1..).unwrap_or_default();
        if after.trim_ascii_start().first() == Some(&b':') {
            key = text.get(start..at).map(|key| crate::render::plain::clip(key, 60));
        }
        at += 1;
    }
    key
}

/// Checks a value that a flag or the environment gives, as a file's would be.
pub fn read_text(setting: &'static Setting, text: &str, from: &str) -> Result<Value, CliError> {
    setting.kind.read(text.trim()).ok_or_else(|| {
        let shown = crate::render::plain::clip(text, 60);
        let example = match setting.kind {
            Kind::Count { .. } => "set it to a number, or unset it",
            Kind::Text
            | Kind::Bool
            | Kind::Choice(_)
            | Kind::ChoiceOrCount(..)
            | Kind::Texts
            | Kind::TextMap => "correct it, or unset it",
        };
        CliError::config(format_args!("{from} must be {}, not {shown:?}", setting.kind.words()), example)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(text: &str) -> String {
        let error = parse(text, "s.json", Trust::User).unwrap_err();
        assert_eq!(error.kind.code(), 2);
        error.to_string()
    }

    #[test]
    fn known_keys_are_taken_and_nested_ones_get_dotted_names() {
        let text = r#"{"$schema":"x","model":"m","maxTurns":3,"permissions":{"allow":["Edit"],"defaultMode":"plan"}}"#;
        let layer = parse(text, "s.json", Trust::User).unwrap();
        assert_eq!(layer.warnings, Vec::<String>::new());
        assert_eq!(
            layer.values,
            BTreeMap::from([
                ("maxTurns", json!(3)),
                ("model", json!("m")),
                ("permissions.allow", json!(["Edit"])),
                ("permissions.defaultMode", json!("plan")),
            ])
        );
    }

    #[test]
    fn an_unknown_key_is_a_warning_with_file_key_and_neighbour() {
        let layer =
            parse(r#"{"modle":1,"permissions":{"allows":[]},"q\u001b":1}"#, "s.json", Trust::User).unwrap();
        assert_eq!(
            layer.warnings,
            [
                "s.json: unknown key modle; did you mean model?",
                "s.json: unknown key permissions.allows; did you mean permissions.allow?",
                "s.json: unknown key q^[; it is ignored",
            ]
        );
        assert_eq!(layer.values, BTreeMap::new());
    }

    #[test]
    fn a_wrong_value_is_one_line_with_file_line_column_key_and_what_to_do() {
        for (text, want) in [
            (
                "{\n  \"model\": \"m\",\n  \"maxTurns\": \"ten\"\n}",
                "s.json:3:15: maxTurns must be a whole number of at least 1, not \"ten\"; correct the value, or remove the key",
            ),
            (
                r#"{"permissions": {"allow": "Edit"}}"#,
                "s.json:1:27: permissions.allow must be a list of texts, not \"Edit\"; correct the value, or remove the key",
            ),
            (
                r#"{"permissions": 3}"#,
                "s.json:1:17: permissions must be a JSON object; write it in braces, such as {\"model\": \"…\"}",
            ),
            (
                "[1]",
                "s.json:1:1: the file must be a JSON object; write it in braces, such as {\"model\": \"…\"}",
            ),
            (
                "{\n \"model\": \"m\",\n \"maxTurns\": ten\n}",
                "s.json:3:15: not JSON at key maxTurns: expected ident; correct it there (JSON has no comments and no comma before a closing bracket)",
            ),
            (
                "",
                "s.json:1:0: not JSON: EOF while parsing a value; correct it there (JSON has no comments and no comma before a closing bracket)",
            ),
            (
                "{\"a\\\"b\": 1,}",
                "s.json:1:12: not JSON at key a\\\"b: key must be a string; correct it there (JSON has no comments and no comma before a closing bracket)",
            ),
        ] {
            assert_eq!(wrong(text), want);
        }
    }

    #[test]
    fn a_project_may_restrict_but_not_grant_or_redirect() {
        let text = r#"{"model":"m","baseUrl":"http://evil","env":{"A":"b"},
            "permissions":{"allow":["Bash"],"deny":["Read(.env)"],"defaultMode":"bypassPermissions"}}"#;
        let layer = parse(text, ".yaoki/settings.json", Trust::Project).unwrap();
        let names: Vec<&str> = layer.values.keys().copied().collect();
        assert_eq!(names, ["model", "permissions.deny"]);
        let refused: Vec<&str> = layer.warnings.iter().map(|w| w.split(' ').nth(1).unwrap()).collect();
        assert_eq!(refused, ["baseUrl", "env", "permissions.allow", "permissions.defaultMode"]);
        let plan = r#"{"permissions":{"defaultMode":"plan"}}"#;
        assert_eq!(parse(plan, "p", Trust::Project).unwrap().warnings, Vec::<String>::new());
    }

    #[test]
    fn a_byte_order_mark_is_no_fault() {
        assert!(parse("\u{feff}{}", "s.json", Trust::User).is_ok());
    }
}
