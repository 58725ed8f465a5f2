//! The conversation: what was said, in order, and which leaf is active.
//!
//! A call and its result are one thing here: an assistant message owns a place for each result, so there can be no
//! result without a call, nor two. A message enters when it is complete; what is still being heard is not in here.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::{CallId, MessageId};
use crate::message::{Block, BlockBody, CallResult, Origin, Part, ViewMessage, ViewResult};

/// All messages of a session, on every branch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MessageGraph {
    nodes: BTreeMap<MessageId, Node>,
    leaf: Option<MessageId>,
    /// Which message a call stands in, and which place of it.
    calls: BTreeMap<CallId, (MessageId, usize)>,
}

#[derive(Debug, Clone, PartialEq)]
struct Node {
    parent: Option<MessageId>,
    said: Arc<ViewMessage>,
    /// Places for results, in call order; empty for messages without calls.
    results: Vec<ResultPlace>,
    /// How many of them are empty.
    missing: usize,
    /// The results as the model reads them; present once all places are filled.
    answered: Option<Arc<ViewMessage>>,
}

#[derive(Debug, Clone, PartialEq)]
struct ResultPlace {
    call: CallId,
    provider_id: String,
    result: Option<CallResult>,
}

impl MessageGraph {
    /// Appends a person's message after the active leaf.
    pub fn append_user(&mut self, id: MessageId, parts: Vec<Part>) {
        let said = ViewMessage::User { id: id.clone(), parts };
        self.append(id, said, Vec::new());
    }

    /// Appends a complete message of the model. Its calls must have their ids.
    pub fn append_assistant(&mut self, id: MessageId, origin: Origin, blocks: Vec<Block>) {
        let results: Vec<ResultPlace> = blocks
            .iter()
            .filter_map(|block| match &block.body {
                BlockBody::Call(call) => Some(ResultPlace {
                    call: call.id.clone(),
                    provider_id: call.provider_id.clone(),
                    result: None,
                }),
                BlockBody::Text { .. }
                | BlockBody::Thinking { .. }
                | BlockBody::Media(_)
                | BlockBody::Other { .. } => None,
            })
            .collect();
        for (index, place) in results.iter().enumerate() {
            self.calls.insert(place.call.clone(), (id.clone(), index));
        }
        self.append(id.clone(), ViewMessage::Assistant { id, origin, blocks }, results);
    }

    fn append(&mut self, id: MessageId, said: ViewMessage, results: Vec<ResultPlace>) {
        let missing = results.len();
        let node = Node { parent: self.leaf.take(), said: Arc::new(said), results, missing, answered: None };
        self.nodes.insert(id.clone(), node);
        self.leaf = Some(id);
    }

    /// Puts a call's result in its place. The first one stays: a late second report changes nothing.
    ///
    /// Returns whether the place was there and empty.
    pub fn settle(&mut self, call: &CallId, result: CallResult) -> bool {
        let Some((message, index)) = self.calls.get(call) else { return false };
        let Some(node) = self.nodes.get_mut(message) else { return false };
        let Some(place) = node.results.get_mut(*index) else { return false };
        if place.result.is_some() && !crate::mutant!("graph-second-result-wins") {
            return false;
        }
        if place.result.is_none() {
            node.missing -= 1;
        }
        place.result = Some(result);
        if node.missing == 0 {
            node.answered = Some(Arc::new(node.results_as_read()));
        }
        true
    }

    /// Moves the active leaf back. Nothing is removed.
    pub fn move_to(&mut self, leaf: Option<MessageId>) {
        self.leaf = leaf.filter(|id| self.nodes.contains_key(id));
    }

    pub fn leaf(&self) -> Option<&MessageId> {
        self.leaf.as_ref()
    }

    pub fn has_result(&self, call: &CallId) -> bool {
        self.result(call).is_some()
    }

    /// What a call came to, once it did.
    pub fn result(&self, call: &CallId) -> Option<&CallResult> {
        let (message, index) = self.calls.get(call)?;
        self.nodes.get(message)?.results.get(*index)?.result.as_ref()
    }

    /// What the model is shown: the active branch, oldest first.
    ///
    /// The turn machine settles all calls before it asks on. A result that is missing behind the leaf went with a
    /// damaged part of the log; its place says so, because a call without a result would make every request fail.
    pub fn active(&self) -> Vec<Arc<ViewMessage>> {
        let mut branch = Vec::new();
        let mut at = self.leaf.as_ref();
        while let Some(node) = at.and_then(|id| self.nodes.get(id)) {
            match &node.answered {
                Some(answered) => branch.push(Arc::clone(answered)),
                None if node.missing > 0 && !branch.is_empty() => {
                    branch.push(Arc::new(node.results_as_read()));
                }
                None => {}
            }
            branch.push(node.said.clone());
            at = node.parent.as_ref();
        }
        branch.reverse();
        branch
    }
}

