//! Disks that fail, fill up, cut writes short and lose power, at every call.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use common::*;
use yaoki_store::mem::{Call, Errno, MemDisk, Op, Verdict};
use yaoki_store::{AppendError, CreateError, Durability, OpenError, SessionLog};

/// What a caller knows: what was acknowledged, and all it ever tried to write.
#[derive(Debug, Default)]
struct World {
    acknowledged: Vec<String>,
    tried: BTreeSet<(u64, String)>,
}

impl World {
    /// Appends and syncs as an agent would: a failed append is tried again once, a failed sync ends it.
    fn work(&mut self, log: &mut SessionLog, batches: &[usize], name: &str) {
        let mut bodies = self.acknowledged.clone();
        bodies.resize(log.last_seq() as usize, String::new());
        for (batch, count) in batches.iter().enumerate() {
            for attempt in 0..2 {
                let texts = (0..*count)
                    .map(|index| format!("{name} {batch}.{index} try {attempt} {}", "y".repeat(300)));
                let texts: Vec<String> = texts.collect();
                let lines: Vec<_> = texts.iter().map(|text| input(text)).collect();
                for (seq, line) in (log.last_seq() + 1..).zip(&lines) {
                    self.tried.insert((seq, line.data.to_owned()));
                }
                match log.append(&lines) {
                    Ok(_) => {
                        bodies.extend(lines.iter().map(|line| line.data.to_owned()));
                        break;
                    }
                    Err(AppendError::Storage(_)) => return,
                    Err(_) => {}
                }
            }
            if batch % 2 == 1 {
                let before = log.durable();
                if log.sync().is_err() {
                    assert_eq!(log.durable(), before);
                    assert!(log.append(&[input("more")]).is_err(), "a lost log takes nothing");
                    assert!(log.sync().is_err(), "a second sync is not believed");
                    return;
                }
                assert_eq!(log.durable(), log.last_seq());
                self.acknowledge(&bodies);
            }
        }
    }

    fn acknowledge(&mut self, bodies: &[String]) {
        for (index, body) in bodies.iter().enumerate() {
            match self.acknowledged.get_mut(index) {
                Some(known) if known.is_empty() => *known = body.clone(),
                Some(_) => {}
                None => self.acknowledged.push(body.clone()),
            }
        }
    }

    /// Opens a session that may have lost anything that was not acknowledged, and nothing else.
    fn open(&mut self, disk: &TestDisk, hint: &str) -> Option<SessionLog> {
        let opened = match open(disk) {
            Ok(opened) => opened,
            Err(OpenError::NotFound { .. } | OpenError::Empty { .. }) if self.acknowledged.is_empty() => {
                return None;
            }
            Err(error) => panic!("{hint}: {error}: {:?}", std::error::Error::source(&error)),
        };
        assert!(!opened.found.is_alarm() || opened.found.is_resealed, "{hint}: {}", opened.found);
        assert!(opened.found.gaps.is_empty(), "{hint}: {}", opened.found);
        let bodies: Vec<String> = opened.lines.iter().map(|line| line.data().to_owned()).collect();
        assert!(
            self.acknowledged.len() <= bodies.len(),
            "{hint}: {} {}",
            self.acknowledged.len(),
            bodies.len()
        );
        for (seq, body) in (1..).zip(&bodies) {
            assert!(body == HEADER || self.tried.contains(&(seq, body.clone())), "{hint}: {seq} is invented");
            let known = self.acknowledged.get(seq as usize - 1).filter(|known| !known.is_empty());
            assert!(known.is_none_or(|known| known == body), "{hint}: {seq} has changed");
        }
        // An open syncs, so what it shows is acknowledged.
        self.acknowledge(&bodies);
        Some(opened.log)
    }
}

/// A session over two processes. Returns what its caller knows.
fn run(disk: &TestDisk) -> World {
    let mut world = World::default();
    match SessionLog::create(disk.shared(), FOLDER.as_ref(), "s", Durability::Disk, header()) {
        Ok(mut log) => world.work(&mut log, &[1, 2, 3, 1, 1], "first"),
        Err(CreateError::Storage { .. } | CreateError::Header(_)) => {}
        Err(error) => panic!("{error}"),
    }
    // The process was killed; the disk goes on.
    if let Ok(opened) = open(disk) {
        let bodies: Vec<String> = opened.lines.iter().map(|line| line.data().to_owned()).collect();
        world.acknowledge(&bodies);
        let mut log = opened.log;
        world.work(&mut log, &[2, 1, 1, 2], "second");
        if log.close().is_ok() {
            // Nothing more is known than `work` checked.
        }
    }
    world
}

