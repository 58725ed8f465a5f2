//! What the model is shown: a request built from the state, and from nothing else.
//!
//! Equal state gives an equal request, which is why an attempt can be repeated byte for byte and why a resumed
//! session asks exactly what the one before would have asked.

use std::sync::Arc;

use crate::fault::Feature;
use crate::request::{Context, Request, Thinking, ToolChoice};
use crate::state::State;

/// Builds the request that the open turn asks next.
pub fn request(state: &State) -> Request {
    let open = state.turn.as_ref().and_then(|turn| turn.request.as_ref());
    let is_unstreamed =
        open.is_some_and(|request| request.unstreamed_next) || state.is_dropped(Feature::Streaming);
    let thinking = if state.is_dropped(Feature::Thinking) { Thinking::Off } else { state.thinking };
    Request {
        model: state.model_asked().to_owned(),
        context: state
            .context
            .clone()
            .unwrap_or_else(|| Arc::new(Context { system: Vec::new(), tools: Vec::new() })),
        messages: state.graph.active(),
        max_tokens: open.and_then(|request| request.max_tokens).unwrap_or(state.max_tokens),
        thinking,
        tool_choice: ToolChoice::Auto,
        streamed: !is_unstreamed,
        cached: !state.is_dropped(Feature::CacheControl),
        signed: !state.is_dropped(Feature::SignedThinking),
    }
}
