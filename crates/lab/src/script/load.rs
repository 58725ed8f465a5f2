//! Reading a script, with errors that say where.

use super::{AtEnd, Chunk, Fault, Place, Repeat, Script, Step};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A script that cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}{}: {message}", in_step(.step))]
pub struct ScriptError {
    pub line: usize,
    pub column: usize,
    /// Counted from 1, where the trouble is inside a step.
    pub step: Option<usize>,
    pub message: String,
}

fn in_step(step: &Option<usize>) -> String {
    step.map(|n| format!(", step {n}")).unwrap_or_default()
}

impl Script {
    /// Reads a script.
    ///
    /// Errors: [`ScriptError`] for JSON that is broken, a member that is unknown or of the wrong type, and a step
    /// that says nothing, contradicts itself or can never be reached.
    pub fn parse(json: &str) -> Result<Script, ScriptError> {
        let script: Script = serde_json::from_str(json).map_err(|e| not_a_script(json, &e))?;
        match script.trouble() {
            None => Ok(script),
            Some((step, message)) => {
                let at = step.and_then(|n| step_spans(json).get(n).copied()).map_or(0, |(start, _)| start);
                let (line, column) = line_and_column(json, at);
                Err(ScriptError { line, column, step: step.map(|n| n + 1), message })
            }
        }
    }

    /// Returns what makes the script unplayable, and the index of the step it is in.
    pub(crate) fn trouble(&self) -> Option<(Option<usize>, String)> {
        if self.steps.is_empty() && !matches!(self.at_end, AtEnd::Answer(_)) {
            return Some((None, "the script has no steps".into()));
        }
        if let Some(message) = chunk_trouble(self.defaults.deliver.chunk) {
            return Some((None, format!("`defaults`: {message}")));
        }
        let mut wall = None;
        for (index, step) in self.steps.iter().enumerate() {
            if let Some(wall) = wall {
                return Some((
                    Some(index),
                    format!("never reached: step {wall} repeats always and has no `when`"),
                ));
            }
            if let Some(message) = step_trouble(step) {
                return Some((Some(index), message));
            }
            if step.repeat == Repeat::Always && step.when.is_none() {
                wall = Some(index + 1);
            }
        }
        None
    }
}

fn step_trouble(step: &Step) -> Option<String> {
    if let Some(message) = step.deliver.as_ref().and_then(|d| chunk_trouble(d.chunk)) {
        return Some(message);
    }
    match (&step.answer, &step.fault) {
        (None, None) => Some("a step needs an `answer` or a `fault`".into()),
        (None, Some(fault)) if fault.has_answer() => {
            Some(format!("the fault `{}` happens to an answer, and the step has no `answer`", fault.name()))
        }
        (Some(_), Some(fault)) if !fault.has_answer() => Some(format!(
            "the fault `{}` stands instead of an answer, and the step has an `answer`",
            fault.name()
        )),
        (_, Some(fault)) => fault_trouble(fault),
        (Some(_), None) => None,
    }
}

fn fault_trouble(fault: &Fault) -> Option<String> {
    match fault {
        Fault::Drip { bytes: 0, .. } => Some("`bytes` must be at least 1".into()),
        Fault::Duplicate { at: Place::Byte(_) }
        | Fault::Drop { at: Place::Byte(_) }
        | Fault::Garbage { at: Place::Byte(_), .. }
        | Fault::Unknown { at: Place::Byte(_), .. }
        | Fault::Error { at: Place::Byte(_), .. } => {
            Some(format!("the fault `{}` happens between events; `byte` is no such place", fault.name()))
        }
        Fault::Duplicate { at: Place::Event(0) } => Some("there is no event before `event` 0".into()),
        _ => None,
    }
}

fn chunk_trouble(chunk: Option<Chunk>) -> Option<String> {
    match chunk {
        Some(Chunk::Bytes(0) | Chunk::Random { max: 0, .. }) => Some("a chunk has at least 1 byte".into()),
        _ => None,
    }
}

fn not_a_script(json: &str, error: &serde_json::Error) -> ScriptError {
    let at = offset(json, error.line(), error.column());
    let step = step_spans(json).iter().position(|(start, end)| (*start..*end).contains(&at));
    let whole = error.to_string();
    // serde_json ends its messages with the place, which this error already tells.
    let message = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(before, _)| before).to_owned();
    ScriptError { line: error.line(), column: error.column(), step: step.map(|n| n + 1), message }
}

/// Returns the byte range of each step; empty when the text is not JSON.
fn step_spans(json: &str) -> Vec<(usize, usize)> {
    #[derive(Deserialize)]
    struct Outer<'a> {
        #[serde(borrow, default)]
        steps: Vec<&'a RawValue>,
    }
    let Ok(outer) = serde_json::from_str::<Outer>(json) else { return Vec::new() };
    let base = json.as_ptr() as usize;
    let span = |raw: &&RawValue| {
        let start = raw.get().as_ptr() as usize - base;
        (start, start + raw.get().len())
    };
    outer.steps.iter().map(span).collect()
}

fn offset(json: &str, line: usize, column: usize) -> usize {
    let before: usize = json.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    before + column.saturating_sub(1)
}