/// Gives the verdict at the n-th call only.
fn at(index: u64, verdict: Verdict) -> impl FnMut(&Call) -> Verdict + Send {
    move |call| if call.index == index { verdict } else { Verdict::Go }
}

fn call_count() -> u64 {
    let disk = disk();
    run(&disk);
    disk.call_count()
}

#[test]
fn the_power_goes_at_any_call_and_nothing_acknowledged_is_lost() {
    for index in 0..call_count() {
        let disk = disk();
        disk.set_faults(at(index, Verdict::PowerCut));
        let world = run(&disk);
        for seed in 0..20 {
            let disk = TestDisk(disk.fork());
            disk.crash(&mut dice(seed));
            let hint = format!("call {index}, seed {seed}");
            let mut world = World { acknowledged: world.acknowledged.clone(), tried: world.tried.clone() };
            if let Some(mut log) = world.open(&disk, &hint) {
                world.work(&mut log, &[1, 1], "third");
                drop(log);
                disk.crash(&mut dice(seed + 1));
                world.open(&disk, &hint).unwrap();
            }
        }
    }
}

#[test]
fn any_call_fails_once_in_any_way_and_nothing_acknowledged_is_lost() {
    use Errno::*;
    let verdicts = [Io, NoSpace, Quota, TooManyFiles, ReadOnly, Interrupted]
        .into_iter()
        .flat_map(|errno| [Verdict::Fail(errno), Verdict::FailAfter(errno)])
        .chain([Verdict::FailDropping(Io), Verdict::Short(1), Verdict::Short(200), Verdict::Short(500)]);
    let count = call_count();
    for verdict in verdicts {
        for index in 0..count {
            let disk = disk();
            disk.set_faults(at(index, verdict));
            let world = run(&disk);
            disk.clear_faults();
            for seed in 0..4 {
                let disk = TestDisk(disk.fork());
                let hint = format!("{verdict:?} at call {index}, seed {seed}");
                match seed {
                    0 => {}
                    1 => disk.evict(),
                    _ => disk.crash(&mut dice(seed)),
                }
                let mut world =
                    World { acknowledged: world.acknowledged.clone(), tried: world.tried.clone() };
                if let Some(mut log) = world.open(&disk, &hint) {
                    world.work(&mut log, &[1, 1], "third");
                    assert_eq!(log.durable(), log.last_seq(), "{hint}");
                }
            }
        }
    }
}

#[test]
fn many_faults_and_power_cuts_in_a_row_break_no_promise() {
    for seed in 0..3_000 {
        let disk = disk();
        let mut roll = dice(seed);
        let mut world = World::default();
        for life in 0..6 {
            let mut luck = dice(roll());
            let chance = [0, 40, 12, 5][(luck() % 4) as usize];
            disk.set_faults(move |_| {
                if chance == 0 || !luck().is_multiple_of(chance) {
                    return Verdict::Go;
                }
                let errno = [Errno::Io, Errno::NoSpace, Errno::Interrupted, Errno::TooManyFiles]
                    [(luck() % 4) as usize];
                match luck() % 8 {
                    0 | 1 => Verdict::Fail(errno),
                    2 => Verdict::FailAfter(errno),
                    3 => Verdict::FailDropping(Errno::Io),
                    4 | 5 => Verdict::Short((luck() % 700) as usize),
                    6 => Verdict::PowerCut,
                    _ => Verdict::Go,
                }
            });
            let opened = match open(&disk) {
                Ok(opened) => {
                    let bodies: Vec<String> =
                        opened.lines.iter().map(|line| line.data().to_owned()).collect();
                    world.acknowledge(&bodies);
                    Some(opened.log)
                }
                Err(OpenError::NotFound { .. }) => {
                    SessionLog::create(disk.shared(), FOLDER.as_ref(), "s", Durability::Disk, header()).ok()
                }
                Err(_) => None,
            };
            if let Some(mut log) = opened {
                world.work(&mut log, &[1, 2, 1, 1], &format!("life {life}"));
            }
            disk.clear_faults();
            // A power cut hides what a dropping sync lost only if somebody believed it.
            disk.crash(&mut roll);
            if world.open(&disk, &format!("seed {seed}, life {life}")).is_none() {
                // Never begun: the folder is taken away, as its owner would.
                for path in disk.paths() {
                    yaoki_store::Disk::remove(&*disk, &path).unwrap();
                }
            }
        }
    }
}

