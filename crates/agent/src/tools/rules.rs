//! One permission rule: `Bash`, `Bash(git push:*)`, `Edit(src/**)`, `Read(//etc/**)`.
//!
//! A rule on `Edit` holds for every tool that changes files, one on `Read` for every tool that reads them.
//! Paths are globs against the working folder; `//x` is absolute. `cmd:*` is a prefix of whole words.

use std::fmt;
use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use super::commands;
use super::permission::Subject;
use super::table::TOOLS;

const EDITORS: [&str; 2] = ["Edit", "Write"];
const READERS: [&str; 3] = ["Read", "Grep", "Glob"];
/// Below this likeness a name is no neighbour of another.
const LIKENESS_MIN: f32 = 0.6;
/// Claude Code's tools that are not here: its settings and clients may name them, and they never run anyway.
const ELSEWHERE: [&str; 22] = [
    "Agent",
    "AskUserQuestion",
    "CronCreate",
    "CronDelete",
    "CronList",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "LS",
    "LSP",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "Skill",
    "SlashCommand",
    "Task",
    "TaskOutput",
    "TaskStop",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
];

#[derive(Debug, thiserror::Error)]
#[error("the permission rule {rule:?} {why}")]
pub struct RuleError {
    rule: String,
    why: String,
}

#[derive(Debug, Clone)]
pub(super) struct Rule {
    text: String,
    tool: String,
    scope: Scope,
}

#[derive(Debug, Clone)]
enum Scope {
    All,
    /// This command, or with `is_prefix` this and anything behind it.
    Command {
        text: String,
        is_prefix: bool,
    },
    Path {
        written: GlobMatcher,
        /// With the links followed that stand before its first wildcard.
        real: GlobMatcher,
    },
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Rule {
    /// Reads a rule that must hold: one on a tool that does not exist would deny nothing.
    pub(super) fn parse_strict(text: &str, cwd: &Path) -> Result<Self, RuleError> {
        match unknown_tool(text) {
            Some(why) => Err(RuleError { rule: text.to_owned(), why }),
            None => Self::parse(text, cwd),
        }
    }

    pub(super) fn parse(text: &str, cwd: &Path) -> Result<Self, RuleError> {
        let wrong = |why: &str| RuleError { rule: text.to_owned(), why: why.to_owned() };
        let text = text.trim();
        let (tool, scope) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => {
                (tool, Some(rest.strip_suffix(')').ok_or_else(|| wrong("lacks its closing bracket"))?))
            }
        };
        if tool.is_empty() || !tool.chars().all(is_of_name) {
            return Err(wrong("does not begin with the name of a tool"));
        }
        let scope = match scope {
            None | Some("" | "*") => Scope::All,
            Some(command) if tool == "Bash" => command_scope(command),
            Some(path) => path_scope(path, cwd).map_err(|error| wrong(&error.to_string()))?,
        };
        Ok(Self { text: text.to_owned(), tool: tool.to_owned(), scope })
    }

    fn is_about(&self, tool: &str) -> bool {
        let same_kind = |kind: &[&str], lead: &str| self.tool == lead && kind.contains(&tool);
        self.tool == tool || same_kind(&EDITORS, "Edit") || same_kind(&READERS, "Read")
    }

    /// Whether it holds for everything the tool could do.
    pub(super) fn covers_all(&self, tool: &str) -> bool {
        self.is_about(tool) && matches!(self.scope, Scope::All)
    }

    /// Whether it holds for this simple command.
    pub(super) fn covers_command(&self, tool: &str, command: &str) -> bool {
        self.is_about(tool)
            && match &self.scope {
                Scope::All => true,
                Scope::Command { text, is_prefix } => matches_command(text, *is_prefix, command),
                Scope::Path { .. } => false,
            }
    }

    /// Whether it names this very command line.
    pub(super) fn is_line(&self, tool: &str, line: &str) -> bool {
        let is_named = matches!(&self.scope, Scope::Command { text, is_prefix: false } if text == line);
        is_named && self.is_about(tool)
    }

    /// Whether it holds for all of what the call does. For a path it is where it leads that counts: a link is made
    /// sooner than a rule.
    pub(super) fn covers(&self, tool: &str, subject: &Subject) -> bool {
        match (subject, &self.scope) {
            (Subject::Command(_), _) => self.covers_all(tool),
            (Subject::Session, _) => self.is_about(tool),
            (Subject::Reads(_) | Subject::Edits(_), Scope::All) => self.is_about(tool),
            (Subject::Reads(_) | Subject::Edits(_), Scope::Command { .. }) => false,
            (Subject::Reads(path) | Subject::Edits(path), Scope::Path { real, .. }) => {
                self.is_about(tool) && real.is_match(super::paths::resolved(path))
            }
        }
    }

    /// Whether it holds for any part of what the call does.
    pub(super) fn touches(&self, tool: &str, subject: &Subject) -> bool {
        match subject {
            Subject::Command(line) => {
                let mut pieces = commands::rough_pieces(line);
                let simple = commands::simple_commands(line).unwrap_or_default();
                pieces.extend(simple.iter().map(|words| words.join(" ")));
                self.covers_all(tool) || pieces.iter().any(|piece| self.covers_command(tool, piece))
            }
            Subject::Reads(path) | Subject::Edits(path) => {
                self.is_about(tool)
                    && match &self.scope {
                        Scope::All => true,
                        // By its own name, and by where it leads.
                        Scope::Path { written, real } => {
                            let leads_to = super::paths::resolved(path);
                            written.is_match(path) || written.is_match(&leads_to) || real.is_match(&leads_to)
                        }
                        Scope::Command { .. } => false,
                    }
            }
            Subject::Session => self.is_about(tool),
        }
    }
}

