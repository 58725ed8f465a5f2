//! Grep: lines by a regular expression, with ripgrep's own parts.

use std::io;
use std::path::{Path, PathBuf};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::types::TypesBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use yaoki_core::effects::EffectClass;
use yaoki_core::step::RunStep;

use super::permission::Subject;
use super::text::RESULT_CHARS_MAX;
use super::walk::{self, Filter};
use super::{Done, Shaped, Shared, paths, text};

const LINE_CHARS_MAX: usize = 500;
/// Lines or files of one result, where no smaller number is asked for.
const ENTRIES_MAX: usize = 2_000;
const FILES_FOUND_MAX: usize = 20_000;
const CONTEXT_MAX: u64 = 50;
/// Bytes of a file that are searched at once when a match may span lines.
const HEAP_BYTES_MAX: usize = 64 << 20;

pub(super) const DESCRIPTION: &str =
    "Searches the contents of files with a regular expression (ripgrep's syntax).

- `output_mode`: `files_with_matches` (default; newest first), `content` (matching lines), or `count`.
- Narrow it with `path`, `glob` (`*.rs`, `src/**/*.ts`) or `type` (`rust`, `js`, `py`, …).
- `-A`, `-B`, `-C` show lines after, before, around a match; `-i` ignores case. They go with `content`.
- Set `multiline` for patterns that span lines.
- Files that .gitignore and its kin leave out are left out. Use this rather than grep or rg in Bash.";

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The regular expression.
    #[schemars(length(min = 1))]
    pattern: String,
    /// A file or folder; the working folder if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Only files whose path fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    glob: Option<String>,
    /// Only files of this type, by ripgrep's names.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    file_type: Option<String>,
    #[serde(default)]
    output_mode: Mode,
    /// Ignore case.
    #[serde(default, rename = "-i")]
    ignore_case: bool,
    /// Show line numbers; they are shown if not told otherwise.
    #[serde(default, rename = "-n", skip_serializing_if = "Option::is_none")]
    line_numbers: Option<bool>,
    /// Lines to show after each match.
    #[serde(default, rename = "-A", skip_serializing_if = "Option::is_none")]
    after: Option<u64>,
    /// Lines to show before each match.
    #[serde(default, rename = "-B", skip_serializing_if = "Option::is_none")]
    before: Option<u64>,
    /// Lines to show around each match.
    #[serde(default, rename = "-C", skip_serializing_if = "Option::is_none")]
    around: Option<u64>,
    /// Show only so many lines or files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    head_limit: Option<usize>,
    /// Let the pattern span lines; `.` matches line ends too.
    #[serde(default)]
    multiline: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    FilesWithMatches,
    Content,
    Count,
}

pub(super) fn shape(shared: &Shared, mut input: Input) -> Shaped {
    let base = paths::absolute(input.path.as_deref().unwrap_or("."), &shared.env.cwd);
    let place = match input.path {
        Some(_) => format!("{} in {}", input.pattern, text::shown(&base, &shared.env.cwd)),
        None => input.pattern.clone(),
    };
    input.path = Some(base.to_string_lossy().into_owned());
    Shaped::new(EffectClass::Pure, text::title("Grep", &place), &input, Subject::Reads(base))
}

pub(super) fn run(shared: &Shared, step: &RunStep, stop: &CancellationToken) -> Result<Done, String> {
    let input: Input = shared.input(step)?;
    let base = PathBuf::from(input.path.as_deref().unwrap_or("."));
    let filter = Filter { glob: input.glob.as_deref().map(walk::glob).transpose()?, types: types(&input)? };
    let matcher = matcher(&input)?;
    let mut searcher = searcher(&input);
    let entries_max = input.head_limit.unwrap_or(ENTRIES_MAX).min(ENTRIES_MAX);
    let mut hits = Hits::new(&input, &shared.env.cwd, entries_max);
    let cut_short = walk::files(&base, filter, stop, |path| {
        if shared.is_forbidden("Grep", path) {
            return true;
        }
        hits.enter(path);
        // A file that cannot be read is passed over, as ripgrep does.
        let _ = searcher.search_path(&matcher, path, &mut hits);
        hits.leave();
        !hits.is_full()
    })?;
    let mut text = hits.finish();
    if let Some(why) = cut_short {
        text.push_str(&format!("\n(The search was cut short: {why}.)"));
    }
    let text = text::cut_middle(&text, RESULT_CHARS_MAX, |count| {
        format!("[{count} characters left out here; narrow the search to see them]")
    });
    Ok(Done::ok(text))
}

fn types(input: &Input) -> Result<Option<ignore::types::Types>, String> {
    let Some(name) = &input.file_type else { return Ok(None) };
    let mut types = TypesBuilder::new();
    types.add_defaults();
    types.select(name);
    types.build().map(Some).map_err(|error| format!("Error: {error}"))
}

