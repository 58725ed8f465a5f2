//! The command line, as typed values. `--flag value` and `--flag=value` mean the same everywhere.
//!
//! Promises: parsing touches no file and no network; what is wrong is said in one line, with the nearest known
//! name. Deliberately not here: where else a value may come from (`settings`), what a command does (`commands`).

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::exit::CliError;

/// A coding agent that does not lose its place
#[derive(Debug, Parser)]
#[command(name = "yaoki", version, disable_help_subcommand = true, disable_version_flag = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 not done, 2 wrong usage or settings, 129, 130 and 143 interrupted."
)]
pub struct Cli {
    /// What to do. Without -p it is the first prompt of a conversation
    pub prompt: Option<String>,

    #[command(flatten)]
    pub run: RunFlags,

    /// Go on with a session, by its id
    #[arg(long, value_name = "ID", conflicts_with = "continue_newest")]
    pub resume: Option<String>,

    /// Go on with the newest session of this folder
    #[arg(short = 'c', long = "continue")]
    pub continue_newest: bool,

    /// Print the version
    #[arg(short = 'V', short_alias = 'v', long)]
    pub version: bool,

    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What both a new run and `resume` take.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct RunFlags {
    /// Answer one prompt, print, and exit. Piped standard input is the prompt, or is added to it
    #[arg(short = 'p', long, value_name = "PROMPT", num_args = 0..=1, default_missing_value = "")]
    pub print: Option<String>,

    /// What -p prints
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub output_format: Option<OutputFormat>,

    /// Tell more: every tool call, and with stream-json every line of it
    #[arg(long)]
    pub verbose: bool,

    /// The model to ask
    #[arg(long)]
    pub model: Option<String>,

    /// Rounds the turn may take
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_turns: Option<u32>,

    /// Settings for this run: a file, or JSON itself
    #[arg(long, value_name = "FILE|JSON")]
    pub settings: Option<String>,

    /// How much is allowed without asking
    #[arg(long, value_name = "MODE")]
    pub permission_mode: Option<String>,

    /// Ask nothing. Refused for root, unless IS_SANDBOX=1
    #[arg(long, conflicts_with = "permission_mode")]
    pub dangerously_skip_permissions: bool,

    /// Models to ask when the one before them can't serve: "a,b"
    #[arg(long, value_name = "MODELS")]
    pub fallback_model: Vec<String>,

    /// Calls to allow without asking, such as "Edit,Bash(cargo test)"
    #[arg(long = "allowedTools", alias = "allowed-tools", value_name = "RULES")]
    pub allowed_tools: Vec<String>,

    /// Calls to deny
    #[arg(long = "disallowedTools", alias = "disallowed-tools", value_name = "RULES")]
    pub disallowed_tools: Vec<String>,

    /// Replace the built-in system prompt
    #[arg(long, value_name = "TEXT")]
    pub system_prompt: Option<String>,

    /// Add to the system prompt
    #[arg(long, value_name = "TEXT")]
    pub append_system_prompt: Option<String>,

    /// The folder to work in
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// Ask a scripted model instead: starts the lab in this process
    #[arg(long, value_name = "SCRIPT")]
    pub fake: Option<PathBuf>,

    /// Give each end of a turn an exit code of its own, from 10 on
    #[arg(long)]
    pub typed_exit_codes: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// The answer.
    #[default]
    Text,
    /// One result object.
    Json,
    /// One JSON object a line, as things happen.
    StreamJson,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Open an earlier session: say what was found, go on where it stopped
    Resume(Box<ResumeArgs>),
    /// List the sessions there are
    Sessions(SessionsArgs),
    /// Play a story of faults and recoveries, offline
    Demo(DemoArgs),
    /// The scripted model server
    Lab(LabArgs),
    /// Print a table of the documentation
    #[command(name = "__docs", hide = true)]
    Docs { name: String },
}

#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The session; the newest of this folder if left out
    pub id: Option<String>,

    /// The next prompt
    pub prompt: Option<String>,

    /// Finish the turn that an earlier process left open
    #[arg(short = 'c', long = "continue")]
    pub finish: bool,

    #[command(flatten)]
    pub run: RunFlags,
}

#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// One JSON array instead of a table
    #[arg(long)]
    pub json: bool,
    /// Sessions of all folders, not only of this one
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Leave the folder of the story behind
    #[arg(long)]
    pub keep: bool,
}

