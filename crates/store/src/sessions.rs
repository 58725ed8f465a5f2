//! Where sessions live, and how they are found without an index.
//!
//! `<home>/sessions/<slug>/<session>/<session>.jsonl`, the slug from the working directory. A list reads the head and
//! the tail of each file, so it costs the same for a long session as for a short one. Nothing here writes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use crate::disk::{Disk, Kind};
use crate::line::Line;
use crate::scan::scan;

/// Read from each end of a file. Lines are a few hundred bytes, bodies at most 16 KiB.
const END_BYTES: usize = 64 * 1024;
/// Longer slugs are cut and told apart by a hash.
const SLUG_MAX: usize = 200;

/// A session as far as its ends tell.
#[derive(Debug, Clone)]
pub struct Summary {
    pub session: String,
    pub folder: PathBuf,
    /// Whole lines of the file's beginning, the header first unless it is damaged. Of a short file, all.
    pub head: Vec<Line>,
    /// Whole lines of its end, oldest first. Of a short file, all.
    pub tail: Vec<Line>,
    pub bytes: u64,
    /// When it was last written, nanoseconds since 1970.
    pub modified_ns: i128,
}

impl Summary {
    /// Where the session was begun. `None`: the header is damaged or does not say.
    pub fn cwd(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Header {
            cwd: String,
        }
        self.head.first()?.parse().ok().map(|header: Header| header.cwd)
    }
}

/// Returns the folder name for a working directory, as Claude Code makes it: all but ASCII letters and digits
/// become `-`; what is longer than 200 is cut there and gets a hash of the whole.
///
/// `cwd` should be the real path.
pub fn slug(cwd: &str) -> String {
    // Counted as JavaScript does, in UTF-16: a character outside the basic plane is two.
    let slug: String = cwd
        .encode_utf16()
        .map(|unit| match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
            _ => '-',
        })
        .collect();
    if slug.len() <= SLUG_MAX {
        return slug;
    }
    let hash = cwd
        .encode_utf16()
        .fold(0i32, |hash, unit| hash.wrapping_shl(5).wrapping_sub(hash).wrapping_add(i32::from(unit)));
    format!("{}-{}", &slug[..SLUG_MAX], base_36(hash.unsigned_abs()))
}

/// Returns a session's folder.
pub fn folder(home: &Path, cwd: &str, session: &str) -> PathBuf {
    home.join("sessions").join(slug(cwd)).join(session)
}

/// Finds a session's folder by its id, wherever it was begun. `None`: there is none.
///
/// Errors: the first of the disk's, if the session is nowhere else: it may be where could not be looked.
pub fn find(disk: &dyn Disk, home: &Path, session: &str) -> io::Result<Option<PathBuf>> {
    if !is_session(session) {
        return Ok(None);
    }
    let mut result = Ok(None);
    for slug in folders(disk, &home.join("sessions"))? {
        let folder = slug.join(session);
        match disk.look(&log(&folder, session)) {
            Ok(Some(_)) => return Ok(Some(folder)),
            Ok(None) => {}
            Err(error) => result = result.and(Err(error)),
        }
    }
    result
}

/// Lists all sessions, the last written first.
pub fn list(disk: &dyn Disk, home: &Path) -> io::Result<Vec<Summary>> {
    let mut all = Vec::new();
    for slug in folders(disk, &home.join("sessions"))? {
        all.extend(list_slug(disk, &slug)?);
    }
    sort(&mut all);
    Ok(all)
}

/// Lists the sessions that were begun in a working directory, the last written first.
pub fn list_of(disk: &dyn Disk, home: &Path, cwd: &str) -> io::Result<Vec<Summary>> {
    let mut all = list_slug(disk, &home.join("sessions").join(slug(cwd)))?;
    // Different directories may have one slug. A header that can't be read is the benefit of the doubt.
    all.retain(|summary| summary.cwd().is_none_or(|begun| begun == cwd));
    sort(&mut all);
    Ok(all)
}

