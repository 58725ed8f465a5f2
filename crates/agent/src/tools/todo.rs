//! TodoWrite: the model's task list. Nothing outside the session changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use yaoki_core::effects::EffectClass;
use yaoki_core::json::RawJson;
use yaoki_core::step::RunStep;

use super::permission::Subject;
use super::{Done, Shaped, Shared, text};

const ITEMS_MAX: usize = 100;

pub(super) const DESCRIPTION: &str =
    "Keeps the list of tasks for the work at hand, replacing the list before.

- Use it for work of three steps or more; not for a single simple thing.
- Exactly one task is in_progress while you work; mark it completed as soon as it is.
- `content` says what to do, `activeForm` what is being done: \"Run the tests\", \"Running the tests\".";

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The whole list.
    #[schemars(length(max = 100))]
    todos: Vec<Todo>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Todo {
    #[schemars(length(min = 1))]
    content: String,
    status: Status,
    #[schemars(length(min = 1))]
    active_form: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

pub(super) fn shape(_shared: &Shared, input: Input) -> Shaped {
    debug_assert!(input.todos.len() <= ITEMS_MAX, "the schema bounds the list");
    let title = text::title("TodoWrite", &format!("{} tasks", input.todos.len()));
    Shaped::new(EffectClass::Pure, title, &input, Subject::Session)
}

pub(super) fn run(shared: &Shared, step: &RunStep, _stop: &CancellationToken) -> Result<Done, String> {
    let input: Input = shared.input(step)?;
    let active = input.todos.iter().filter(|todo| todo.status == Status::InProgress).count();
    let open = input.todos.iter().any(|todo| todo.status != Status::Completed);
    let hint = match (open, active) {
        (true, 0) => " No task is in progress; mark the one you work on.",
        (_, 2..) => " More than one task is in progress; work on one at a time.",
        _ => "",
    };
    let mut done = Done::ok(format!("The task list has been updated.{hint}"));
    done.post = Some(RawJson::of(&input.todos));
    Ok(done)
}
