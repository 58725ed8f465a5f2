//! `yaoki sessions`: what there is to resume, newest first.

use std::path::Path;

use serde_json::{Value, json};
use yaoki::sessions::SessionInfo;
use yaoki::store::RealDisk;

use crate::args::{Cli, Command};
use crate::exit::{CliError, GOOD};
use crate::out;
use crate::render::plain::{clip, one_line};

const TITLE_CHARS_MAX: usize = 60;

pub fn run(cli: Cli) -> Result<u8, CliError> {
    let Some(Command::Sessions(args)) = cli.command else { unreachable!("the row is chosen by the command") };
    let home = super::chat::home()?;
    let cwd = std::env::current_dir().ok().filter(|_| !args.all);
    let sessions = listed(&home, cwd.as_deref())?;
    if args.json {
        let all: Vec<Value> = sessions.iter().map(to_json).collect();
        out::print(&format!("{:#}\n", Value::Array(all)))?;
    } else if sessions.is_empty() {
        out::stderr(match args.all {
            true => "◇ there is no session yet",
            false => "◇ there is no session of this folder yet; --all lists those of others",
        });
    } else {
        out::print(&table(&sessions))?;
    }
    Ok(GOOD)
}

/// Returns sessions, the last written first, of one folder or of all.
///
/// Errors: the folder that holds them cannot be read.
pub fn listed(home: &Path, cwd: Option<&Path>) -> Result<Vec<SessionInfo>, CliError> {
    let mut sessions = yaoki::sessions::list(&RealDisk, home).map_err(|error| {
        CliError::environment(
            format_args!("cannot list the sessions in {}: {error}", home.display()),
            "make the folder readable, or set YAOKI_HOME to another",
        )
    })?;
    if let Some(cwd) = cwd {
        let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        sessions.retain(|session| session.cwd.as_deref().is_some_and(|folder| Path::new(folder) == cwd));
    }
    Ok(sessions)
}

/// One line for each: id, when it was written, how it ended, the first prompt.
pub fn table(sessions: &[SessionInfo]) -> String {
    let end = |session: &SessionInfo| match session.is_damaged {
        true => "damaged".to_owned(),
        false => one_line(session.last_end.as_deref().unwrap_or("open")),
    };
    let width = sessions.iter().map(|session| end(session).len()).max().unwrap_or(0);
    let rows = sessions.iter().map(|session| {
        let title = clip(&one_line(&session.title), TITLE_CHARS_MAX);
        let when = minute(session.modified_ns);
        let row = format!("{}  {when}  {:<width$}  {title}", session.id, end(session));
        format!("{}\n", row.trim_end())
    });
    rows.collect()
}

/// `2026-11-30 17:46`, in this machine's time zone.
fn minute(ns: i128) -> String {
    let time = jiff::Timestamp::from_nanosecond(ns).unwrap_or_default();
    time.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

fn to_json(session: &SessionInfo) -> Value {
    json!({
        "id": session.id,
        "cwd": session.cwd,
        "created": session.created,
        "modified": jiff::Timestamp::from_nanosecond(session.modified_ns).unwrap_or_default().to_string(),
        "title": session.title,
        "last_end": session.last_end,
        "is_damaged": session.is_damaged,
        "bytes": session.bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_one_line_whatever_its_first_prompt_holds() {
        let session = SessionInfo {
            id: "0190".into(),
            folder: "/s".into(),
            cwd: Some("/p".into()),
            created: "2026-11-30T12:00:00Z".into(),
            modified_ns: 0,
            title: "make\n\u{1b}[2Jthe tests pass".into(),
            last_end: Some("completed".into()),
            is_damaged: false,
            bytes: 10,
        };
        let open = SessionInfo { title: String::new(), last_end: None, ..session.clone() };
        let damaged = SessionInfo { is_damaged: true, title: String::new(), ..session.clone() };
        let table = table(&[session, open, damaged]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines[0].starts_with("0190  19") && lines[0].ends_with("  completed  make ^[[2Jthe tests pass")
        );
        assert!(lines[1].ends_with("  open"), "{table}");
        assert!(lines[2].ends_with("  damaged"), "its end is not known: {table}");
    }
}
