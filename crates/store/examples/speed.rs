//! Prints how long a large log takes to open, and small ones to write: `cargo run -p yaoki-store --example speed`.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use yaoki_store::mem::MemDisk;
use yaoki_store::{Disk, Durability, NewLine, RealDisk, SessionLog};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const HEADER: NewLine = NewLine { agent: "main", kind: "header", data: r#"{"format":1}"#, at: "then", ms: 0 };

fn main() -> Outcome {
    let folder = std::env::temp_dir().join(format!("yaoki-speed-{}", std::process::id()));
    let result = large(&folder.join("large")).and_then(|()| small(&folder)).and_then(|()| schedules());
    std::fs::remove_dir_all(&folder)?;
    result
}

/// 100,000 lines of 425 bytes, as they are and with one damaged.
fn large(folder: &Path) -> Outcome {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let mut log = SessionLog::create(disk.clone(), folder, "s", Durability::Process, HEADER)?;
    let body = format!("{{\"text\":{:?}}}", "word ".repeat(54));
    let start = Instant::now();
    for _ in 0..1_000 {
        log.append(&[NewLine { kind: "input", data: &body, ..HEADER }; 100])?;
        log.sync()?;
    }
    println!("append {} bytes      {:?}", log.bytes(), start.elapsed());
    drop(log);
    for what in ["open", "open again", "open damaged"] {
        if what == "open damaged" {
            let path = folder.join("s.jsonl");
            let mut bytes = std::fs::read(&path)?;
            bytes[20_000_000] ^= 1;
            std::fs::write(path, bytes)?;
        }
        let start = Instant::now();
        let opened = SessionLog::open(disk.clone(), folder, "s", Durability::Process)?;
        println!("{what:<12} {} lines  {:?}", opened.lines.len(), start.elapsed());
    }
    Ok(())
}

/// What the first records of a session cost.
fn small(folder: &Path) -> Outcome {
    for index in 0..3 {
        let start = Instant::now();
        let folder = folder.join(index.to_string());
        let mut log = SessionLog::create(Arc::new(RealDisk), &folder, "s", Durability::Disk, HEADER)?;
        let created = start.elapsed();
        log.sync()?;
        let first = start.elapsed();
        log.append(&[HEADER])?;
        log.sync()?;
        println!(
            "create {created:?}, first sync {:?}, second {:?}",
            first - created,
            start.elapsed() - first
        );
    }
    Ok(())
}

/// Sessions of 60 appends and a power cut, on a disk in memory.
fn schedules() -> Outcome {
    const COUNT: u32 = 10_000;
    let start = Instant::now();
    for seed in 0..COUNT {
        let disk = MemDisk::new();
        let mut log =
            SessionLog::create(Arc::new(disk.clone()), Path::new("/s"), "s", Durability::Disk, HEADER)?;
        for index in 0..60 {
            log.append(&[NewLine { kind: "input", data: r#"{"text":"some words"}"#, ..HEADER }])?;
            if index % 3 == 0 {
                log.sync()?;
            }
        }
        drop(log);
        let mut state = u64::from(seed);
        disk.crash(&mut || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        });
        SessionLog::open(Arc::new(disk), Path::new("/s"), "s", Durability::Disk)?;
    }
    println!("{:.0} schedules a second", f64::from(COUNT) / start.elapsed().as_secs_f64());
    Ok(())
}
