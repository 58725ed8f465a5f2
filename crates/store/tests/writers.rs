//! Several writers of one session, on this machine's disk.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use common::{header, input};
use yaoki_store::{CreateError, Durability, OpenError, Opened, RealDisk, SessionLog, read_only};

fn create(folder: &Path) -> Result<SessionLog, CreateError> {
    SessionLog::create(Arc::new(RealDisk), folder, "s", Durability::Process, header())
}

fn open(folder: &Path) -> Result<Opened, OpenError> {
    SessionLog::open(Arc::new(RealDisk), folder, "s", Durability::Process)
}

#[test]
fn of_many_that_race_one_writes_at_a_time_each_under_its_own_epoch() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("s");
    drop(create(&folder).unwrap());
    let race = |name: usize| {
        let folder = folder.clone();
        move || {
            let mut wins = 0;
            for round in 0..100 {
                match open(&folder) {
                    Ok(mut opened) => {
                        assert!(opened.found.is_clean(), "{}", opened.found);
                        for part in 0..3 {
                            opened.log.append(&[input(&format!("{name} {round} {part}"))]).unwrap();
                        }
                        wins += 1;
                    }
                    Err(OpenError::Locked { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            wins
        }
    };
    let threads: Vec<_> = (0..4).map(|name| std::thread::spawn(race(name))).collect();
    let wins: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    let (lines, found) = read_only(&RealDisk, &folder, "s").unwrap();
    assert!(found.is_clean(), "{found}");
    assert_eq!(lines.len(), 1 + 3 * wins);
    let mut by_epoch: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for line in &lines[1..] {
        let text: String = line.parse().unwrap();
        by_epoch.entry(line.epoch).or_default().push(text[..text.rfind(' ').unwrap()].to_owned());
    }
    assert_eq!(by_epoch.len(), wins);
    assert!(by_epoch.values().all(|writers| writers.iter().all(|writer| *writer == writers[0])));
}

#[test]
fn of_many_that_create_one_session_one_does() {
    let home = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let folder = home.path().join(round.to_string());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let folder = folder.clone();
                std::thread::spawn(move || match create(&folder) {
                    Ok(log) => {
                        log.close().unwrap();
                        1
                    }
                    Err(CreateError::Exists { .. } | CreateError::Locked { .. }) => 0,
                    Err(error) => panic!("{error}"),
                })
            })
            .collect();
        assert_eq!(threads.into_iter().map(|thread| thread.join().unwrap()).sum::<i32>(), 1);
    }
}

#[test]
fn only_their_owner_may_read_what_is_stored() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("sessions/-w/s");
    let log = create(&folder).unwrap();
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for (name, want) in
        [("", 0o700), ("..", 0o700), ("s.jsonl", 0o600), ("lock", 0o600), ("run/ballast", 0o600)]
    {
        assert_eq!(mode(folder.join(name)), want, "{name}");
    }
    let ballast = std::fs::metadata(folder.join("run/ballast")).unwrap();
    assert_eq!(ballast.len(), 1024 * 1024);
    assert!(std::os::unix::fs::MetadataExt::blocks(&ballast) >= 2048, "the space is taken, not promised");
    drop(log);
}

/// The child of the next test: holds the session of the folder named in the environment until it is killed.
#[test]
fn hold() {
    let Some(folder) = std::env::var_os("YAOKI_TEST_HOLD") else { return };
    let mut opened = open(Path::new(&folder)).unwrap();
    opened.log.append(&[input("held")]).unwrap();
    println!("\nholding");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn a_killed_writer_is_taken_over_from_at_once() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("s");
    drop(create(&folder).unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hold", "--nocapture"])
        .env("YAOKI_TEST_HOLD", &folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holding"));
    assert!(matches!(open(&folder), Err(OpenError::Locked { .. })));
    child.kill().unwrap();
    child.wait().unwrap();
    let opened = open(&folder).unwrap();
    assert!(opened.found.is_clean());
    assert_eq!((opened.log.epoch(), opened.lines[1].data()), (3, r#""held""#));
}
