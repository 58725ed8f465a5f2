//! `yaoki __docs NAME`: the tables of the documentation, printed from the tables of the code.

use yaoki::core::policy::Policy;
use yaoki::core::record::Record;
use yaoki::core::recovery::{ATTEMPT, Rule, TURN};

use super::COMMANDS;
use crate::args::{Cli, Command};
use crate::exit::{CliError, GOOD, SIGHUP, SIGINT, SIGTERM, TYPED, USAGE};
use crate::out;
use crate::render::words::end_of;
use crate::repl::slash::SLASH;
use crate::settings::table::{ENV, Project, SETTINGS};
use crate::stream_json::names::WIRE_ENDS;

type Table = (&'static str, fn() -> String);

/// What `cargo xtask docs` may ask for.
const TABLES: &[Table] = &[
    ("commands", commands),
    ("slash-commands", slash_commands),
    ("flags", flags),
    ("settings", settings),
    ("env", env),
    ("exit-codes", exit_codes),
    ("terminal-reasons", terminal_reasons),
    ("tools", tools),
    ("records", records),
    ("rules", rules),
    ("policy", policy),
];

pub fn run(cli: Cli) -> Result<u8, CliError> {
    let Some(Command::Docs { name }) = cli.command else { unreachable!("the row is chosen by the command") };
    let names: Vec<&str> = TABLES.iter().map(|(name, _)| *name).collect();
    let Some((_, table)) = TABLES.iter().find(|(known, _)| *known == name) else {
        return Err(CliError::usage(
            format_args!("there is no table {name}"),
            format!("there are {}", names.join(", ")),
        ));
    };
    out::print(&table())?;
    Ok(GOOD)
}

/// A Markdown table.
fn markdown(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> =
            cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let mut text = line(&head);
    text.push_str(&format!("|{}\n", " --- |".repeat(head.len())));
    for row in rows {
        text.push_str(&line(&row));
    }
    text
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

fn commands() -> String {
    let shown = COMMANDS.iter().filter(|row| !row.name.starts_with("__"));
    markdown(&["Command", "What it does"], shown.map(|row| vec![code(row.usage), row.doc.to_owned()]))
}

fn rules() -> String {
    let table = |name: &str, rules: &'static [Rule]| {
        let name = name.to_owned();
        rules.iter().map(move |rule| {
            let limit = |count: u32| if count == u32::MAX { "–".to_owned() } else { count.to_string() };
            let cost = if rule.is_free { "no" } else { "yes" };
            vec![
                code(rule.name),
                name.clone(),
                rule.what.to_owned(),
                limit(rule.limit.streak),
                limit(rule.limit.total),
                cost.to_owned(),
            ]
        })
    };
    let head = ["Rule", "Changes", "What it does", "In a row", "In a turn", "Costs a retry"];
    markdown(&head, table("the request", TURN).chain(table("nothing", ATTEMPT)))
}

fn policy() -> String {
    let numbers = serde_json::to_value(Policy::default()).expect("a policy is plain data");
    let rows = numbers.as_object().into_iter().flatten();
    markdown(&["Number", "Default"], rows.map(|(name, value)| vec![code(name), code(&value.to_string())]))
}

fn slash_commands() -> String {
    let rows = SLASH.iter().map(|row| {
        let usage = format!("/{} {}", row.name, row.argument);
        vec![code(usage.trim_end()), row.doc.to_owned()]
    });
    markdown(&["Line", "What it does"], rows)
}

fn flags() -> String {
    let definition = crate::args::definition();
    let rows =
        definition.get_arguments().filter(|flag| !flag.is_hide_set() && !flag.is_positional()).map(|flag| {
            let long = flag.get_long().map(|long| format!("--{long}"));
            let short = flag.get_short().map(|short| format!("-{short}"));
            let names: Vec<String> = short.into_iter().chain(long).collect();
            let value = flag.get_value_names().filter(|_| flag.get_action().takes_values());
            let value = value.map(|names| format!(" {}", names.join(" "))).unwrap_or_default();
            let help = flag.get_help().map(|help| help.to_string()).unwrap_or_default();
            vec![code(&format!("{}{value}", names.join(", "))), help]
        });
    markdown(&["Flag", "What it does"], rows)
}

fn settings() -> String {
    let rows = SETTINGS.iter().map(|setting| {
        let project = match setting.project {
            Project::Any => "yes".to_owned(),
            Project::Only(values) => {
                format!("only {}", values.iter().map(|v| code(v)).collect::<Vec<_>>().join(", "))
            }
            Project::Never => "no".to_owned(),
        };
        let also: Vec<String> = setting.flag.iter().chain(setting.env).map(|name| code(name)).collect();
        vec![
            code(setting.name),
            setting.kind.words(),
            setting.default.to_owned(),
            also.join(", "),
            project,
            setting.doc.to_owned(),
        ]
    });
    markdown(&["Key", "Value", "Default", "Also", "From a project", "Meaning"], rows)
}

fn env() -> String {
    let own = ENV.iter().map(|(name, doc)| vec![code(name), (*doc).to_owned()]);
    let others = SETTINGS.iter().flat_map(|setting| {
        setting.env.iter().map(|name| vec![code(name), format!("Sets `{}`.", setting.name)])
    });
    markdown(&["Variable", "Meaning"], own.chain(others))
}

fn exit_codes() -> String {
    let mut rows = vec![
        vec![
            "0".to_owned(),
            "the turn is done (also: a call was put off, work goes on in the background)".to_owned(),
        ],
        vec!["1".to_owned(), "every other end; or the machine is not as needed (disk, session)".to_owned()],
        vec![USAGE.to_string(), "wrong usage, unreadable settings, no key: nothing was started".to_owned()],
    ];
    for (reason, code) in TYPED.iter().filter(|(reason, _)| !reason.is_good()) {
        let words = end_of(*reason).words;
        rows.push(vec![format!("{code} with `--typed-exit-codes`"), format!("`{}`: {words}", reason.name())]);
    }
    rows.push(vec![SIGHUP.to_string(), "SIGHUP (the terminal is gone)".to_owned()]);
    rows.push(vec![SIGINT.to_string(), "SIGINT (Ctrl+C)".to_owned()]);
    rows.push(vec![SIGTERM.to_string(), "SIGTERM".to_owned()]);
    markdown(&["Code", "Meaning"], rows)
}

fn terminal_reasons() -> String {
    let rows = WIRE_ENDS.iter().map(|end| {
        let words = end_of(end.reason).words;
        vec![code(end.reason.name()), words.to_owned(), code(end.terminal_reason), code(end.subtype)]
    });
    markdown(&["Reason", "Meaning", "`terminal_reason` in JSON", "`subtype` in JSON"], rows)
}

fn tools() -> String {
    let rows = yaoki::tools::TOOLS.iter().map(|tool| {
        let first = tool.description.lines().next().unwrap_or_default();
        vec![code(tool.name), first.to_owned()]
    });
    markdown(&["Tool", "What it does"], rows)
}

fn records() -> String {
    markdown(&["Record"], Record::KINDS.iter().map(|kind| vec![code(kind)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_rows_and_as_many_cells_as_its_head() {
        for (name, table) in TABLES {
            let text = table();
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines.len() > 3, "{name} is empty");
            let cells = |line: &str| line.replace("\\|", "").matches('|').count();
            for line in &lines {
                assert_eq!(cells(line), cells(lines[0]), "{name}: {line}");
            }
        }
    }

    #[test]
    fn hidden_commands_are_not_documented() {
        assert!(!commands().contains("__docs"));
        assert!(commands().contains("`yaoki resume [ID] [PROMPT] [--continue]`"));
    }
}