fn line_and_column(json: &str, at: usize) -> (usize, usize) {
    let before = &json.as_bytes()[..at];
    let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
    (before.iter().filter(|b| **b == b'\n').count() + 1, at - line_start + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, want: &str) {
        let got = Script::parse(json).map(|_| "no error".to_owned()).unwrap_or_else(|e| e.to_string());
        assert_eq!(got, want, "{json}");
    }

    #[test]
    fn an_error_names_line_column_and_step() {
        check("{\"steps\": [{\"answer\": \"hi\"}]}", "no error");
        check(
            "{\n \"steps\": [\n  {\"answer\": \"hi\"},\n  {\"anwser\": \"hi\"}\n ]}",
            "line 4, column 11, step 2: unknown field `anwser`, expected one of `label`, `note`, `when`, `expect`, `answer`, `fault`, `deliver`, `repeat`",
        );
        check("{\"steps\": []}", "line 1, column 1: the script has no steps");
        check(
            "{\"steps\": [{\"answer\": \"hi\"},\n{\"label\": \"x\"}]}",
            "line 2, column 1, step 2: a step needs an `answer` or a `fault`",
        );
        check("{\"steps\": [", "line 1, column 11: EOF while parsing a list");
    }

    #[test]
    fn a_step_that_contradicts_itself_is_refused() {
        for (step, want) in [
            (
                r#"{"fault": {"cut": {"at": "in_text"}}}"#,
                "the fault `cut` happens to an answer, and the step has no `answer`",
            ),
            (
                r#"{"answer": "x", "fault": {"status": 529}}"#,
                "the fault `status` stands instead of an answer, and the step has an `answer`",
            ),
            (
                r#"{"answer": "x", "fault": {"garbage": {"at": {"byte": 3}}}}"#,
                "the fault `garbage` happens between events; `byte` is no such place",
            ),
            (r#"{"answer": "x", "deliver": {"chunk": {"bytes": 0}}}"#, "a chunk has at least 1 byte"),
        ] {
            check(&format!("{{\"steps\": [{step}]}}"), &format!("line 1, column 12, step 1: {want}"));
        }
    }

    #[test]
    fn nothing_unknown_is_read_over() {
        for (step, want) in [
            (
                r#"{"answer": "x", "fault": {"cut": {"at": "in_text", "hwo": "fin"}}}"#,
                "unknown field `hwo`, expected `at` or `how`",
            ),
            (
                r#"{"fault": {"status": {"code": 529, "mesage": "x"}}}"#,
                "unknown field `mesage`, expected one of `code`, `type`, `message`, `details`, `retry_after`, `headers`, `body`",
            ),
            (
                r#"{"answer": {"blocks": [], "cost": 1}}"#,
                "unknown field `cost`, expected one of `blocks`, `stop_reason`, `stop_sequence`, `stop_details`, `usage`, `model`, `id`",
            ),
            (
                r#"{"answer": [{"txt": "x"}]}"#,
                "unknown variant `txt`, expected one of `text`, `repeated`, `thinking`, `redacted`, `tool`, `server_tool`, `raw`",
            ),
            (
                r#"{"answer": "x", "when": {"has": "y"}}"#,
                "unknown field `has`, expected one of `model`, `contains`, `lacks`, `last_contains`, `last_lacks`, `result_for`, `result_is_error`, `results`, `messages`, `max_tokens`, `streamed`, `tools`",
            ),
            (
                r#"{"fault": {"status": 42}}"#,
                "invalid value: integer `42`, expected a status from 200 to 599, or an object with `code`",
            ),
            (
                r#"{"answer": "x", "repeat": 0}"#,
                "invalid value: integer `0`, expected a number from 1 or \"always\"",
            ),
        ] {
            let error =
                Script::parse(&format!("{{\"steps\": [{{\"answer\": \"first\"}},\n{step}]}}")).unwrap_err();
            assert_eq!((error.line, error.step, error.message.as_str()), (2, Some(2), want), "{step}");
        }
    }

    #[test]
    fn a_text_stands_for_a_list_of_one() {
        let one = Script::parse(r#"{"steps": [{"answer": "x", "when": {"contains": "a"}}]}"#).unwrap();
        assert_eq!(
            one,
            Script::parse(r#"{"steps": [{"answer": "x", "when": {"contains": ["a"]}}]}"#).unwrap()
        );
    }

    #[test]
    fn a_step_behind_a_wall_is_refused() {
        let wall = r#"{"steps": [{"answer": "a", "repeat": "always"}, {"answer": "b"}]}"#;
        check(wall, "line 1, column 49, step 2: never reached: step 1 repeats always and has no `when`");
        check(&wall.replace("\"always\"", "\"always\", \"when\": {\"model\": \"m\"}"), "no error");
    }

    #[test]
    fn a_script_survives_writing_and_reading() {
        let json = r#"{"steps": [
            {"answer": [{"text": "a"}, {"tool": {"name": "Read", "input": {"file_path": "x"}}}], "repeat": 2},
            {"fault": {"status": {"code": 429, "retry_after": {"date_in_s": 3}}}, "repeat": "always", "when": {"model": "m*"}},
            {"answer": "b", "fault": {"cut": {"at": {"byte": 7}, "how": "rst"}}}
        ], "at_end": "repeat_last"}"#;
        let script = Script::parse(json).unwrap();
        let again = Script::parse(&serde_json::to_string(&script).unwrap()).unwrap();
        assert_eq!(script, again);
    }
}
