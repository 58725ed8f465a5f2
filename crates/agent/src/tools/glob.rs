//! Glob: files by the shape of their path.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use yaoki_core::effects::EffectClass;
use yaoki_core::step::RunStep;

use super::permission::Subject;
use super::walk::{self, Filter};
use super::{Done, Shaped, Shared, paths, text};

const FILES_MAX: usize = 100;
/// Found files that are kept for sorting; beyond that the pattern is too wide to be of use.
const FOUND_MAX: usize = 100_000;

pub(super) const DESCRIPTION: &str =
    "Finds files by a pattern such as `**/*.rs` or `src/**/*.{ts,tsx}`, newest first.

- A pattern without a slash holds at any depth.
- Files that .gitignore and its kin leave out are left out.
- Shows at most 100 files.";

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The pattern.
    #[schemars(length(min = 1))]
    pattern: String,
    /// The folder to look in; the working folder if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

pub(super) fn shape(shared: &Shared, mut input: Input) -> Shaped {
    let title = text::title("Glob", &input.pattern);
    let (mut base, pattern) = split(&input.pattern);
    base = paths::absolute(input.path.as_deref().unwrap_or("."), &shared.env.cwd).join(base);
    input.pattern = pattern;
    input.path = Some(base.to_string_lossy().into_owned());
    Shaped::new(EffectClass::Pure, title, &input, Subject::Reads(base))
}

/// Takes the folder off an absolute pattern, up to its first wildcard.
fn split(pattern: &str) -> (PathBuf, String) {
    if !pattern.starts_with('/') {
        return (PathBuf::new(), pattern.to_owned());
    }
    let plain = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    let cut = pattern[..plain].rfind('/').unwrap_or(0);
    let base = if cut == 0 { "/" } else { &pattern[..cut] };
    // The slash keeps the pattern anchored.
    (PathBuf::from(base), format!("./{}", &pattern[cut + 1..]))
}

pub(super) fn run(shared: &Shared, step: &RunStep, stop: &CancellationToken) -> Result<Done, String> {
    let input: Input = shared.input(step)?;
    let base = PathBuf::from(input.path.as_deref().unwrap_or("."));
    let glob = anchored_glob(&input.pattern)?;
    let mut found = Vec::new();
    let cut_short = walk::files(&base, Filter { glob: Some(glob), types: None }, stop, |path| {
        if !shared.is_forbidden("Glob", path) {
            found.push(path.to_owned());
        }
        found.len() < FOUND_MAX
    })?;
    walk::by_age(&mut found);
    let count = found.len();
    let mut lines: Vec<String> =
        found.iter().take(FILES_MAX).map(|path| shown(path, &shared.env.cwd)).collect();
    if lines.is_empty() {
        lines.push("No files found".to_owned());
    }
    if count > FILES_MAX {
        lines.push(format!("(The {FILES_MAX} newest of {count} files; use a narrower pattern for others.)"));
    }
    lines.extend(cut_short.map(|why| format!("(The search was cut short: {why}.)")));
    Ok(Done::ok(lines.join("\n")))
}

fn anchored_glob(pattern: &str) -> Result<globset::GlobMatcher, String> {
    match pattern.strip_prefix("./").filter(|rest| !rest.contains('/')) {
        // Only in the folder itself.
        Some(name) => walk::glob(&format!("/{name}")),
        None => walk::glob(pattern),
    }
}

fn shown(path: &Path, cwd: &Path) -> String {
    text::shown(path, cwd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_patterns_name_their_own_folder() {
        for (pattern, base, rest) in [
            ("*.rs", "", "*.rs"),
            ("/a/b/*.rs", "/a/b", "./*.rs"),
            ("/a/b/c.rs", "/a/b", "./c.rs"),
            ("/*", "/", "./*"),
        ] {
            assert_eq!(split(pattern), (PathBuf::from(base), rest.to_owned()), "{pattern}");
        }
    }
}
