//! The models endpoints.

use crate::script::{ModelRow, Script};
use serde_json::{Value, json};

/// Returns the page that lists the models.
pub(crate) fn models(script: &Script) -> Value {
    let rows = rows(script);
    let data: Vec<Value> = rows.iter().map(to_model).collect();
    let (first, last) = (rows.first().map(|m| &m.id), rows.last().map(|m| &m.id));
    json!({ "data": data, "has_more": false, "first_id": first, "last_id": last })
}

/// Returns one model; any model when the script names none.
pub(crate) fn model(script: &Script, id: &str) -> Option<Value> {
    if script.models.is_empty() {
        return Some(to_model(&ModelRow::of(id)));
    }
    script.models.iter().find(|row| row.id == id).map(to_model)
}

fn rows(script: &Script) -> Vec<ModelRow> {
    match (&script.models[..], &script.defaults.model) {
        ([], model) => vec![ModelRow::of(model.as_deref().unwrap_or("claude-lab-1"))],
        (rows, _) => rows.to_vec(),
    }
}

fn to_model(row: &ModelRow) -> Value {
    json!({
        "type": "model", "id": row.id, "display_name": row.id, "created_at": "2026-01-01T00:00:00Z",
        "max_input_tokens": row.max_input_tokens, "max_tokens": row.max_tokens,
    })
}
