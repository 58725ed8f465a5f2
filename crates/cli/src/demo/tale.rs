//! The story as a user would see it: the agent's lines, told under numbered headings.
//!
//! Promises: what is told comes from the agent's own lines; a heading is printed by what happens, not by a clock.
//! Deliberately not here: whether it all came out right (`checks`).

use std::collections::VecDeque;
use std::io::{self, Write};

use serde_json::Value;

use crate::render::plain::{clip, one_line};
use crate::render::style::{Look, Style};

/// Characters of one told line, and lines of one result.
const LINE_CHARS_MAX: usize = 100;
const RESULT_LINES_MAX: usize = 3;

/// What opens the next heading.
type Opens = fn(&Value) -> bool;

/// The headings, in the order in which they must come.
const ACTS: [(&str, Opens); 8] = [
    ("The service is overloaded, twice", |line| is_retry(line) && line["error_status"] == 529),
    ("The model names a parameter wrong", |line| calls(line, "path", "sum.sh")),
    ("The file is not there", |line| calls(line, "file_path", "src/sum.sh")),
    ("The command fails", |line| calls(line, "command", "test.sh")),
    ("An edit mends it", |line| calls(line, "new_string", "")),
    ("A deploy, which cannot be taken back", |line| calls(line, "command", "deploy.sh")),
    ("The stream is cut, right after that", |line| text(line, "subtype") == "yaoki_withdrawn"),
    ("The agent is killed while a command runs", |line| calls(line, "command", "smoke.sh")),
];

/// What was told so far, to be checked and counted.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Told {
    pub session: Option<String>,
    /// Waits before a retry after a 529, and after a cut, in milliseconds.
    pub waits_busy_ms: Vec<u64>,
    pub waits_cut_ms: Vec<u64>,
    /// Headings that came, with those that the demo itself printed.
    pub acts: usize,
    /// The last `result` line of the last process.
    pub result: Value,
}

/// Tells the story to `out`.
pub struct Tale<W> {
    out: W,
    look: Look,
    to_come: VecDeque<(&'static str, Opens)>,
    /// What the model said before a call that may open a heading.
    unsaid: String,
    pub told: Told,
}

impl<W: Write> Tale<W> {
    pub fn new(out: W, look: Look) -> Self {
        Self { out, look, to_come: ACTS.into(), unsaid: String::new(), told: Told::default() }
    }

    /// Prints a numbered heading.
    pub fn act(&mut self, title: &str) -> io::Result<()> {
        self.told.acts += 1;
        let number = format!("{:>2}", self.told.acts);
        let heading =
            format!("{}  {}", self.look.paint(Style::DIM, &number), self.look.paint(Style::BOLD, title));
        writeln!(self.out, "\n{heading}")
    }

    /// Prints a line of the demo's own.
    pub fn aside(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "    {}", self.look.paint(Style::DIM, text))
    }

    /// Prints a fault that the demo made.
    pub fn fault(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "    {}", self.look.paint(Style::BAD, &format!("✗ {text}")))
    }

    /// Prints as it is.
    pub fn plain(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    pub fn paint(&self, style: Style, text: &str) -> String {
        self.look.paint(style, text)
    }

    /// The agent's lines are told to their end, headings or not.
    pub fn is_whole(&self) -> bool {
        self.to_come.is_empty()
    }

    /// Tells one line of the agent's.
    pub fn line(&mut self, line: &Value) -> io::Result<()> {
        if let Some((title, _)) = self.to_come.front().filter(|(_, opens)| opens(line)) {
            let title = *title;
            self.to_come.pop_front();
            self.act(title)?;
        }
        if text(line, "type") != "assistant" {
            self.say_unsaid()?;
        }
        match (text(line, "type"), text(line, "subtype")) {
            ("system", "init") => self.opened(line),
            ("system", "api_retry") => self.retry(line),
            ("system", "yaoki_withdrawn") => {
                let chars = line["shown_chars"].as_u64().unwrap_or_default();
                self.fault(&format!(
                    "the answer broke off behind a whole call: {chars} characters are withdrawn, nothing is run"
                ))
            }
            ("system", "yaoki_recovery" | "yaoki_notice") => self.aside(&one_line(text(line, "text"))),
            // The message that tells a failure; the result tells it again.
            ("assistant", _) if line["is_api_error_message"] == true => Ok(()),
            ("assistant", _) => self.blocks(line, Self::said),
            ("user", _) => self.blocks(line, Self::result),
            ("result", _) => self.ended(line),
            _ => Ok(()),
        }
    }

    fn opened(&mut self, line: &Value) -> io::Result<()> {
        let session = text(line, "session_id").to_owned();
        self.told.session.get_or_insert_with(|| session.clone());
        self.aside(&format!("session {session}, model {}", text(line, "model")))
    }

    fn retry(&mut self, line: &Value) -> io::Result<()> {
        let wait_ms = line["retry_delay_ms"].as_f64().map_or(0, |ms| ms as u64);
        if line["error_status"] == 529 {
            self.told.waits_busy_ms.push(wait_ms);
            self.fault("529 overloaded")?;
        } else {
            self.told.waits_cut_ms.push(wait_ms);
        }
        let count = format!("attempt {}/{}", line["attempt"], line["max_retries"]);
        let notice = format!("    Retrying in {:.1}s · {count}", wait_ms as f64 / 1000.0);
        writeln!(self.out, "{}", self.look.paint(Style::WARN, &notice))
    }

    fn blocks(&mut self, line: &Value, tell: fn(&mut Self, &Value) -> io::Result<()>) -> io::Result<()> {
        for block in line["message"]["content"].as_array().into_iter().flatten() {
            tell(self, block)?;
        }
        Ok(())
    }

    fn said(&mut self, block: &Value) -> io::Result<()> {
        match text(block, "type") {
            "text" => {
                self.say_unsaid()?;
                self.unsaid = one_line(text(block, "text"));
                Ok(())
            }
            "tool_use" => {
                self.say_unsaid()?;
                let title = title(block);
                writeln!(
                    self.out,
                    "    {} {}",
                    self.look.paint(Style::CODE, "●"),
                    self.look.paint(Style::BOLD, &title)
                )
            }
            _ => Ok(()),
        }
    }

    fn result(&mut self, block: &Value) -> io::Result<()> {
        if text(block, "type") != "tool_result" {
            return Ok(());
        }
        let said = match &block["content"] {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts.iter().map(|part| text(part, "text")).collect::<Vec<_>>().join("\n"),
            _ => String::new(),
        };
        let is_error = block["is_error"] == true;
        let (mark, style) = if is_error { ("✘", Style::BAD) } else { ("✓", Style::GOOD) };
        let said = said.replace("<tool_use_error>", "").replace("</tool_use_error>", "");
        let mut marked = self.look.paint(style, mark);
        for told in said.lines().filter(|line| !line.trim().is_empty()).take(RESULT_LINES_MAX) {
            let shown = self.look.paint(Style::DIM, &clip(&one_line(told), LINE_CHARS_MAX));
            writeln!(self.out, "      {marked} {shown}")?;
            marked = " ".to_owned();
        }
        Ok(())
    }

    fn say_unsaid(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.unsaid).as_str() {
            "" => Ok(()),
            said => writeln!(self.out, "    {said}"),
        }
    }

    fn ended(&mut self, line: &Value) -> io::Result<()> {
        self.told.result = line.clone();
        if line["is_error"] == true {
            self.fault(&clip(&one_line(text(line, "result")), LINE_CHARS_MAX))?;
        }
        Ok(())
    }
}