impl Node {
    fn results_as_read(&self) -> ViewMessage {
        let mut results: Vec<ViewResult> = self.results.iter().map(ResultPlace::to_view).collect();
        if crate::mutant!("graph-results-swapped") && results.len() > 1 {
            let first = results[0].result.clone();
            results[0].result = std::mem::replace(&mut results[1].result, first);
        }
        ViewMessage::Results { id: MessageId::new(format!("{}.results", self.said.id())), results }
    }
}

impl ResultPlace {
    fn to_view(&self) -> ViewResult {
        ViewResult {
            call: self.call.clone(),
            provider_id: self.provider_id.clone(),
            result: self
                .result
                .clone()
                .unwrap_or_else(|| CallResult::error("[no result was recorded for this call]")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::RawJson;
    use crate::message::Call;

    fn call(id: &str) -> Block {
        let call = Call {
            id: CallId::new(id),
            provider_id: format!("toolu_{id}"),
            tool: "Read".into(),
            input: RawJson::empty_object(),
            broken: None,
        };
        Block { body: BlockBody::Call(call), raw: None }
    }

    fn origin() -> Origin {
        Origin { format: "anthropic".into(), endpoint: "http://x".into(), model: "m".into() }
    }

    fn ids(graph: &MessageGraph) -> Vec<String> {
        graph.active().iter().map(|message| message.id().to_string()).collect()
    }

    #[test]
    fn results_appear_in_call_order_when_the_last_one_is_in() {
        let mut graph = MessageGraph::default();
        graph.append_user(MessageId::new("u"), vec![Part::text("go")]);
        graph.append_assistant(MessageId::new("a"), origin(), vec![call("1"), call("2")]);
        assert!(graph.settle(&CallId::new("2"), CallResult::ok("two")));
        assert_eq!(ids(&graph), ["u", "a"]);
        assert!(graph.settle(&CallId::new("1"), CallResult::ok("one")));
        assert_eq!(ids(&graph), ["u", "a", "a.results"]);
        let last = graph.active().pop().unwrap();
        let ViewMessage::Results { results, .. } = &*last else { panic!("{last:?}") };
        let texts: Vec<String> = results.iter().map(|one| one.result.text()).collect();
        assert_eq!(texts, ["one", "two"]);
    }

    #[test]
    fn a_second_result_for_one_call_changes_nothing() {
        let mut graph = MessageGraph::default();
        graph.append_assistant(MessageId::new("a"), origin(), vec![call("1")]);
        assert!(graph.settle(&CallId::new("1"), CallResult::ok("first")));
        let before = graph.clone();
        assert!(!graph.settle(&CallId::new("1"), CallResult::ok("second")));
        assert!(!graph.settle(&CallId::new("nobody"), CallResult::ok("?")));
        assert_eq!(graph, before);
    }

    #[test]
    fn a_result_that_was_lost_with_the_log_has_a_place_that_says_so() {
        let mut graph = MessageGraph::default();
        graph.append_assistant(MessageId::new("a"), origin(), vec![call("1"), call("2")]);
        graph.settle(&CallId::new("2"), CallResult::ok("two"));
        assert_eq!(ids(&graph), ["a"]);
        graph.append_user(MessageId::new("u"), vec![Part::text("go")]);
        assert_eq!(ids(&graph), ["a", "a.results", "u"]);
        let ViewMessage::Results { results, .. } = &*graph.active()[1] else { panic!("results") };
        let texts: Vec<String> = results.iter().map(|one| one.result.text()).collect();
        assert_eq!(texts, ["[no result was recorded for this call]", "two"]);
    }

    #[test]
    fn moving_back_hides_a_branch_and_removes_nothing() {
        let mut graph = MessageGraph::default();
        graph.append_user(MessageId::new("u"), vec![Part::text("one")]);
        graph.append_user(MessageId::new("v"), vec![Part::text("two")]);
        graph.move_to(Some(MessageId::new("u")));
        graph.append_user(MessageId::new("w"), vec![Part::text("three")]);
        assert_eq!(ids(&graph), ["u", "w"]);
        graph.move_to(Some(MessageId::new("v")));
        assert_eq!(ids(&graph), ["u", "v"]);
    }
}