#[test]
fn a_session_that_was_killed_before_its_first_sync_lasts_once_it_was_opened() {
    for seed in 0..50 {
        let disk = disk();
        drop(create(&disk));
        let opened = open(&disk).unwrap();
        assert_eq!(opened.log.durable(), 1);
        disk.crash(&mut dice(seed));
        assert_eq!(open(&disk).unwrap().lines.len(), 1, "seed {seed}");
    }
}

#[test]
fn a_session_begun_without_syncs_lasts_once_it_was_opened_with_them() {
    for seed in 0..50 {
        let disk = disk();
        let mut log = create_with(&disk, Durability::Process);
        log.sync().unwrap();
        log.append(&[input("a")]).unwrap();
        log.close().unwrap();
        drop(open(&disk).unwrap());
        disk.crash(&mut dice(seed));
        assert_eq!(open(&disk).unwrap().lines.len(), 2, "seed {seed}");
    }
}

#[test]
fn the_first_failed_sync_moves_the_log_to_a_new_file_and_is_not_tried_again() {
    for verdict in [Verdict::Fail(Errno::Io), Verdict::FailDropping(Errno::Io)] {
        let disk = disk();
        let mut log = create(&disk);
        log.append(&[input("a")]).unwrap();
        log.sync().unwrap();
        log.append(&[input("b"), input("c")]).unwrap();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let seen = calls.clone();
        let mut is_first = true;
        disk.set_faults(move |call| {
            seen.lock()
                .unwrap()
                .push((call.op, call.path.extension().map(|name| name.to_str().unwrap().to_owned())));
            if call.op == Op::SyncData && std::mem::take(&mut is_first) { verdict } else { Verdict::Go }
        });
        log.sync().unwrap();
        assert_eq!((log.durable(), log.syncs()), (4, 3));
        let syncs: Vec<_> =
            calls.lock().unwrap().iter().filter(|(op, _)| *op == Op::SyncData).cloned().collect();
        let on = |name: &str| (Op::SyncData, Some(name.to_owned()));
        assert_eq!(syncs, [on("jsonl"), on("new")]);
        disk.evict();
        log.append(&[input("d")]).unwrap();
        log.sync().unwrap();
        drop(log);
        disk.crash(&mut dice(1));
        let opened = open(&disk).unwrap();
        assert!(opened.found.is_clean(), "{}", opened.found);
        assert_eq!(opened.lines.len(), 5);
        assert_eq!(disk.beside("new"), None);
    }
}

#[test]
fn when_the_move_fails_too_the_log_is_lost_for_good_and_the_next_open_writes_it_anew() {
    let disk = disk();
    let mut log = create(&disk);
    log.append(&[input("a")]).unwrap();
    log.sync().unwrap();
    log.append(&[input("b")]).unwrap();
    disk.set_faults(
        |call| if call.op == Op::SyncData { Verdict::FailDropping(Errno::Io) } else { Verdict::Go },
    );
    let error = log.sync().unwrap_err();
    assert_eq!(error.to_string(), format!("cannot make {LOG} durable: the records from 3 on may be lost"),);
    disk.clear_faults();
    assert!(log.sync().is_err() && log.append(&[input("c")]).is_err());
    assert_eq!(log.durable(), 2);
    assert_eq!(disk.beside("new"), None, "no half file is left");
    drop(log);
    // Not yet evicted: the page cache still shows line 3, which is nowhere on disk.
    let opened = open(&disk).unwrap();
    assert!(opened.found.is_resealed && opened.found.is_alarm());
    let shown = opened.lines.len();
    drop(opened);
    disk.crash(&mut dice(3));
    let opened = open(&disk).unwrap();
    assert_eq!((opened.lines.len(), shown), (3, 3));
    assert!(opened.found.is_clean(), "told once: {}", opened.found);
}