fn is_retry(line: &Value) -> bool {
    text(line, "subtype") == "api_retry"
}

/// Whether the line carries a call with such an input.
fn calls(line: &Value, key: &str, ending: &str) -> bool {
    let blocks = line["message"]["content"].as_array().into_iter().flatten();
    let mut inputs = blocks.filter(|block| block["type"] == "tool_use").map(|block| &block["input"][key]);
    inputs.any(|value| value.as_str().is_some_and(|value| value.ends_with(ending)))
}

/// A call as one short line: its name, and the part of its input that says the most.
fn title(block: &Value) -> String {
    let input = &block["input"];
    let file = |path: &str| path.rsplit_once("/project/").map_or(path, |(_, below)| below).to_owned();
    let most = [("command", ""), ("file_path", ""), ("path", "path: ")]
        .iter()
        .find_map(|(key, before)| Some(format!("{before}{}", file(input[key].as_str()?))));
    clip(&one_line(&format!("{}({})", text(block, "name"), most.unwrap_or_default())), LINE_CHARS_MAX)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(lines: &[Value]) -> (String, Told) {
        let mut out = Vec::new();
        let mut tale = Tale::new(&mut out, Look::PLAIN);
        for line in lines {
            tale.line(line).unwrap();
        }
        let told = tale.told.clone();
        (String::from_utf8(out).unwrap(), told)
    }

    fn said() -> Value {
        json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": "So." }] } })
    }

    fn call(name: &str, input: Value) -> Value {
        let block = json!({ "type": "tool_use", "name": name, "input": input });
        json!({ "type": "assistant", "message": { "content": [block] } })
    }

    #[test]
    fn headings_come_with_what_happens_and_in_order() {
        let busy = json!({ "type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10,
            "retry_delay_ms": 512.0, "error_status": 529, "error": "overloaded" });
        let failed = json!({ "type": "user", "message": { "content": [
            { "type": "tool_result", "is_error": true, "content": "no\n\u{1b}[31m such parameter" },
        ] } });
        let (text, told) = told(&[
            json!({ "type": "system", "subtype": "init", "session_id": "s1", "model": "m" }),
            busy.clone(),
            busy,
            said(),
            call("Read", json!({ "path": "/x/project/sum.sh" })),
            failed,
        ]);
        let want = "    session s1, model m

 1  The service is overloaded, twice
    ✗ 529 overloaded
    Retrying in 0.5s · attempt 1/10
    ✗ 529 overloaded
    Retrying in 0.5s · attempt 1/10

 2  The model names a parameter wrong
    So.
    ● Read(path: sum.sh)
      ✘ no
        ^[[31m such parameter
";
        assert_eq!(text, want);
        assert_eq!((told.session.as_deref(), told.waits_busy_ms, told.acts), (Some("s1"), vec![512, 512], 2));
    }

    #[test]
    fn a_heading_whose_turn_has_not_come_is_not_printed() {
        let (text, told) = told(&[said(), call("Bash", json!({ "command": "sh deploy.sh" }))]);
        assert_eq!((text.as_str(), told.acts), ("    So.\n    ● Bash(sh deploy.sh)\n", 0));
    }
}
