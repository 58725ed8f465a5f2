//! Input schemas from Rust types, and the check of a model's input against them.
//!
//! Knows the subset that our own tools use: objects, arrays, plain types, enums, ranges and lengths. Every
//! violation is found at once, so that a model can mend all of them in one go.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The JSON Schema of an input type, without what only schema tools read.
pub(super) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    schema
}

fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for noise in ["$schema", "title", "format"] {
                if map.get(noise).is_some_and(Value::is_string) {
                    map.shift_remove(noise);
                }
            }
            if map.get("default").is_some_and(Value::is_null) {
                map.shift_remove("default");
            }
            leave_out_null(map);
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// An optional member is one that may be missing; `null` in its place is dropped before the check.
fn leave_out_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(allowed)) = map.get_mut("enum") {
        allowed.retain(|one| !one.is_null());
    }
    if let Some(Value::Array(forms)) = map.get_mut("anyOf") {
        forms.retain(|form| form.get("type").is_none_or(|name| name != "null"));
        if let [Value::Object(only)] = forms.as_slice() {
            let only = only.clone();
            map.shift_remove("anyOf");
            map.extend(only);
        }
    }
}

/// Removes `null` where a member may be missing.
pub(super) fn drop_nulls(schema: &Value, value: &mut Value) {
    let Some(members) = value.as_object_mut() else { return };
    members.retain(|name, member| !member.is_null() || is_required(schema, name));
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name))
}

/// Finds everything in `value` that does not fit `schema`, one line each; empty if it fits.
pub(super) fn violations(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, value, "", &mut found);
    found
}

fn check(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(expected) = schema["type"].as_str()
        && !is_of_type(value, expected)
    {
        let provided = type_name(value);
        found.push(format!(
            "The parameter `{at}` type is expected as `{expected}` but provided as `{provided}`"
        ));
        return;
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(|one| format!("`{}`", plain(one))).collect();
        found.push(format!(
            "The parameter `{at}` must be one of {} but is `{}`",
            allowed.join(", "),
            plain(value)
        ));
    }
    match value {
        Value::Object(members) => check_object(schema, members, at, found),
        Value::Array(items) => {
            check_length(schema, "minItems", "maxItems", items.len(), "items", at, found);
            for (i, item) in items.iter().enumerate() {
                check(&schema["items"], item, &format!("{at}[{i}]"), found);
            }
        }
        Value::String(text) => {
            let length = text.chars().count();
            check_length(schema, "minLength", "maxLength", length, "characters", at, found);
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            if schema["minimum"].as_f64().is_some_and(|least| number < least) {
                found.push(format!("The parameter `{at}` must be at least {}", schema["minimum"]));
            }
            if schema["maximum"].as_f64().is_some_and(|most| number > most) {
                found.push(format!("The parameter `{at}` must be at most {}", schema["maximum"]));
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn check_object(schema: &Value, members: &Map<String, Value>, at: &str, found: &mut Vec<String>) {
    let place = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            found.push(format!("The required parameter `{}` is missing", place(name)));
        }
    }
    let known = schema["properties"].as_object();
    for (name, member) in members {
        match known.and_then(|known| known.get(name)) {
            Some(expected) => check(expected, member, &place(name), found),
            None if schema["additionalProperties"] == false => {
                found.push(format!("An unexpected parameter `{}` was provided", place(name)));
            }
            None => {}
        }
    }
}

fn check_length(
    schema: &Value,
    least: &str,
    most: &str,
    length: usize,
    of: &str,
    at: &str,
    found: &mut Vec<String>,
) {
    let length = length as u64;
    if schema[least].as_u64().is_some_and(|least| length < least) {
        let complaint =
            if length == 0 { "must not be empty".to_owned() } else { format!("has too few {of}") };
        found.push(format!("The parameter `{at}` {complaint}"));
    }
    if let Some(most) = schema[most].as_u64().filter(|&most| length > most) {
        found.push(format!("The parameter `{at}` has {length} {of}, at most {most} are allowed"));
    }
}

fn is_of_type(value: &Value, expected: &str) -> bool {
    match expected {
        // 3.0 is a whole number too, to JSON Schema.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => type_name(value) == other,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    /// An input with one of everything.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Sample {
        /// Where.
        #[schemars(length(min = 1))]
        file_path: String,
        #[schemars(range(max = 600_000))]
        timeout: Option<u64>,
        mode: Option<Mode>,
        #[serde(default)]
        all: bool,
        #[serde(default)]
        items: Vec<Item>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        Fast,
        Slow,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Item {
        content: String,
    }

    #[test]
    fn a_schema_says_what_a_model_needs_and_no_more() {
        assert_eq!(
            of::<Sample>(),
            json!({
                "description": "An input with one of everything.",
                "type": "object",
                "properties": {
                    "file_path": {"description": "Where.", "type": "string", "minLength": 1},
                    "timeout": {"type": "integer", "minimum": 0, "maximum": 600_000},
                    "mode": {"type": "string", "enum": ["fast", "slow"]},
                    "all": {"type": "boolean", "default": false},
                    "items": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"content": {"type": "string"}},
                            "additionalProperties": false,
                            "required": ["content"]
                        }
                    }
                },
                "additionalProperties": false,
                "required": ["file_path"]
            })
        );
    }

    #[test]
    fn every_violation_is_named_at_once() {
        let schema = of::<Sample>();
        for (input, want) in [
            (json!({"file_path": "a"}), vec![]),
            (json!({"file_path": "a", "timeout": 3.0, "mode": "slow", "items": [{"content": "x"}]}), vec![]),
            (
                json!({"path": "a"}),
                vec![
                    "The required parameter `file_path` is missing",
                    "An unexpected parameter `path` was provided",
                ],
            ),
            (
                json!({"file_path": 7, "timeout": "9", "mode": "warp", "all": 1, "items": [{}, {"content": []}]}),
                vec![
                    "The parameter `file_path` type is expected as `string` but provided as `number`",
                    "The parameter `timeout` type is expected as `integer` but provided as `string`",
                    "The parameter `mode` must be one of `fast`, `slow` but is `warp`",
                    "The parameter `all` type is expected as `boolean` but provided as `number`",
                    "The required parameter `items[0].content` is missing",
                    "The parameter `items[1].content` type is expected as `string` but provided as `array`",
                ],
            ),
            (
                json!({"file_path": "", "timeout": 600_001}),
                vec![
                    "The parameter `file_path` must not be empty",
                    "The parameter `timeout` must be at most 600000",
                ],
            ),
            (json!({"file_path": "a", "timeout": -1}), vec!["The parameter `timeout` must be at least 0"]),
            (
                json!({"file_path": "a", "timeout": 1.5}),
                vec!["The parameter `timeout` type is expected as `integer` but provided as `number`"],
            ),
        ] {
            assert_eq!(violations(&schema, &input), want, "{input}");
        }
    }

    #[test]
    fn null_is_the_same_as_missing_where_a_member_may_be_missing() {
        let schema = of::<Sample>();
        let mut input = json!({"file_path": null, "timeout": null});
        drop_nulls(&schema, &mut input);
        assert_eq!(input, json!({"file_path": null}));
    }
}
