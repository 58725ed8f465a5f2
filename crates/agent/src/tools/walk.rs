//! The files below a folder that a person would mean: ignore rules hold, version control's own files do not
//! count, links are not followed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};
use tokio_util::sync::CancellationToken;

/// A search that takes longer is cut short, and says so.
const TIME_MAX: Duration = Duration::from_secs(60);
const NOT_OURS: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

/// What of the files below a folder is wanted.
#[derive(Default)]
pub(super) struct Filter {
    pub(super) glob: Option<GlobMatcher>,
    pub(super) types: Option<ignore::types::Types>,
}

/// Reads a glob as ripgrep does: without a slash it holds at any depth.
pub(super) fn glob(pattern: &str) -> Result<GlobMatcher, String> {
    let anchored = pattern.trim_start_matches("./");
    let full = if anchored.contains('/') { anchored.to_owned() } else { format!("**/{anchored}") };
    let built = GlobBuilder::new(full.trim_start_matches('/')).literal_separator(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| format!("Error: {error}"))
}

/// Calls `visit` with each wanted file below `base`, in the order of their paths, until it says stop.
///
/// Errors: `base` is not there. Returns why the walk was cut short, if it was.
pub(super) fn files(
    base: &Path,
    filter: Filter,
    stop: &CancellationToken,
    mut visit: impl FnMut(&Path) -> bool,
) -> Result<Option<&'static str>, String> {
    std::fs::metadata(base).map_err(|error| super::change::system_error(&error, base))?;
    let mut walk = WalkBuilder::new(base);
    walk.hidden(false).require_git(false).sort_by_file_path(Path::cmp);
    walk.filter_entry(|entry| !NOT_OURS.iter().any(|name| entry.file_name() == *name));
    if let Some(types) = filter.types {
        walk.types(types);
    }
    let began = Instant::now();
    // Folders that cannot be read are passed over: the rest is still worth having.
    for entry in walk.build().flatten() {
        if stop.is_cancelled() {
            return Ok(Some("interrupted"));
        }
        if began.elapsed() > TIME_MAX {
            return Ok(Some("out of time; search a smaller folder"));
        }
        if is_wanted(&entry, base, filter.glob.as_ref()) && !visit(entry.path()) {
            return Ok(None);
        }
    }
    Ok(None)
}

fn is_wanted(entry: &DirEntry, base: &Path, glob: Option<&GlobMatcher>) -> bool {
    let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
    // A file that was named itself is wanted whatever its name.
    is_file
        && glob.is_none_or(|glob| {
            entry.depth() == 0 || entry.path().strip_prefix(base).is_ok_and(|below| glob.is_match(below))
        })
}

/// Newest first; of the same age by path.
pub(super) fn by_age(paths: &mut [PathBuf]) {
    let age =
        |path: &PathBuf| path.metadata().and_then(|facts| facts.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    paths.sort_by_cached_key(|path| (std::cmp::Reverse(age(path)), path.clone()));
}
