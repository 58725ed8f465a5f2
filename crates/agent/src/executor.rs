//! The port through which tools are performed.
//!
//! The turn machine decides when; an executor performs and never decides whether. Every call ends in a
//! report, also when it is cancelled, panics or loses its process. Compiles without the standard tools, so
//! that a simulation can stand in for them.

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use yaoki_core::ids::OpId;
use yaoki_core::json::RawJson;
use yaoki_core::message::Call;
use yaoki_core::request::ToolSpec;
use yaoki_core::step::{Finding, PrepareVerdict, RunReport, RunStep};

/// Tells onlookers what a running call does; lines or pieces of output, never a decision.
pub type Progress<'a> = &'a (dyn Fn(String) + Send + Sync);

/// Performs tools.
pub trait Executor: Send + Sync {
    /// What a model is told of the tools, in a stable order.
    fn specs(&self) -> Vec<ToolSpec>;

    /// Shapes and judges a call: schema, rules, class, facts. Has no effect.
    fn prepare<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, PrepareVerdict>;

    /// Has the effect. Cancelling means: stop, kill, reap, settle, and still report.
    fn run<'a>(
        &'a self,
        run: &'a RunStep,
        progress: Progress<'a>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, RunReport>;

    /// Looks at what became of an operation that an earlier process started. With `wait` it attaches until
    /// the operation ends; without, one that still runs is reported as detached.
    fn look<'a>(
        &'a self,
        run: &'a RunStep,
        wait: bool,
        progress: Progress<'a>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Finding>;

    /// The outcome of `op` is durable: what was kept for it may go. Safe to repeat.
    fn forget(&self, op: OpId);

    /// A session was opened: what was kept for operations that are settled may go.
    fn sweep(&self, _is_settled: &dyn Fn(OpId) -> bool) {}

    /// A settled outcome of an earlier process, in log order: what it says of files counts as seen.
    fn recall(&self, _tool: &str, _post: &RawJson) {}
}