/// Returns the session last written of those begun in a working directory: what `--continue` goes on with.
pub fn newest(disk: &dyn Disk, home: &Path, cwd: &str) -> io::Result<Option<Summary>> {
    Ok(list_of(disk, home, cwd)?.into_iter().next())
}

fn list_slug(disk: &dyn Disk, slug: &Path) -> io::Result<Vec<Summary>> {
    let mut all = Vec::new();
    for folder in folders(disk, slug)? {
        if let Some(summary) = summary(disk, &folder)? {
            all.push(summary);
        }
    }
    Ok(all)
}

/// Reads both ends of a session. `None`: nothing was ever saved there.
fn summary(disk: &dyn Disk, folder: &Path) -> io::Result<Option<Summary>> {
    let Some(session) = folder.file_name().and_then(|name| name.to_str()).filter(|name| is_session(name))
    else {
        return Ok(None);
    };
    let path = log(folder, session);
    let Some(meta) = disk.look(&path)?.filter(|meta| meta.kind == Kind::File) else { return Ok(None) };
    let head = lines(disk, &path, 0)?;
    let tail_from = meta.len.saturating_sub(END_BYTES as u64);
    let tail = if tail_from == 0 { head.clone() } else { lines(disk, &path, tail_from)? };
    if head.is_empty() && tail.is_empty() {
        return Ok(None);
    }
    Ok(Some(Summary {
        session: session.to_owned(),
        folder: folder.to_path_buf(),
        head,
        tail,
        bytes: meta.len,
        modified_ns: meta.modified_ns,
    }))
}

/// Returns the whole lines of a stretch; the halves at its ends fail their checksum.
fn lines(disk: &dyn Disk, path: &Path, from: u64) -> io::Result<Vec<Line>> {
    let text = Arc::new(disk.read_range(path, from, END_BYTES)?);
    let found = scan(&text);
    let line = |found: &crate::scan::Found| {
        let mut line = Line::place(&text, found.start, found.len, &found.envelope);
        line.place += from;
        line
    };
    Ok(found.iter().map(line).collect())
}

