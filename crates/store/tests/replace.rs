//! A user's file is replaced: on this machine's disk, and on one that fails and loses power.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use common::dice;
use yaoki_store::mem::{Errno, MemDisk, Op, Verdict};
use yaoki_store::replace::{Expect, ReplaceError, ReplaceOptions, Replaced};
use yaoki_store::{Disk, Hash, RealDisk, replace_file};

fn replace(path: &Path, bytes: &[u8], options: ReplaceOptions) -> Result<Replaced, ReplaceError> {
    replace_file(&RealDisk, path, bytes, options)
}

fn any() -> ReplaceOptions {
    ReplaceOptions::default()
}

fn names(folder: &Path) -> Vec<String> {
    RealDisk.list(folder).unwrap().into_iter().map(|entry| entry.name).collect()
}

#[test]
fn bytes_change_and_mode_owner_and_links_stay() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep").join("script.sh");
    fs::create_dir(folder.path().join("deep")).unwrap();
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o4751)).unwrap();
    let owner = fs::metadata(&file).unwrap().uid();
    symlink("deep/script.sh", folder.path().join("near")).unwrap();
    symlink(folder.path().join("near"), folder.path().join("far")).unwrap();

    let replaced = replace(&folder.path().join("far"), b"new", any()).unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"new");
    let meta = fs::symlink_metadata(&file).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.uid()), (0o4751, owner));
    assert!(fs::symlink_metadata(folder.path().join("far")).unwrap().is_symlink());
    assert_eq!((replaced.is_new, replaced.mode, replaced.syncs), (false, 0o4751, 2));
    assert_eq!(replaced.hash, Hash::of(b"new"));
    assert_eq!(names(folder.path()), ["deep", "far", "near"]);
    assert_eq!(names(&folder.path().join("deep")), ["script.sh"]);
}

#[test]
fn a_new_file_has_the_bits_any_program_would_give_it() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    let path = folder.path().join("a/b/new");
    assert!(matches!(replace(&path, b"x", any()), Err(ReplaceError::Storage { .. })));
    let options = ReplaceOptions { create_folders: true, ..any() };
    let replaced = replace(&path, b"x", options).unwrap();
    assert!(replaced.is_new);
    assert_eq!(replaced.mode, fs::metadata(&plain).unwrap().mode() & 0o7777);
    let options = ReplaceOptions { mode: Some(0o755), ..any() };
    assert_eq!(replace(&path, b"y", options).unwrap().mode, 0o755);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn a_dangling_link_is_filled_and_a_loop_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    symlink("target", at("link")).unwrap();
    assert!(replace(&at("link"), b"x", any()).unwrap().is_new);
    assert_eq!(fs::read(at("target")).unwrap(), b"x");
    symlink("b", at("a")).unwrap();
    symlink("a", at("b")).unwrap();
    assert!(matches!(replace(&at("a"), b"x", any()), Err(ReplaceError::LinkLoop { .. })));
    assert!(matches!(replace(folder.path(), b"x", any()), Err(ReplaceError::NotAFile { .. })));
}

#[test]
fn what_changed_since_it_was_read_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let with = |expect| ReplaceOptions { expect, ..any() };
    assert!(matches!(
        replace(&path, b"x", with(Expect::Hash(Hash::of(b"")))),
        Err(ReplaceError::Changed { .. })
    ));
    replace(&path, b"one", with(Expect::Missing)).unwrap();
    assert!(matches!(replace(&path, b"x", with(Expect::Missing)), Err(ReplaceError::Changed { .. })));
    replace(&path, b"two", with(Expect::Hash(Hash::of(b"one")))).unwrap();
    let error = replace(&path, b"x", with(Expect::Hash(Hash::of(b"one")))).unwrap_err();
    assert_eq!(error.to_string(), format!("{} has changed since it was read", path.display()));
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(names(folder.path()), ["f"]);
}

const FILE: &str = "/w/f";

fn disk(old: Option<&[u8]>) -> MemDisk {
    let disk = MemDisk::new();
    disk.poke(Path::new("/w/other"), b"");
    if let Some(old) = old {
        disk.poke(Path::new(FILE), old);
    }
    disk
}

#[test]
fn a_write_protected_file_or_folder_is_told_apart_from_a_broken_disk() {
    let protected = disk(Some(b"old"));
    protected.open_append(Path::new(FILE)).unwrap().set_mode(0o444).unwrap();
    let error = replace_file(&protected, Path::new(FILE), b"new", any()).unwrap_err();
    assert!(matches!(error, ReplaceError::ReadOnly { .. }), "{error}");
    for errno in [Errno::Denied, Errno::ReadOnly] {
        let disk = disk(Some(b"old"));
        disk.set_faults(
            move |call| if call.op == Op::CreateNew { Verdict::Fail(errno) } else { Verdict::Go },
        );
        let error = replace_file(&disk, Path::new(FILE), b"new", any()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot write in /w, where /w/f is: a file is replaced by a new one beside it"
        );
        assert_eq!(disk.peek(Path::new(FILE)).unwrap(), b"old");
    }
}

#[test]
fn somebody_who_writes_meanwhile_wins() {
    let disk = disk(Some(b"old"));
    let other = disk.clone();
    disk.set_faults(move |call| {
        if call.op == Op::SyncData {
            other.poke(Path::new(FILE), b"theirs");
        }
        Verdict::Go
    });
    let options = ReplaceOptions { expect: Expect::Hash(Hash::of(b"old")), ..any() };
    let error = replace_file(&disk, Path::new(FILE), b"new", options).unwrap_err();
    assert!(matches!(error, ReplaceError::Changed { .. }), "{error}");
    assert_eq!(disk.peek(Path::new(FILE)).unwrap(), b"theirs");
    assert_eq!(disk.paths(), [PathBuf::from(FILE), "/w/other".into()]);
}

#[test]
fn at_every_call_that_fails_or_loses_power_the_file_is_all_old_or_all_new() {
    let new = vec![b'n'; 3_000];
    for old in [None, Some(vec![b'o'; 2_000])] {
        let count = {
            let disk = disk(old.as_deref());
            replace_file(&disk, Path::new(FILE), &new, any()).unwrap();
            disk.call_count()
        };
        for index in 0..count {
            for verdict in [
                Verdict::PowerCut,
                Verdict::Fail(Errno::Io),
                Verdict::Fail(Errno::NoSpace),
                Verdict::FailDropping(Errno::Io),
                Verdict::Short(100),
            ] {
                let disk = disk(old.as_deref());
                disk.set_faults(move |call| if call.index == index { verdict } else { Verdict::Go });
                let result = replace_file(&disk, Path::new(FILE), &new, any());
                disk.clear_faults();
                let hint = format!("{verdict:?} at {index}");
                if verdict != Verdict::PowerCut {
                    let strays =
                        disk.paths().iter().filter(|path| path.to_str().unwrap().contains("yaoki")).count();
                    assert_eq!(strays, 0, "{hint}");
                }
                for seed in 0..10 {
                    let disk = disk.fork();
                    disk.crash(&mut dice(seed));
                    let there = disk.peek(Path::new(FILE));
                    match &result {
                        Ok(_) => assert!(there.as_ref() == Some(&new), "{hint}"),
                        Err(_) => assert!(there == old || there.as_ref() == Some(&new), "{hint}"),
                    }
                }
            }
        }
    }
}
