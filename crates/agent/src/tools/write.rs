//! Write: a whole file. Line endings, byte order mark, mode and links of an existing one stay.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use yaoki_core::effects::EffectClass;
use yaoki_core::step::RunStep;

use super::change::{self, Before, Found};
use super::permission::Subject;
use super::{Done, Shaped, Shared, paths, text};

const BOM: &[u8] = b"\xef\xbb\xbf";

pub(super) const DESCRIPTION: &str = "Writes a file, replacing what is there.

- `file_path` is absolute, or relative to the working folder. Missing folders are made.
- A file that exists must have been read first with Read, and not changed since.
- Prefer Edit for changes to existing files.
- Line endings, byte order mark, mode and symbolic links of an existing file stay as they are.";

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The file to write.
    #[schemars(length(min = 1))]
    file_path: String,
    /// The whole new content.
    content: String,
}

pub(super) fn shape(shared: &Shared, mut input: Input) -> Shaped {
    let path = paths::absolute(&input.file_path, &shared.env.cwd);
    let title = text::title("Write", &text::shown(&path, &shared.env.cwd));
    input.file_path = path.to_string_lossy().into_owned();
    Shaped::new(EffectClass::Reversible, title, &input, Subject::Edits(path))
}

/// Checks that the model knows what it replaces, and takes the facts.
pub(super) fn save(shared: &Shared, input: &Input) -> Result<Before, String> {
    let found = Found::at(input.file_path.as_ref())?;
    change::check_seen(shared, &found, "writing to")?;
    change::check_labels(shared, &found, &[&input.content])?;
    found.before(shared, &new_bytes(&found, &input.content))
}

pub(super) fn run(shared: &Shared, step: &RunStep, _stop: &CancellationToken) -> Result<Done, String> {
    let input: Input = shared.input(step)?;
    let found = Found::at(input.file_path.as_ref())?;
    let before: Option<Before> = shared.pre(step);
    if before.is_some_and(|before| before.hash != found.hash()) {
        change::check_seen(shared, &found, "writing to")?;
    }
    let new = new_bytes(&found, &input.content);
    let lines = input.content.lines().count();
    let verb = if found.bytes.is_some() { "replaced" } else { "created" };
    let s = if lines == 1 { "" } else { "s" };
    let text = format!("The file {} has been {verb} ({lines} line{s}).", found.real.display());
    change::apply(shared, &found, &new, text)
}

/// The bytes for `content`, in the dress of the file that is there.
fn new_bytes(found: &Found, content: &str) -> Vec<u8> {
    let Some(old) = &found.bytes else { return content.as_bytes().to_vec() };
    let mut new = Vec::with_capacity(content.len() + BOM.len());
    if old.starts_with(BOM) && !content.as_bytes().starts_with(BOM) {
        new.extend_from_slice(BOM);
    }
    new.extend_from_slice(&with_line_ends_of(old, content));
    new
}

/// `content` with CRLF where every line of `old` ends so and none of `content` does.
pub(super) fn with_line_ends_of(old: &[u8], content: &str) -> Vec<u8> {
    if uses_crlf(old) && !content.contains('\r') {
        content.replace('\n', "\r\n").into_bytes()
    } else {
        content.as_bytes().to_vec()
    }
}

pub(super) fn uses_crlf(bytes: &[u8]) -> bool {
    let ends = memchr::memchr_iter(b'\n', bytes);
    let mut any = false;
    for end in ends {
        any = true;
        if end == 0 || bytes[end - 1] != b'\r' {
            return false;
        }
    }
    any
}