/// Returns the folders in a folder; none where it does not exist.
fn folders(disk: &dyn Disk, path: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match disk.list(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let folders = entries.into_iter().filter(|entry| entry.kind == Kind::Folder);
    Ok(folders.map(|entry| path.join(entry.name)).collect())
}

fn sort(all: &mut [Summary]) {
    // Ids grow with time, so they decide where the clock does not.
    all.sort_by(|a, b| (b.modified_ns, &b.session).cmp(&(a.modified_ns, &a.session)));
}

fn log(folder: &Path, session: &str) -> PathBuf {
    folder.join(format!("{session}.jsonl"))
}

/// Whether a text can be a session's id: it comes from the command line and becomes part of a path.
fn is_session(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).expect("a remainder of 36 is a digit of base 36"));
        number /= 36;
        if number == 0 {
            break;
        }
    }
    digits.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::{Errno, MemDisk, Op, Verdict};
    use crate::{Durability, NewLine, SessionLog};

    const HOME: &str = "/home";

    fn begin(disk: &MemDisk, cwd: &str, session: &str, count: usize) {
        let data = serde_json::json!({ "format": 1, "cwd": cwd }).to_string();
        let header = NewLine { agent: "main", kind: "header", data: &data, at: "then", ms: 0 };
        let folder = folder(Path::new(HOME), cwd, session);
        let mut log =
            SessionLog::create(Arc::new(disk.clone()), &folder, session, Durability::Disk, header).unwrap();
        let body = format!("{:?}", "x".repeat(1_000));
        for _ in 0..count {
            log.append(&[NewLine { kind: "input", data: &body, ..header }]).unwrap();
        }
    }

    fn names(all: &[Summary]) -> Vec<&str> {
        all.iter().map(|summary| summary.session.as_str()).collect()
    }

    #[test]
    fn a_slug_keeps_letters_and_digits_and_hashes_what_is_cut() {
        let long = format!("/{}", "a".repeat(250));
        for (cwd, want) in [
            ("/home/me/My_Work.rs", "-home-me-My-Work-rs".to_owned()),
            ("/hé/😀", "-h----".to_owned()),
            (&format!("/{}", "a".repeat(199)), format!("-{}", "a".repeat(199))),
            (&long, format!("-{}-{}", "a".repeat(199), "feo44x")),
        ] {
            assert_eq!(slug(cwd), want, "{cwd}");
        }
    }

    #[test]
    fn sessions_are_found_by_id_by_folder_and_by_age() {
        let disk = MemDisk::new();
        begin(&disk, "/w/a", "s1", 1);
        begin(&disk, "/w/b", "s2", 1);
        begin(&disk, "/w/a", "s3", 1);
        // The same slug, another directory.
        begin(&disk, "/w-a", "s4", 1);
        let home = Path::new(HOME);
        assert_eq!(names(&list(&disk, home).unwrap()), ["s4", "s3", "s2", "s1"]);
        assert_eq!(names(&list_of(&disk, home, "/w/a").unwrap()), ["s3", "s1"]);
        assert_eq!(newest(&disk, home, "/w/b").unwrap().unwrap().session, "s2");
        assert!(newest(&disk, home, "/w/c").unwrap().is_none());
        assert_eq!(find(&disk, home, "s2").unwrap(), Some(PathBuf::from("/home/sessions/-w-b/s2")));
        for id in ["s9", "", "../-w-a/s1", "s1/s1"] {
            assert_eq!(find(&disk, home, id).unwrap(), None, "{id}");
        }
        assert!(list(&disk, Path::new("/elsewhere")).unwrap().is_empty());
    }

    #[test]
    fn a_folder_that_cannot_be_looked_into_hides_no_other_session_and_is_told_of() {
        let disk = MemDisk::new();
        begin(&disk, "/w/a", "s1", 1);
        begin(&disk, "/w/b", "s2", 1);
        disk.set_faults(|call| match call.op {
            Op::Look if call.path.starts_with("/home/sessions/-w-a") => Verdict::Fail(Errno::Denied),
            _ => Verdict::Go,
        });
        let home = Path::new(HOME);
        assert_eq!(find(&disk, home, "s2").unwrap(), Some(PathBuf::from("/home/sessions/-w-b/s2")));
        for id in ["s1", "s9"] {
            assert_eq!(find(&disk, home, id).unwrap_err().kind(), io::ErrorKind::PermissionDenied, "{id}");
        }
    }

    #[test]
    fn a_long_session_is_listed_by_its_ends_only() {
        let disk = MemDisk::new();
        begin(&disk, "/w", "s", 1_000);
        disk.set_faults(|call| {
            assert!(call.op != Op::Read || (1..=END_BYTES).contains(&call.bytes), "a whole file is read");
            Verdict::Go
        });
        let summary = newest(&disk, Path::new(HOME), "/w").unwrap().unwrap();
        assert_eq!(summary.cwd().unwrap(), "/w");
        assert_eq!((summary.head[0].seq, summary.tail.last().unwrap().seq), (1, 1_001));
        let last = summary.tail.last().unwrap();
        assert_eq!(last.place + last.raw().len() as u64 + 1, summary.bytes);
        assert!(summary.head.len() < 100 && summary.tail.len() < 100);
    }

    #[test]
    fn what_was_never_begun_is_not_listed_and_a_lost_header_still_is() {
        let disk = MemDisk::new();
        begin(&disk, "/w", "s", 3);
        let path = Path::new("/home/sessions/-w/s/s.jsonl");
        let mut bytes = disk.peek(path).unwrap();
        bytes[20] ^= 1;
        disk.poke(path, &bytes);
        disk.poke(Path::new("/home/sessions/-w/empty/empty.jsonl"), b"");
        disk.poke(Path::new("/home/sessions/-w/notes.txt"), b"");
        let all = list(&disk, Path::new(HOME)).unwrap();
        assert_eq!(names(&all), ["s"]);
        assert_eq!(all[0].head[0].seq, 2);
        assert_eq!(names(&list_of(&disk, Path::new(HOME), "/w").unwrap()), ["s"]);
    }
}