fn matcher(input: &Input) -> Result<RegexMatcher, String> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(input.ignore_case).multi_line(true).dot_matches_new_line(input.multiline);
    if !input.multiline {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&input.pattern).map_err(|error| {
        let hint = if input.pattern.contains("\\n") && !input.multiline {
            " Set multiline for a pattern that spans lines."
        } else {
            " Special characters are taken literally behind a backslash."
        };
        format!("Error: the pattern is not a valid regular expression: {error}.{hint}")
    })
}

fn searcher(input: &Input) -> Searcher {
    let lines = |wanted: Option<u64>| {
        usize::try_from(wanted.or(input.around).unwrap_or(0).min(CONTEXT_MAX)).unwrap_or_default()
    };
    let shows_lines = input.output_mode == Mode::Content;
    SearcherBuilder::new()
        .line_number(true)
        .multi_line(input.multiline)
        .heap_limit(Some(HEAP_BYTES_MAX))
        .binary_detection(BinaryDetection::quit(0))
        .before_context(if shows_lines { lines(input.before) } else { 0 })
        .after_context(if shows_lines { lines(input.after) } else { 0 })
        .build()
}

/// What was found so far.
struct Hits<'a> {
    mode: Mode,
    cwd: &'a Path,
    numbers: bool,
    entries_max: usize,
    file: PathBuf,
    shown_file: String,
    in_file: u64,
    total: u64,
    files: Vec<PathBuf>,
    lines: Vec<String>,
    /// There was more than is shown.
    is_over: bool,
}

impl<'a> Hits<'a> {
    fn new(input: &Input, cwd: &'a Path, entries_max: usize) -> Self {
        Self {
            mode: input.output_mode,
            cwd,
            numbers: input.line_numbers.unwrap_or(true),
            entries_max,
            file: PathBuf::new(),
            shown_file: String::new(),
            in_file: 0,
            total: 0,
            files: Vec::new(),
            lines: Vec::new(),
            is_over: false,
        }
    }

    fn enter(&mut self, path: &Path) {
        self.file = path.to_owned();
        self.shown_file = text::shown(path, self.cwd);
        self.in_file = 0;
    }

    fn leave(&mut self) {
        if self.in_file == 0 {
            return;
        }
        self.total += self.in_file;
        self.files.push(std::mem::take(&mut self.file));
        if self.mode == Mode::Count {
            self.lines.push(format!("{}:{}", self.shown_file, self.in_file));
        }
    }

    fn is_full(&self) -> bool {
        match self.mode {
            // All are needed to show the newest.
            Mode::FilesWithMatches => self.files.len() >= FILES_FOUND_MAX,
            Mode::Content => self.is_over,
            Mode::Count => false,
        }
    }

    /// Shows the lines of one match or one line around it; `mark` tells which.
    fn show(&mut self, number: Option<u64>, bytes: &[u8], mark: char) {
        for (i, line) in String::from_utf8_lossy(bytes).lines().enumerate() {
            if self.lines.len() >= self.entries_max {
                self.is_over = true;
                return;
            }
            let cut = text::first_chars(line, LINE_CHARS_MAX);
            let more = if cut.len() < line.len() { "… (line cut)" } else { "" };
            let place = match number.filter(|_| self.numbers) {
                Some(number) => format!("{}{mark}{}{mark}", self.shown_file, number + i as u64),
                None => format!("{}{mark}", self.shown_file),
            };
            self.lines.push(format!("{place}{cut}{more}"));
        }
    }

    fn finish(mut self) -> String {
        if self.total == 0 {
            return "No matches found".to_owned();
        }
        match self.mode {
            Mode::FilesWithMatches => {
                walk::by_age(&mut self.files);
                let count = self.files.len();
                let shown = self.files.iter().take(self.entries_max).map(|path| text::shown(path, self.cwd));
                let mut lines = vec![format!("Found {count} file{}", if count == 1 { "" } else { "s" })];
                lines.extend(shown);
                lines
                    .extend((count > self.entries_max).then(|| format!("({} are shown.)", self.entries_max)));
                lines.join("\n")
            }
            Mode::Content => {
                if self.is_over {
                    let s = if self.entries_max == 1 { "" } else { "s" };
                    self.lines.push(format!("(Stopped after {} line{s}; there are more.)", self.entries_max));
                }
                self.lines.join("\n")
            }
            Mode::Count => {
                let count = self.lines.len();
                self.lines.truncate(self.entries_max);
                self.lines.push(format!(
                    "{} matches in {count} file{}",
                    self.total,
                    if count == 1 { "" } else { "s" }
                ));
                self.lines.join("\n")
            }
        }
    }
}

impl Sink for &mut Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.in_file += 1;
        if self.mode == Mode::Content {
            self.show(found.line_number(), found.bytes(), ':');
        }
        Ok(self.mode != Mode::FilesWithMatches && !self.is_full())
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.show(around.line_number(), around.bytes(), '-');
        Ok(!self.is_full())
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        if self.mode == Mode::Content && !self.lines.is_empty() {
            self.lines.push("--".to_owned());
        }
        Ok(true)
    }
}
