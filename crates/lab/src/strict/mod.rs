//! Whether a request is one that the real API would take, and the refusal in its words when it is not.

mod head;

pub(crate) use head::{Route, body, fits, route};

use crate::script::Script;
use crate::trouble::Trouble;
use serde_json::Value;

/// What the lab may send that the API's block types do not name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub raw: Vec<Value>,
}

impl Known {
    pub fn of(_script: &Script) -> Self {
        Self::default()
    }
}

pub(crate) fn check(_body: &Value, _route: &Route, _script: &Script, _known: &Known) -> Result<(), Trouble> {
    Ok(())
}
