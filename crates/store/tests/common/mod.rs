//! A session named `s` on a disk in memory.
// Each test file takes what it needs; the helpers are tests too.
#![allow(dead_code, clippy::unwrap_used)]

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use yaoki_store::mem::MemDisk;
use yaoki_store::{Disk, Durability, Findings, Line, NewLine, OpenError, Opened, SessionLog, read_only};

pub const FOLDER: &str = "/home/sessions/-w/s";
pub const LOG: &str = "/home/sessions/-w/s/s.jsonl";
pub const HEADER: &str = r#"{"format":1,"session":"s"}"#;

pub struct TestDisk(pub MemDisk);

impl Deref for TestDisk {
    type Target = MemDisk;
    fn deref(&self) -> &MemDisk {
        &self.0
    }
}

impl TestDisk {
    pub fn shared(&self) -> Arc<dyn Disk> {
        Arc::new(self.0.clone())
    }

    pub fn log(&self) -> Vec<u8> {
        self.peek(Path::new(LOG)).unwrap()
    }

    pub fn set_log(&self, bytes: &[u8]) {
        self.poke(Path::new(LOG), bytes);
    }

    pub fn beside(&self, extension: &str) -> Option<Vec<u8>> {
        self.peek(&Path::new(FOLDER).join(format!("s.{extension}")))
    }
}

pub fn disk() -> TestDisk {
    TestDisk(MemDisk::new())
}

/// A disk whose session has exactly these bytes.
pub fn disk_with(log: &[u8]) -> TestDisk {
    let disk = disk();
    disk.set_log(log);
    disk
}

pub fn header() -> NewLine<'static> {
    NewLine { agent: "main", kind: "header", data: HEADER, at: "2026-01-02T03:04:05Z", ms: 0 }
}

/// A line whose body is the text as JSON.
pub fn input(text: &str) -> NewLine<'static> {
    let data = serde_json::to_string(text).unwrap().leak();
    NewLine { agent: "main", kind: "input", data, at: "2026-01-02T03:04:05Z", ms: 7 }
}

pub fn create(disk: &TestDisk) -> SessionLog {
    create_with(disk, Durability::Disk)
}

pub fn create_with(disk: &TestDisk, durability: Durability) -> SessionLog {
    SessionLog::create(disk.shared(), FOLDER.as_ref(), "s", durability, header()).unwrap()
}

pub fn open(disk: &TestDisk) -> Result<Opened, OpenError> {
    SessionLog::open(disk.shared(), FOLDER.as_ref(), "s", Durability::Disk)
}

pub fn read(disk: &TestDisk) -> (Vec<Line>, Findings) {
    read_only(&**disk, FOLDER.as_ref(), "s").unwrap()
}

/// A log of `count` lines, synced after every third.
pub fn long(count: u64) -> Vec<u8> {
    let disk = disk();
    let mut log = create(&disk);
    for seq in 2..=count {
        log.append(&[input(&format!("record {seq} {}", "x".repeat(seq as usize % 23)))]).unwrap();
        if seq % 3 == 0 {
            log.sync().unwrap();
        }
    }
    disk.log()
}

/// The bytes of each line, with its line break.
pub fn pieces(log: &[u8]) -> Vec<Vec<u8>> {
    log.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Numbers that look random and are the same each time.
pub fn dice(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