#[derive(Debug, Args)]
pub struct LabArgs {
    #[command(subcommand)]
    pub command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Serve a script on loopback until interrupted, then report
    Serve {
        script: PathBuf,
        /// The port; a free one if left out
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
    /// Print the JSON Schema of scripts
    Schema,
}

/// Reads the command line.
///
/// Errors: `Err(Parsed::Text)` is help that was asked for; `Err(Parsed::Wrong)` is one line, exit code 2.
pub fn parse(argv: impl IntoIterator<Item = OsString>) -> Result<Cli, Parsed> {
    let cli = Cli::try_parse_from(argv).map_err(Parsed::from_clap)?;
    check(&cli).map_err(Parsed::Wrong)?;
    Ok(cli)
}

/// Whether a command line asks for one of the JSON formats, even one that cannot be read as a whole.
pub fn wants_json(argv: &[OsString]) -> bool {
    let is_json = |value: &str| matches!(value, "json" | "stream-json");
    let words: Vec<&str> = argv.iter().map_while(|word| word.to_str().filter(|word| *word != "--")).collect();
    words.windows(2).any(|pair| pair[0] == "--output-format" && is_json(pair[1]))
        || words.iter().filter_map(|word| word.strip_prefix("--output-format=")).any(is_json)
}

/// Why there is nothing to run.
#[derive(Debug, PartialEq)]
pub enum Parsed {
    /// Help, for standard output.
    Text(String),
    Wrong(CliError),
}

impl Parsed {
    fn from_clap(error: clap::Error) -> Self {
        use clap::error::{ContextKind, ErrorKind};
        if error.kind() == ErrorKind::DisplayHelp {
            return Parsed::Text(error.to_string());
        }
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            let words = "yaoki lab does one of: serve SCRIPT, schema";
            return Parsed::Wrong(CliError::usage(words, "see yaoki lab --help"));
        }
        let rendered = error.to_string();
        let mut lines = rendered.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.next().unwrap_or("this command line is not understood");
        let mut message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
        // A list of what is missing stands on lines of its own.
        if message.ends_with(':') {
            for line in lines.by_ref().take_while(|line| !line.starts_with("Usage")) {
                message = format!("{message} {line}");
            }
        }
        let nearest =
            [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue]
                .into_iter()
                .find_map(|kind| error.get(kind).map(|value| value.to_string()));
        let valid = error
            .get(ContextKind::ValidValue)
            .map(|value| value.to_string())
            .filter(|words| !words.is_empty());
        let hint = match (nearest, valid) {
            (Some(nearest), _) => format!("did you mean {nearest}?"),
            (None, Some(valid)) => format!("it may be one of: {valid}"),
            (None, None) if error.kind() == ErrorKind::UnknownArgument => {
                "see yaoki --help; a prompt of several words needs quotes".to_owned()
            }
            (None, None) => "see yaoki --help".to_owned(),
        };
        Parsed::Wrong(CliError::usage(message, hint))
    }
}

/// Checks what clap cannot say.
fn check(cli: &Cli) -> Result<(), CliError> {
    let Some(command) = &cli.command else { return Ok(()) };
    if cli.prompt.is_some() || cli.run != RunFlags::default() || cli.resume.is_some() || cli.continue_newest {
        let name = command.name();
        let hint = match (&cli.run.print, command) {
            (Some(print), _) if print.is_empty() => format!("to ask it as a prompt write -p={name}"),
            (_, Command::Resume(_)) => "write the flags after the command".to_owned(),
            _ => format!("to ask it as a prompt write -p={name}"),
        };
        return Err(CliError::usage(format_args!("{name} is a command and takes nothing before it"), hint));
    }
    Ok(())
}

impl Command {
    /// The command's name, as in `commands::COMMANDS`.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Resume(_) => "resume",
            Command::Sessions(_) => "sessions",
            Command::Demo(_) => "demo",
            Command::Lab(_) => "lab",
            Command::Docs { .. } => "__docs",
        }
    }
}

/// Returns clap's own description, for the tables in the documentation.
pub fn definition() -> clap::Command {
    Cli::command()
}

