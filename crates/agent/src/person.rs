//! The person port: who answers when a call needs permission.

use futures_util::future::BoxFuture;
use yaoki_core::ids::OpId;
use yaoki_core::json::RawJson;
pub use yaoki_core::step::Answer;

/// A call that waits for a person. Its intent is durable already.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub op: OpId,
    pub tool: String,
    /// `Bash(cargo test)`
    pub title: String,
    pub input: RawJson,
}

/// Answers questions. A dropped future means the question is withdrawn.
pub trait Person: Send + Sync {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer>;
}

/// Nobody is there: everything that would be asked is denied, with the reason.
pub struct Nobody;

impl Person for Nobody {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            Answer::Nobody {
                reason: format!(
                    "{} needs permission and nobody is there to ask. Allow it with a rule in settings \
                     (permissions.allow) or run with --dangerously-skip-permissions.",
                    question.tool
                ),
            }
        })
    }
}