/// Says in words what is wrong with the tool that a rule names: none of ours, of Claude Code's or of an MCP server
/// (`mcp__server__tool`). None for a rule that names none, which fails otherwise.
pub fn unknown_tool(rule: &str) -> Option<String> {
    let tool = rule.split('(').next().unwrap_or_default().trim();
    let is_known = TOOLS.iter().any(|known| known.name == tool) || ELSEWHERE.contains(&tool);
    if is_known || tool.starts_with("mcp__") || !tool.chars().all(is_of_name) || tool.is_empty() {
        return None;
    }
    let names: Vec<&str> = TOOLS.iter().map(|known| known.name).collect();
    let lower: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let tool_lower = tool.to_lowercase();
    let near = similar::get_close_matches(tool_lower.as_str(), &lower, 1, LIKENESS_MIN);
    let near = near.first().and_then(|near| lower.iter().position(|name| name == near));
    let near = near.map(|at| format!(" (did you mean {}?)", names[at]));
    Some(format!(
        "is about {tool}, which is no tool{}; those there are: {}, and mcp__server__tool",
        near.unwrap_or_default(),
        names.join(", ")
    ))
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '-'
}

fn command_scope(command: &str) -> Scope {
    match command.strip_suffix(":*").or_else(|| command.strip_suffix(" *")) {
        Some(prefix) => Scope::Command { text: prefix.to_owned(), is_prefix: true },
        None => Scope::Command { text: command.to_owned(), is_prefix: false },
    }
}

fn matches_command(text: &str, is_prefix: bool, command: &str) -> bool {
    match command.strip_prefix(text) {
        Some("") => true,
        Some(rest) => is_prefix && rest.starts_with(' '),
        None => false,
    }
}

fn path_scope(path: &str, cwd: &Path) -> Result<Scope, globset::Error> {
    let below = |folder: &Path, rest: &str| {
        let folder = globset::escape(&folder.to_string_lossy());
        format!("{}/{rest}", folder.trim_end_matches('/'))
    };
    let (written, real) = match path.strip_prefix("//") {
        Some(absolute) => {
            let plain = absolute.find(['*', '?', '[', '{', '\\']).unwrap_or(absolute.len());
            let (folder, rest) = absolute[..plain]
                .rfind('/')
                .map_or(("", absolute), |cut| (&absolute[..cut], &absolute[cut + 1..]));
            let folder = Path::new("/").join(folder);
            (below(&folder, rest), below(&super::paths::resolved(&folder), rest))
        }
        // The folder is resolved already; links in it are the project's and widen no rule.
        None => {
            let full = below(cwd, path.trim_start_matches("./").trim_start_matches('/'));
            (full.clone(), full)
        }
    };
    let glob = |full: &str| GlobBuilder::new(full).literal_separator(true).build();
    Ok(Scope::Path { written: glob(&written)?.compile_matcher(), real: glob(&real)?.compile_matcher() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_cannot_be_read_say_why() {
        let error = |text: &str| Rule::parse(text, Path::new("/w")).unwrap_err().to_string();
        assert_eq!(error("Bash(ls"), "the permission rule \"Bash(ls\" lacks its closing bracket");
        assert_eq!(error("(x)"), "the permission rule \"(x)\" does not begin with the name of a tool");
        assert!(error("Edit(a{b)").starts_with("the permission rule \"Edit(a{b)\" error parsing glob"));
    }

    #[test]
    fn a_rule_that_must_hold_is_about_a_tool_that_exists() {
        for (rule, near) in [
            ("bash", Some("(did you mean Bash?)")),
            ("Bsh(git push:*)", Some("(did you mean Bash?)")),
            ("EDIT(src/**)", Some("(did you mean Edit?)")),
            ("Zzz", Some("")),
            ("Bash(git push:*)", None),
            ("WebFetch", None),
            ("mcp__github__push", None),
        ] {
            let read = Rule::parse_strict(rule, Path::new("/w"));
            match (read, near) {
                (Ok(_), None) => {}
                (Err(error), Some(near)) => {
                    let text = error.to_string();
                    let is_told = text.contains(near) && text.contains("those there are: Read, Write, Edit");
                    assert!(is_told, "{text}");
                }
                (read, _) => panic!("{rule}: {read:?}"),
            }
            assert!(Rule::parse(rule, Path::new("/w")).is_ok(), "{rule} may allow what does not exist");
        }
    }

    #[test]
    fn paths_are_globs_below_the_working_folder() {
        for (rule, path, want) in [
            ("Edit(src/**)", "/w/src/a/b.rs", true),
            ("Edit(src/*)", "/w/src/a/b.rs", false),
            ("Edit(./src/*)", "/w/src/a.rs", true),
            ("Edit(*.rs)", "/w/a.rs", true),
            ("Edit(**/*.rs)", "/w/src/a.rs", true),
            ("Edit(//tmp/**)", "/tmp/x", true),
            ("Edit(/src/**)", "/src/x", false),
            ("Edit(src/**)", "/elsewhere/src/x", false),
            ("Edit", "/anywhere", true),
        ] {
            let rule = Rule::parse(rule, Path::new("/w")).unwrap();
            assert_eq!(rule.touches("Write", &Subject::Edits(path.into())), want, "{rule} {path}");
        }
    }
}
