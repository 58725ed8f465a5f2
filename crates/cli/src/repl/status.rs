//! What `/status`, `/cost` and the first line say.
//!
//! Promises: numbers as the session's log adds them up; paths and names are cleaned.

use std::path::Path;

use yaoki::{Loaded, Status};

use crate::render::plain::one_line;
use crate::render::words::plural;

/// `/status`, one fact a line. `always` are the answers of this session that also allow.
pub fn status(status: &Status, always: &[String]) -> String {
    let allow: Vec<String> = status.allow.iter().chain(always).map(|rule| one_line(rule)).collect();
    let allow = if allow.is_empty() { "-".to_owned() } else { allow.join(", ") };
    let rows = [
        ("model", one_line(&status.model)),
        ("effort", one_line(&status.effort)),
        ("cwd", one_line(&status.cwd.display().to_string())),
        ("session", status.session.to_string()),
        ("mode", status.mode.name().to_owned()),
        ("allow", allow),
        ("messages", status.messages.to_string()),
        ("context", format!("{} tokens (input of the last answered request)", status.context)),
        ("total", total(status)),
        ("failed", plural(status.attempts_failed, "attempt")),
    ];
    rows.iter().map(|(name, value)| format!("{name:<9} {value}\n")).collect()
}

/// `/cost`.
pub fn cost(status: &Status) -> String {
    let dollars = match status.cost {
        Some(dollars) => format!("${dollars:.4}"),
        None => format!("not known: there are no prices for {}", one_line(&status.model)),
    };
    format!("{:<9} {dollars}\n{:<9} {}\n", "cost", "total", total(status))
}

fn total(status: &Status) -> String {
    format!("in {} / out {} / {}", status.input, status.output, plural(status.requests_answered, "request"))
}

/// The first line: what was loaded around the working folder.
pub fn loaded(loaded: &Loaded, cwd: &Path) -> String {
    let notes: Vec<String> = loaded
        .notes
        .iter()
        .map(|note| one_line(&note.strip_prefix(cwd).unwrap_or(note).display().to_string()))
        .collect();
    let notes = if notes.is_empty() { "none".to_owned() } else { notes.join(", ") };
    let git = loaded.git.as_deref().map_or("no repository".to_owned(), one_line);
    format!("◇ project notes: {notes} · git: {git} · {}", one_line(&loaded.date))
}

#[cfg(test)]
mod tests {
    use yaoki::PermissionMode;
    use yaoki::core::ids::SessionId;

    use super::*;

    fn some() -> Status {
        Status {
            model: "claude-opus-5-5".into(),
            effort: "medium".into(),
            cwd: "/home/me/\u{1b}project".into(),
            session: SessionId::new("0190"),
            mode: PermissionMode::Default,
            allow: Vec::new(),
            messages: 9,
            context: 100,
            input: 400,
            output: 80,
            requests_answered: 4,
            attempts_failed: 2,
            cost: None,
            log_syncs: 0,
        }
    }

    #[test]
    fn status_says_everything_and_counts_failed_attempts_apart() {
        insta::assert_snapshot!(status(&some(), &[]), @r"
        model     claude-opus-5-5
        effort    medium
        cwd       /home/me/^[project
        session   0190
        mode      default
        allow     -
        messages  9
        context   100 tokens (input of the last answered request)
        total     in 400 / out 80 / 4 requests
        failed    2 attempts
        ");
        let allowed = Status { allow: vec!["Edit".into()], ..some() };
        assert!(status(&allowed, &["Bash(ls)".into()]).contains("allow     Edit, Bash(ls)\n"));
    }

    #[test]
    fn cost_is_a_sum_or_says_why_not() {
        assert!(cost(&some()).starts_with("cost      not known: there are no prices for claude-opus-5-5\n"));
        assert!(cost(&Status { cost: Some(0.01234), ..some() }).starts_with("cost      $0.0123\n"));
    }

    #[test]
    fn the_first_line_names_notes_git_and_date() {
        let cwd = Path::new("/p");
        let full = Loaded {
            notes: vec!["/p/AGENTS.md".into(), "/up/CLAUDE.md".into()],
            git: Some("main @ 1a2b3c4".into()),
            date: "2026-11-30".into(),
        };
        assert_eq!(
            loaded(&full, cwd),
            "◇ project notes: AGENTS.md, /up/CLAUDE.md · git: main @ 1a2b3c4 · 2026-11-30"
        );
        let none = Loaded { date: "2026-11-30".into(), ..Loaded::default() };
        assert_eq!(loaded(&none, cwd), "◇ project notes: none · git: no repository · 2026-11-30");
    }
}