#[test]
fn a_log_that_no_longer_holds_what_was_synced_is_not_copied() {
    let disk = disk();
    let mut log = create(&disk);
    log.append(&[input("a"), input("b")]).unwrap();
    log.sync().unwrap();
    let mut bytes = disk.log();
    bytes[300] ^= 1;
    disk.set_log(&bytes);
    log.append(&[input("c")]).unwrap();
    let count = AtomicU64::new(0);
    disk.set_faults(move |call| match call.op {
        Op::SyncData if count.fetch_add(1, Ordering::Relaxed) == 0 => Verdict::Fail(Errno::Io),
        _ => Verdict::Go,
    });
    assert!(log.sync().is_err());
    assert_eq!(log.durable(), 3);
}

#[test]
fn a_full_disk_still_takes_the_outcome_of_a_running_effect_and_no_new_one() {
    let disk = disk();
    let mut log = create(&disk);
    log.append(&[input("started")]).unwrap();
    log.sync().unwrap();
    assert!(log.has_ballast());
    disk.set_space(Some(disk.space_used() + 100));
    let before = disk.log();
    let error =
        log.append(&[input("a new intent that is too long for what is left on this disk")]).unwrap_err();
    assert!(matches!(error, AppendError::Full { .. }), "{error}");
    assert_eq!(disk.log(), before, "cut back");
    let outcome = "o".repeat(16 * 1024);
    assert_eq!(log.append_reserved(&[input(&outcome), input("notice")]).unwrap(), 3..=4);
    log.sync().unwrap();
    assert!(!log.has_ballast());
    // Full again, and nothing left to release.
    disk.set_space(Some(disk.space_used()));
    assert!(matches!(log.append_reserved(&[input("x")]), Err(AppendError::Full { .. })));
    assert!(!log.refill_ballast());
    // There is room again: the same session goes on.
    disk.set_space(None);
    assert_eq!(log.append(&[input("next")]).unwrap(), 5..=5);
    assert!(log.refill_ballast() && log.has_ballast());
    log.close().unwrap();
    let opened = open(&disk).unwrap();
    assert!(opened.found.is_clean(), "{}", opened.found);
    assert_eq!(opened.lines.len(), 5);
}

#[test]
fn a_session_on_a_small_disk_begins_without_a_ballast_and_takes_records() {
    let disk = disk();
    disk.set_space(Some(1_500_000));
    let mut log = create(&disk);
    assert!(!log.has_ballast());
    for part in 0..50 {
        log.append(&[input(&format!("{part} {}", "z".repeat(16 * 1024)))]).unwrap();
    }
    log.close().unwrap();
    let opened = open(&disk).unwrap();
    assert_eq!(opened.lines.len(), 51);
    assert!(!opened.log.has_ballast(), "nor when it is opened");
}

#[test]
fn a_session_that_cannot_begin_leaves_nothing() {
    let begin = |disk: &TestDisk, lines: &[yaoki_store::Line]| {
        SessionLog::fork(disk.shared(), FOLDER.as_ref(), "s", Durability::Disk, header(), lines).map(drop)
    };
    let lines = read(&disk_with(&long(4))).0.split_off(1);
    let other = Path::new("/home/sessions/-w/t/t.jsonl");
    let setup = |is_first: bool| {
        let disk = disk();
        if !is_first {
            disk.poke(other, b"another session");
        }
        disk
    };
    let check = |disk: &TestDisk, is_first: bool, hint: &str| {
        assert_eq!(disk.paths(), if is_first { vec![] } else { vec![other.to_path_buf()] }, "{hint}");
        for (folder, is_left) in [(FOLDER, false), ("/home/sessions/-w", !is_first), ("/home", !is_first)] {
            let look = yaoki_store::Disk::look(&**disk, folder.as_ref()).unwrap();
            assert_eq!(look.is_some(), is_left, "{hint}: {folder}");
        }
    };
    for is_first in [true, false] {
        for space in [0, 100, 400] {
            let disk = setup(is_first);
            disk.set_space(Some(disk.space_used() + space));
            let error = begin(&disk, &lines).unwrap_err();
            assert!(matches!(error, CreateError::Header(AppendError::Full { .. })), "{error}");
            check(&disk, is_first, &format!("{space} bytes"));
        }
        let count = {
            let disk = setup(is_first);
            begin(&disk, &lines).unwrap();
            disk.call_count()
        };
        let mut failures = 0;
        for index in 0..count {
            for verdict in [Verdict::Fail(Errno::NoSpace), Verdict::FailAfter(Errno::Io)] {
                let disk = setup(is_first);
                disk.set_faults(at(index, verdict));
                if begin(&disk, &lines).is_err() {
                    failures += 1;
                    check(&disk, is_first, &format!("{verdict:?} at {index}"));
                    begin(&disk, &lines).unwrap();
                }
            }
        }
        assert!(10 <= failures, "{failures}");
    }
}

