//! The tools: one row each, in the order in which a model is told of them.

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use yaoki_core::step::{Finding, RunReport, RunStep};

use super::{Done, Shaped, Shared, bash, change, edit, glob, grep, read, schema, tasks, todo, write};
use crate::executor::Progress;

/// One tool.
pub struct Tool {
    pub name: &'static str,
    pub description: &'static str,
    /// The JSON Schema of its input.
    pub schema: fn() -> Value,
    /// Final input, class and subject of a valid input. Looks at nothing but the input.
    pub(super) shape: Shape,
    /// Preconditions, and the facts for the intent. Changes nothing.
    pub(super) save: Option<Save>,
    pub(super) run: Run,
    /// How an operation that an earlier process started is settled; none where it may simply run again.
    pub(super) look: Option<Look>,
}

pub(super) type Shape = fn(&Shared, Value) -> Result<Shaped, String>;
pub(super) type Save = fn(&Shared, Value) -> Result<Value, String>;

/// The effect. An error is a failure of the call: nothing was done.
pub(super) enum Run {
    /// On a thread where it may wait for the disk.
    Blocking(fn(&Shared, &RunStep, &CancellationToken) -> Result<Done, String>),
    Async(for<'a> fn(&'a Shared, &'a RunStep, Progress<'a>, CancellationToken) -> BoxFuture<'a, RunReport>),
}

pub(super) enum Look {
    File,
    Command,
}

impl Look {
    pub(super) fn go<'a>(
        &self,
        shared: &'a Shared,
        run: &'a RunStep,
        wait: bool,
        progress: Progress<'a>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Finding> {
        match self {
            Look::File => Box::pin(async move { change::look(shared, run) }),
            Look::Command => Box::pin(bash::look(shared, run, wait, progress, cancel)),
        }
    }
}

fn shaped<T: DeserializeOwned>(
    shared: &Shared,
    input: Value,
    shape: fn(&Shared, T) -> Shaped,
) -> Result<Shaped, String> {
    typed(input).map(|input| shape(shared, input))
}

fn saved<T: DeserializeOwned, F: Serialize>(
    shared: &Shared,
    input: Value,
    save: fn(&Shared, &T) -> Result<F, String>,
) -> Result<Value, String> {
    let facts = save(shared, &typed(input)?)?;
    serde_json::to_value(facts).map_err(|error| format!("Error: the facts cannot be recorded: {error}"))
}

fn typed<T: DeserializeOwned>(input: Value) -> Result<T, String> {
    serde_json::from_value(input).map_err(|error| format!("InputValidationError: {error}"))
}

/// The standard tools.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "Read",
        description: read::DESCRIPTION,
        schema: schema::of::<read::Input>,
        shape: |shared, input| shaped(shared, input, read::shape),
        save: None,
        run: Run::Blocking(read::run),
        look: None,
    },
    Tool {
        name: "Write",
        description: write::DESCRIPTION,
        schema: schema::of::<write::Input>,
        shape: |shared, input| shaped(shared, input, write::shape),
        save: Some(|shared, input| saved(shared, input, write::save)),
        run: Run::Blocking(write::run),
        look: Some(Look::File),
    },
    Tool {
        name: "Edit",
        description: edit::DESCRIPTION,
        schema: schema::of::<edit::Input>,
        shape: |shared, input| shaped(shared, input, edit::shape),
        save: Some(|shared, input| saved(shared, input, edit::save)),
        run: Run::Blocking(edit::run),
        look: Some(Look::File),
    },
    Tool {
        name: "Bash",
        description: bash::DESCRIPTION,
        schema: schema::of::<bash::Input>,
        shape: |shared, input| shaped(shared, input, bash::shape),
        save: Some(|shared, input| saved(shared, input, bash::save)),
        run: Run::Async(|shared, step, progress, cancel| Box::pin(bash::run(shared, step, progress, cancel))),
        look: Some(Look::Command),
    },
    Tool {
        name: "BashOutput",
        description: tasks::OUTPUT_DESCRIPTION,
        schema: schema::of::<tasks::Input>,
        shape: |shared, input| shaped(shared, input, tasks::shape_output),
        save: None,
        run: Run::Blocking(tasks::run_output),
        look: None,
    },
    Tool {
        name: "KillShell",
        description: tasks::KILL_DESCRIPTION,
        schema: schema::of::<tasks::KillInput>,
        shape: |shared, input| shaped(shared, input, tasks::shape_kill),
        save: None,
        run: Run::Async(|shared, step, _, cancel| Box::pin(tasks::run_kill(shared, step, cancel))),
        look: None,
    },
    Tool {
        name: "Grep",
        description: grep::DESCRIPTION,
        schema: schema::of::<grep::Input>,
        shape: |shared, input| shaped(shared, input, grep::shape),
        save: None,
        run: Run::Blocking(grep::run),
        look: None,
    },
    Tool {
        name: "Glob",
        description: glob::DESCRIPTION,
        schema: schema::of::<glob::Input>,
        shape: |shared, input| shaped(shared, input, glob::shape),
        save: None,
        run: Run::Blocking(glob::run),
        look: None,
    },
    Tool {
        name: "TodoWrite",
        description: todo::DESCRIPTION,
        schema: schema::of::<todo::Input>,
        shape: |shared, input| shaped(shared, input, todo::shape),
        save: None,
        run: Run::Blocking(todo::run),
        look: None,
    },
];

pub(super) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}