/// Splits rules at commas and spaces that are outside parentheses: `A,B(x, y) C` is three rules.
pub fn split_rules(texts: &[String]) -> Vec<String> {
    let mut rules = Vec::new();
    for text in texts {
        let mut depth = 0u32;
        let mut rule = String::new();
        for c in text.chars() {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && (c == ',' || c.is_whitespace()) {
                rules.push(std::mem::take(&mut rule));
            } else {
                rule.push(c);
            }
        }
        rules.push(rule);
    }
    rules.retain(|rule| !rule.is_empty());
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Cli, Parsed> {
        parse(std::iter::once("yaoki").chain(args.iter().copied()).map(OsString::from))
    }

    fn wrong(args: &[&str]) -> String {
        match parsed(args) {
            Err(Parsed::Wrong(error)) => {
                assert_eq!(error.kind.code(), 2);
                error.to_string()
            }
            other => panic!("{args:?} gave {other:?}"),
        }
    }

    #[test]
    fn clap_has_nothing_to_complain_about() {
        definition().debug_assert();
    }

    #[test]
    fn a_prompt_may_stand_beside_print_or_apart() {
        for (args, print, prompt) in [
            (&["-p", "do it"][..], Some("do it"), None),
            (&["--print=do it"], Some("do it"), None),
            (&["-p", "--verbose", "do it"], Some(""), Some("do it")),
            (&["do it", "-p"], Some(""), Some("do it")),
            (&["-p=demo"], Some("demo"), None),
            (&["-p", "demo"], Some("demo"), None),
            (&["-p", "--", "-x"], Some(""), Some("-x")),
            (&["do it"], None, Some("do it")),
            (&[], None, None),
        ] {
            let cli = parsed(args).unwrap();
            assert_eq!((cli.run.print.as_deref(), cli.prompt.as_deref()), (print, prompt), "{args:?}");
        }
    }

    #[test]
    fn both_forms_of_a_flag_and_both_spellings_mean_the_same() {
        let want = RunFlags {
            print: Some("x".into()),
            output_format: Some(OutputFormat::StreamJson),
            verbose: true,
            model: Some("m".into()),
            max_turns: Some(3),
            system_prompt: Some(String::new()),
            allowed_tools: vec!["Edit,Bash(a, b)".into()],
            ..RunFlags::default()
        };
        let two = "-p x --output-format stream-json --verbose --model m --max-turns 3 --allowedTools";
        let mut args: Vec<&str> = two.split(' ').collect();
        args.extend(["Edit,Bash(a, b)", "--system-prompt", ""]);
        assert_eq!(parsed(&args).unwrap().run, want);
        let one = ["-p=x", "--output-format=stream-json", "--verbose", "--model=m", "--max-turns=3"];
        let one = [&one[..], &["--allowed-tools=Edit,Bash(a, b)", "--system-prompt="]].concat();
        assert_eq!(parsed(&one).unwrap().run, want);
    }

    #[test]
    fn resume_takes_the_flags_of_print() {
        let cli = parsed(&["resume", "ID", "go on", "--continue", "--max-turns=2", "--output-format=json"]);
        let Some(Command::Resume(resume)) = cli.unwrap().command else { panic!("not resume") };
        assert_eq!((resume.id.as_deref(), resume.prompt.as_deref()), (Some("ID"), Some("go on")));
        assert!(resume.finish);
        assert_eq!(resume.run.max_turns, Some(2));
        assert_eq!(resume.run.output_format, Some(OutputFormat::Json));
    }

    #[test]
    fn what_is_wrong_is_one_line_with_the_nearest_name() {
        for (args, want) in [
            (&["--modle", "x"][..], "unexpected argument '--modle' found; did you mean --model?"),
            (
                &["sesions", "x"],
                "unexpected argument 'x' found; see yaoki --help; a prompt of several words needs quotes",
            ),
            (&["lab"], "yaoki lab does one of: serve SCRIPT, schema; see yaoki lab --help"),
            (&["lab", "serv"], "unrecognized subcommand 'serv'; did you mean serve?"),
            (
                &["--output-format", "jsn"],
                "invalid value 'jsn' for '--output-format <FORMAT>'; did you mean json?",
            ),
            (
                &["--output-format", "xml"],
                "invalid value 'xml' for '--output-format <FORMAT>'; it may be one of: text, json, stream-json",
            ),
            (
                &["--max-turns", "0"],
                "invalid value '0' for '--max-turns <N>': 0 is not in 1..=4294967295; see yaoki --help",
            ),
            (
                &["--model"],
                "a value is required for '--model <MODEL>' but none was supplied; see yaoki --help",
            ),
            (
                &["lab", "serve"],
                "the following required arguments were not provided: <SCRIPT>; see yaoki --help",
            ),
            (
                &["-p", "--verbose", "demo"],
                "demo is a command and takes nothing before it; to ask it as a prompt write -p=demo",
            ),
            (
                &["--model=m", "resume", "ID"],
                "resume is a command and takes nothing before it; write the flags after the command",
            ),
            (
                &["--resume", "ID", "-c"],
                "the argument '--resume <ID>' cannot be used with '--continue'; see yaoki --help",
            ),
        ] {
            assert_eq!(wrong(args), want, "{args:?}");
        }
    }

    #[test]
    fn a_wish_for_json_is_heard_in_a_command_line_that_is_wrong() {
        for (args, want) in [
            (&["-p", "x", "--output-format", "json", "--modle"][..], true),
            (&["--output-format=stream-json"], true),
            (&["--output-format", "text"], false),
            (&["-p", "json"], false),
            (&["-p", "--", "--output-format", "json"], false),
        ] {
            let argv: Vec<OsString> = args.iter().map(OsString::from).collect();
            assert_eq!(wants_json(&argv), want, "{args:?}");
        }
    }

    #[test]
    fn rules_split_outside_parentheses_only() {
        let texts = ["Edit,Bash(git log, x) Read".to_owned(), "Grep".to_owned(), String::new()];
        assert_eq!(split_rules(&texts), ["Edit", "Bash(git log, x)", "Read", "Grep"]);
    }

    #[test]
    fn help_is_text_for_stdout() {
        let Err(Parsed::Text(help)) = parsed(&["--help"]) else { panic!("no help") };
        for word in ["--print", "--allowedTools", "resume", "sessions", "demo", "lab", "Exit codes"] {
            assert!(help.contains(word), "{word} is missing in\n{help}");
        }
        assert!(!help.contains("__docs"));
    }
}
