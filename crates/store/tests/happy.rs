//! The course of a session on a disk that does what it is told.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

mod common;

use common::*;
use yaoki_store::{Durability, NewLine, OpenError, SessionLog, read_only};

#[test]
fn a_session_is_created_appended_synced_and_opened_again() {
    let disk = disk();
    let mut log = create(&disk);
    assert_eq!((log.last_seq(), log.durable(), log.syncs()), (1, 0, 0));
    assert_eq!(log.append(&[input("a"), input("b")]).unwrap(), 2..=3);
    log.sync().unwrap();
    log.sync().unwrap();
    assert_eq!((log.durable(), log.syncs()), (3, 1), "nothing pending, nothing synced");
    assert_eq!(log.append(&[input("c")]).unwrap(), 4..=4);
    assert_eq!(log.durable(), 3);
    log.close().unwrap();

    let opened = open(&disk).unwrap();
    assert!(opened.found.is_clean(), "{:?}", opened.found);
    let seen: Vec<_> =
        opened.lines.iter().map(|line| (line.seq, line.epoch, line.durable, line.data())).collect();
    assert_eq!(
        seen,
        [(1, 1, 0, HEADER), (2, 1, 0, r#""a""#), (3, 1, 0, r#""b""#), (4, 1, 3, r#""c""#)],
        "{seen:?}"
    );
    assert_eq!((opened.log.epoch(), opened.log.last_seq(), opened.log.durable()), (2, 4, 4));
}

#[test]
fn an_append_is_one_write_and_a_sync_one_sync() {
    use yaoki_store::mem::{Op, Verdict};
    let disk = disk();
    let mut log = create(&disk);
    log.sync().unwrap();
    let calls = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = calls.clone();
    disk.set_faults(move |call| {
        seen.lock().unwrap().push(call.op);
        Verdict::Go
    });
    log.append(&[input("a"), input("b"), input("c")]).unwrap();
    log.sync().unwrap();
    assert_eq!(*calls.lock().unwrap(), [Op::Append, Op::SyncData, Op::Look]);
}

#[test]
fn the_second_writer_is_refused_and_takes_over_when_the_first_is_gone() {
    let disk = disk();
    let log = create(&disk);
    let error = open(&disk).unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }));
    assert_eq!(error.to_string(), "session s is open in another process; wait until that ends");
    assert_eq!(read(&disk).0.len(), 1, "readers are not kept out");
    drop(log);
    assert_eq!(open(&disk).unwrap().log.epoch(), 2);
}

#[test]
fn without_syncs_nothing_is_synced_and_damage_is_still_no_torn_tail() {
    let disk = disk();
    let mut log = create_with(&disk, Durability::Process);
    for text in ["a", "b", "c"] {
        log.append(&[input(text)]).unwrap();
        log.sync().unwrap();
        assert_eq!(log.durable(), log.last_seq());
    }
    assert_eq!(log.syncs(), 0);
    let mut pieces = pieces(&disk.log());
    pieces[2][30] ^= 1;
    disk.set_log(&pieces.concat());
    let (lines, found) = read(&disk);
    assert_eq!((lines.len(), found.gaps.len(), found.torn), (4, 1, None));
}

#[test]
fn a_fork_keeps_seqs_epochs_and_bodies_and_writes_on() {
    let disk = disk();
    let mut log = create(&disk);
    log.append(&[input("a")]).unwrap();
    drop(log);
    let mut opened = open(&disk).unwrap();
    opened.log.append(&[input("b"), input("not taken")]).unwrap();
    let lines = read(&disk).0;

    let shared = disk.shared();
    let mut fork =
        SessionLog::fork(shared, "/home/fork".as_ref(), "f", Durability::Disk, header(), &lines[1..3])
            .unwrap();
    assert_eq!(fork.append(&[input("own")]).unwrap(), 4..=4);
    fork.close().unwrap();
    let (copied, found) = read_only(&*disk, "/home/fork".as_ref(), "f").unwrap();
    assert!(found.is_clean(), "{found}");
    let seen: Vec<_> = copied.iter().map(|line| (line.seq, line.epoch, line.data())).collect();
    assert_eq!(seen, [(1, 1, HEADER), (2, 1, r#""a""#), (3, 2, r#""b""#), (4, 3, r#""own""#)]);
}

#[test]
fn what_a_reader_could_not_take_apart_is_not_written() {
    let disk = disk();
    let mut log = create(&disk);
    for bad in [
        NewLine { agent: "a\"b", ..input("x") },
        NewLine { kind: "a\\b", ..input("x") },
        NewLine { at: "now\n", ..input("x") },
        NewLine { data: "{", ..input("x") },
        NewLine { data: "1,\"crc\":\"00000000\"}\n{}", ..input("x") },
    ] {
        assert!(log.append(&[input("good"), bad]).is_err(), "{bad:?}");
    }
    assert_eq!(log.last_seq(), 1);
    assert_eq!(read(&disk).0.len(), 1);
}
