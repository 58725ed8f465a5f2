//! The tools that are offered: names and input schemas.

use super::Check;
use super::blocks::is_name;
use crate::trouble::Trouble;
use serde_json::Value;
use std::collections::HashSet;

/// Checks the `tools` member.
pub(super) fn check(tools: &Value) -> Check {
    let tools = match tools {
        Value::Null => return Ok(()),
        Value::Array(tools) => tools,
        _ => return Err(Trouble::invalid("tools: Input should be a valid list")),
    };
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        if !names.insert(&tool["name"]) {
            return Err(Trouble::invalid("tools: Tool names must be unique.").at(format!("tools.{index}")));
        }
        // The service's own tools have a type with a date and no schema.
        if matches!(tool["type"].as_str(), None | Some("custom")) {
            custom(&format!("tools.{index}.custom"), tool)?;
        }
    }
    Ok(())
}

fn custom(path: &str, tool: &Value) -> Check {
    let Some(name) = tool["name"].as_str() else {
        return Err(Trouble::invalid(format!("{path}.name: Field required")));
    };
    if !is_name(name, NAME_CHARS_MAX) {
        return Err(Trouble::invalid(format!(
            "{path}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,{NAME_CHARS_MAX}}}$'"
        )));
    }
    if !matches!(tool["description"], Value::Null | Value::String(_)) {
        return Err(Trouble::invalid(format!("{path}.description: Input should be a valid string")));
    }
    if let Some(extra) =
        tool.as_object().into_iter().flatten().find(|(name, _)| !MEMBERS.contains(&name.as_str()))
    {
        return Err(Trouble::invalid(format!("{path}.{}: Extra inputs are not permitted", extra.0)));
    }
    let schema = &tool["input_schema"];
    if schema.is_null() {
        return Err(Trouble::invalid(format!("{path}.input_schema: Field required")));
    }
    let path = format!("{path}.input_schema");
    match &schema["type"] {
        Value::Null => return Err(Trouble::invalid(format!("{path}.type: Field required"))),
        Value::String(kind) if kind == "object" => {}
        _ => return Err(Trouble::invalid(format!("{path}.type: Input should be 'object'"))),
    }
    if ["oneOf", "allOf", "anyOf"].iter().any(|word| schema.get(word).is_some()) {
        return Err(Trouble::invalid(format!(
            "{path}: input_schema does not support oneOf, allOf, or anyOf at the top level"
        )));
    }
    let properties = schema["properties"].as_object();
    if properties.is_some_and(|all| all.keys().any(|key| !is_property(key))) {
        return Err(Trouble::invalid(format!(
            "{path}.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'"
        )));
    }
    match is_schema(schema) {
        true => Ok(()),
        false => Err(Trouble::invalid(format!(
            "{path}: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12)."
        ))),
    }
}

fn is_property(key: &str) -> bool {
    (1..=64).contains(&key.len())
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// Whether a value is a JSON Schema, as far as the keywords that tools use go.
fn is_schema(schema: &Value) -> bool {
    let Some(words) = schema.as_object() else { return schema.is_boolean() };
    words.iter().all(|(word, value)| match word.as_str() {
        "type" => match value {
            Value::Array(all) => all.iter().all(is_type),
            one => is_type(one),
        },
        "properties" | "$defs" | "definitions" | "patternProperties" => {
            value.as_object().is_some_and(|all| all.values().all(is_schema))
        }
        "items" | "additionalProperties" | "not" | "contains" | "propertyNames" => is_schema(value),
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
            value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_schema))
        }
        "required" => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
        "enum" | "examples" => value.is_array(),
        "description" | "title" | "format" | "pattern" | "$schema" | "$ref" => value.is_string(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => value.is_number(),
        "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties" => {
            value.is_u64()
        }
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
        _ => true,
    })
}

fn is_type(value: &Value) -> bool {
    let types = ["object", "array", "string", "number", "integer", "boolean", "null"];
    value.as_str().is_some_and(|name| types.contains(&name))
}

const NAME_CHARS_MAX: usize = 128;
const MEMBERS: [&str; 10] = [
    "type",
    "name",
    "description",
    "input_schema",
    "cache_control",
    "strict",
    "eager_input_streaming",
    "defer_loading",
    "allowed_callers",
    "input_examples",
];