#[test]
fn closing_gives_the_ballast_back() {
    let disk = disk();
    let log = create(&disk);
    let ballast = Path::new(FOLDER).join("run/ballast");
    assert!(disk.paths().contains(&ballast));
    log.close().unwrap();
    assert!(!disk.paths().contains(&ballast));
}

#[test]
fn a_torn_tail_is_set_aside_even_on_a_full_disk() {
    let disk = disk();
    let mut log = create(&disk);
    log.append(&[input("a")]).unwrap();
    drop(log);
    disk.set_log(&[disk.log(), vec![b'x'; 5_000]].concat());
    disk.set_space(Some(disk.space_used()));
    let opened = open(&disk).unwrap();
    assert_eq!(disk.beside("torn").unwrap().len(), 5_001);
    assert!(!opened.log.has_ballast());
}

#[test]
fn an_append_after_one_that_could_not_be_cut_back_is_not_glued_to_it() {
    let disk = disk();
    let mut log = create(&disk);
    log.sync().unwrap();
    let clean = disk.log();
    // The write takes ten bytes, the rest fails, and the cut fails twice.
    let (mut appends, mut cuts) = (0, 0);
    disk.set_faults(move |call| match call.op {
        Op::Append => {
            appends += 1;
            [Verdict::Go, Verdict::Short(10), Verdict::Fail(Errno::Io), Verdict::Go][appends.min(3)]
        }
        Op::SetLen => {
            cuts += 1;
            if cuts <= 2 { Verdict::Fail(Errno::Io) } else { Verdict::Go }
        }
        _ => Verdict::Go,
    });
    let error = log.append(&[input("a")]).unwrap_err();
    assert!(matches!(error, AppendError::Write { wrote: 10, .. }), "{error}");
    assert_eq!(disk.log().len(), clean.len() + 10);
    assert!(log.append(&[input("b")]).is_err(), "not behind the rest of a");
    assert_eq!(log.append(&[input("c")]).unwrap(), 2..=2);
    log.close().unwrap();
    let opened = open(&disk).unwrap();
    assert!(opened.found.is_clean(), "{}", opened.found);
    assert_eq!(opened.lines[1].data(), r#""c""#);
}

#[test]
fn short_writes_are_finished() {
    let disk = disk();
    disk.set_faults(|call| if call.op == Op::Append { Verdict::Short(7) } else { Verdict::Go });
    let mut log = create(&disk);
    log.append(&[input("a"), input("b")]).unwrap();
    log.close().unwrap();
    let opened = open(&disk).unwrap();
    assert!(opened.found.is_clean());
    assert_eq!(opened.lines.len(), 3);
}

#[test]
fn a_repair_that_is_cut_off_anywhere_is_done_again() {
    let log = long(20);
    let mut all = pieces(&log);
    all[9][40] ^= 1;
    for (name, damaged, want) in [
        ("middle", all.concat(), 20),
        ("tail", log[..log.len() - 9].to_vec(), 19),
        ("end", log[..log.len() - 1].to_vec(), 20),
    ] {
        let count = {
            let disk = disk_with(&damaged);
            open(&disk).unwrap();
            disk.call_count()
        };
        for index in 0..count {
            for verdict in [Verdict::PowerCut, Verdict::Fail(Errno::Io), Verdict::FailDropping(Errno::Io)] {
                let disk = disk_with(&damaged);
                disk.set_faults(at(index, verdict));
                let _ = open(&disk);
                disk.clear_faults();
                disk.crash(&mut dice(index));
                let opened = open(&disk).unwrap();
                assert_eq!(opened.lines.len(), want, "{name}, {verdict:?} at {index}");
                let kept = |extension: &str| disk.beside(extension).unwrap_or_default();
                match name {
                    "middle" => {
                        assert!(kept("damaged") == damaged || kept("damaged-2") == damaged, "{index}")
                    }
                    "tail" => {
                        let tail = pieces(&damaged).pop().unwrap();
                        let torn = kept("torn");
                        assert!(
                            torn.windows(tail.len()).any(|window| window == tail),
                            "{verdict:?} at {index}"
                        );
                    }
                    _ => {}
                }
            }
        }
    }
}

/// From call `index` on the process is gone: nothing it asks for happens.
fn killed_at(index: u64) -> impl FnMut(&Call) -> Verdict + Send {
    move |call| if index <= call.index { Verdict::Fail(Errno::Io) } else { Verdict::Go }
}

/// The next process goes on and acknowledges one more line; then the power goes. Returns how many lines it found.
fn goes_on_and_loses_power(disk: &TestDisk, seed: u64, hint: &str) -> usize {
    disk.clear_faults();
    let mut opened = open(disk).unwrap_or_else(|error| panic!("{hint}: {error}"));
    let count = opened.lines.len();
    opened.log.append(&[input("later")]).unwrap();
    opened.log.sync().unwrap();
    drop(opened);
    disk.crash(&mut dice(seed));
    let after = open(disk).unwrap_or_else(|error| panic!("{hint}: {error}"));
    assert_eq!(after.lines.len(), count + 1, "{hint}: {}", after.found);
    count
}

#[test]
fn a_repair_that_is_killed_anywhere_and_gone_on_with_outlasts_a_power_cut() {
    let log = long(20);
    let mut all = pieces(&log);
    all[9][40] ^= 1;
    let damaged = all.concat();
    // Its folders are known to be on disk, as after the first sync of any process.
    let disk_with_all = || {
        let disk = disk_with(&damaged);
        disk.poke(&Path::new(FOLDER).join(".synced"), b"");
        disk
    };
    let count = {
        let disk = disk_with_all();
        open(&disk).unwrap();
        disk.call_count()
    };
    for index in 0..count {
        for seed in 0..8 {
            let disk = disk_with_all();
            disk.set_faults(killed_at(index));
            let _ = open(&disk);
            let hint = format!("killed at {index}, seed {seed}");
            assert_eq!(goes_on_and_loses_power(&disk, seed, &hint), 20, "{hint}");
        }
    }
}

#[test]
fn a_process_killed_while_it_moves_its_log_leaves_word_of_the_sync_that_failed() {
    let disk = disk();
    let mut log = create(&disk);
    log.append(&[input("a")]).unwrap();
    log.sync().unwrap();
    let before = disk.call_count();
    log.append(&[input("b")]).unwrap();
    log.sync().unwrap();
    drop(log);
    let synced_at = disk.call_count() - before - 1;
    // The sync is the last of these calls, and the mark is made by the one after it.
    for later in 2..20 {
        for seed in 0..8 {
            let disk = self::disk();
            let mut log = create(&disk);
            log.append(&[input("a")]).unwrap();
            log.sync().unwrap();
            let sync = disk.call_count() + synced_at;
            log.append(&[input("b")]).unwrap();
            disk.set_faults(move |call| match call.index {
                index if index == sync => Verdict::FailDropping(Errno::Io),
                index if sync + later <= index => Verdict::Fail(Errno::Io),
                _ => Verdict::Go,
            });
            let _ = log.sync();
            drop(log);
            goes_on_and_loses_power(
                &disk,
                seed,
                &format!("killed {later} calls after the sync, seed {seed}"),
            );
        }
    }
}

#[test]
fn a_disk_that_is_dead_from_the_start_is_an_error_and_no_panic() {
    let disk = MemDisk::new();
    disk.set_faults(|_| Verdict::Fail(Errno::Io));
    let disk = TestDisk(disk);
    assert!(SessionLog::create(disk.shared(), FOLDER.as_ref(), "s", Durability::Disk, header()).is_err());
    assert!(matches!(open(&disk), Err(OpenError::Storage { .. })));
}
