//! Logs that somebody else removes, replaces or cuts while they are open.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::*;
use yaoki_store::mem::{Errno, Op, Verdict};
use yaoki_store::{AppendError, Disk, Durability, OpenError, RealDisk, SessionLog};

const BOTH: [Durability; 2] = [Durability::Disk, Durability::Process];

/// A log of three lines, two of them synced.
fn begun(disk: &TestDisk, durability: Durability) -> SessionLog {
    let mut log = create_with(disk, durability);
    log.append(&[input("a")]).unwrap();
    log.sync().unwrap();
    log.append(&[input("b")]).unwrap();
    log
}

/// As `rm -rf` of the home.
fn remove_all(disk: &TestDisk) {
    for path in disk.paths() {
        disk.remove(&path).unwrap();
    }
    let folders = Path::new(FOLDER).join("run");
    for folder in folders.ancestors().filter(|path| path.parent().is_some()) {
        disk.remove_dir(folder).unwrap();
    }
}

fn check_whole(disk: &TestDisk, want: &[&str], hint: &str) {
    let opened = open(disk).unwrap();
    assert!(opened.found.is_clean(), "{hint}: {}", opened.found);
    let bodies: Vec<String> = opened.lines[1..].iter().map(|line| line.parse().unwrap()).collect();
    assert_eq!(bodies, want, "{hint}");
}

/// The log is lost: it says why, and takes nothing more.
fn check_lost(log: &mut SessionLog, why: &str) {
    let durable = log.durable();
    let error = log.sync().unwrap_err();
    assert!(error.source.to_string().starts_with(why), "{}", error.source);
    assert!(matches!(log.append(&[input("more")]), Err(AppendError::Storage(_))));
    assert!(log.sync().is_err());
    assert_eq!(log.durable(), durable);
}

#[test]
fn a_removed_log_is_written_anew_by_the_next_sync() {
    for durability in BOTH {
        for is_all in [false, true] {
            for seed in 0..20 {
                let hint = format!("{durability:?}, all {is_all}, seed {seed}");
                let disk = disk();
                let mut log = begun(&disk, durability);
                if is_all {
                    remove_all(&disk)
                } else {
                    disk.remove(LOG.as_ref()).unwrap()
                }
                log.sync().unwrap();
                assert_eq!(log.durable(), 3);
                assert!(matches!(open(&disk), Err(OpenError::Locked { .. })), "{hint}: still ours alone");
                assert!(log.has_ballast() && disk.paths().contains(&Path::new(FOLDER).join("run/ballast")));
                log.append(&[input("c")]).unwrap();
                log.sync().unwrap();
                drop(log);
                if durability == Durability::Disk {
                    disk.crash(&mut dice(seed));
                }
                check_whole(&disk, &["a", "b", "c"], &hint);
            }
        }
    }
}

#[test]
fn a_log_that_was_removed_and_cannot_be_written_anew_is_lost() {
    for durability in BOTH {
        let disk = disk();
        let mut log = begun(&disk, durability);
        remove_all(&disk);
        disk.set_faults(|call| match call.op {
            Op::CreateDir => Verdict::Fail(Errno::ReadOnly),
            _ => Verdict::Go,
        });
        check_lost(&mut log, "the log was removed; then, moving to a new file: ");
        assert!(disk.paths().is_empty());
    }
}

#[test]
fn a_log_that_was_replaced_is_written_anew_with_what_is_ours() {
    let disk = disk();
    let mut log = begun(&disk, Durability::Disk);
    // As an editor does; its copy is as long as ours, and then no more.
    let copy = PathBuf::from(format!("{LOG}~"));
    disk.poke(&copy, &disk.log());
    disk.rename(&copy, LOG.as_ref()).unwrap();
    log.append(&[input("c")]).unwrap();
    log.sync().unwrap();
    drop(log);
    check_whole(&disk, &["a", "b", "c"], "replaced");
}

#[test]
fn a_log_that_was_cut_in_what_was_synced_is_lost() {
    for durability in BOTH {
        for left in [0, 1, 100] {
            let disk = disk();
            let mut log = begun(&disk, durability);
            let whole = disk.log().len();
            disk.set_log(&disk.log()[..left]);
            check_lost(&mut log, &format!("{left} of {whole} bytes of the log are left; then, "));
            assert_eq!(disk.log().len(), left, "what is left stays as it is");
        }
    }
}

#[test]
fn a_log_that_was_cut_behind_what_was_synced_is_written_anew() {
    let disk = disk();
    let mut log = begun(&disk, Durability::Disk);
    disk.set_log(&disk.log()[..disk.log().len() - 20]);
    log.append(&[input("c")]).unwrap();
    log.sync().unwrap();
    drop(log);
    check_whole(&disk, &["a", "b", "c"], "cut");
}

#[test]
fn any_call_of_writing_a_removed_log_anew_fails_and_the_log_is_whole_or_lost() {
    let run = |disk: &TestDisk| {
        let mut log = begun(disk, Durability::Disk);
        remove_all(disk);
        let from = disk.call_count();
        (log.sync().is_ok(), from)
    };
    let (from, to) = {
        let disk = disk();
        let (_, from) = run(&disk);
        (from, disk.call_count())
    };
    let mut losses = 0;
    for index in from..to {
        for verdict in
            [Verdict::Fail(Errno::Io), Verdict::FailAfter(Errno::Io), Verdict::Fail(Errno::NoSpace)]
        {
            let disk = disk();
            disk.set_faults(move |call| if call.index == index { verdict } else { Verdict::Go });
            let (is_kept, _) = run(&disk);
            disk.clear_faults();
            disk.crash(&mut dice(index));
            if is_kept {
                check_whole(&disk, &["a", "b"], &format!("{verdict:?} at {index}"));
            } else {
                losses += 1;
            }
        }
    }
    assert!(0 < losses, "{from}..{to}");
}

#[test]
fn on_a_real_disk_a_removed_home_comes_back_and_a_cut_log_is_lost() {
    for durability in BOTH {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("sessions/-w/s");
        let begun = |folder: &Path| {
            let mut log = SessionLog::create(Arc::new(RealDisk), folder, "s", durability, header()).unwrap();
            log.append(&[input("a")]).unwrap();
            log.sync().unwrap();
            log.append(&[input("b")]).unwrap();
            log
        };
        let mut log = begun(&folder);
        std::fs::remove_dir_all(home.path().join("sessions")).unwrap();
        log.sync().unwrap();
        log.append(&[input("c")]).unwrap();
        log.close().unwrap();
        let opened = SessionLog::open(Arc::new(RealDisk), &folder, "s", durability).unwrap();
        assert!(opened.found.is_clean(), "{}", opened.found);
        assert_eq!(opened.lines.len(), 4);

        let folder = home.path().join("sessions/-w/t");
        let mut log = begun(&folder);
        std::fs::File::create(folder.join("s.jsonl")).unwrap();
        check_lost(&mut log, "0 of ");
    }
}
