//! How long things take. Prints, proves nothing: `cargo test -p yaoki-store --test speed -- --ignored --nocapture`.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

mod common;

use std::sync::Arc;
use std::time::Instant;

use common::*;
use yaoki_store::{Durability, NewLine, RealDisk, SessionLog};

#[test]
#[ignore = "prints times"]
fn a_log_of_100_000_lines_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(RealDisk);
    let path = folder.path().join("s");
    let mut log = SessionLog::create(disk.clone(), &path, "s", Durability::Process, header()).unwrap();
    let body = format!("{{\"text\":{:?}}}", "word ".repeat(54));
    let lines = [NewLine { data: &body, ..input("") }; 100];
    let start = Instant::now();
    for _ in 0..1_000 {
        log.append(&lines).unwrap();
        log.sync().unwrap();
    }
    println!("append {} bytes: {:?}", log.bytes(), start.elapsed());
    drop(log);
    for _ in 0..3 {
        let start = Instant::now();
        let opened = SessionLog::open(disk.clone(), &path, "s", Durability::Process).unwrap();
        println!("open {} lines: {:?}", opened.lines.len(), start.elapsed());
    }
    let mut bytes = std::fs::read(path.join("s.jsonl")).unwrap();
    bytes[20_000_000] ^= 1;
    std::fs::write(path.join("s.jsonl"), bytes).unwrap();
    let start = Instant::now();
    let opened = SessionLog::open(disk, &path, "s", Durability::Process).unwrap();
    println!(
        "open with {} foreign, {} gaps: {:?}",
        opened.found.foreign.len(),
        opened.found.gaps.len(),
        start.elapsed()
    );
}

#[test]
#[ignore = "prints times"]
fn schedules_of_60_appends_and_a_power_cut_are_run() {
    let count = 10_000;
    let start = Instant::now();
    for seed in 0..count {
        let disk = disk();
        let mut log = create(&disk);
        let mut roll = dice(seed);
        for index in 0..60 {
            log.append(&[input("three hundred bytes would be more like it, but this will do")]).unwrap();
            if index % 3 == 0 {
                log.sync().unwrap();
            }
        }
        drop(log);
        disk.crash(&mut roll);
        open(&disk).unwrap();
    }
    println!("{} schedules a second", count as f64 / start.elapsed().as_secs_f64());
}

#[test]
#[ignore = "prints times"]
fn small_sessions_are_created_and_synced_on_this_disk() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(RealDisk);
    for index in 0..3 {
        let path = folder.path().join(format!("{index}"));
        let start = Instant::now();
        let mut log = SessionLog::create(disk.clone(), &path, "s", Durability::Disk, header()).unwrap();
        let created = start.elapsed();
        log.append(&[input("a")]).unwrap();
        log.sync().unwrap();
        let first = start.elapsed();
        log.append(&[input("b")]).unwrap();
        log.sync().unwrap();
        println!(
            "create {created:?}, first sync {:?}, second {:?}",
            first - created,
            start.elapsed() - first
        );
    }
}
