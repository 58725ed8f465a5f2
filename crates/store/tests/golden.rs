//! Files of released formats, which every later version reads and this one writes byte for byte.
//!
//! They are never changed. A new format gets new files beside them.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

mod common;

use common::*;
use yaoki_store::{NewLine, SessionLog};

const FORMAT_1: &[u8] = include_bytes!("golden/format-1.jsonl");
const FORMAT_1_DAMAGED: &[u8] = include_bytes!("golden/format-1-damaged.jsonl");
const FORMAT_1_REPAIRED: &[u8] = include_bytes!("golden/format-1-repaired.jsonl");

const MAIN: NewLine = NewLine { agent: "main", kind: "", data: "", at: "", ms: 0 };
const BLOB: &str =
    r#"{"blob":"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262","bytes":20000}"#;

/// Each process of the session: its appends, each synced or not.
const PROCESSES: [&[(&[NewLine], bool)]; 2] = [
    &[
        (
            &[NewLine {
                kind: "input",
                data: r#"{"text":"grüß 八起き\n\"\\\u0000"}"#,
                at: "2026-02-03T04:05:06.789Z",
                ms: 12,
                ..MAIN
            }],
            true,
        ),
        (
            &[
                NewLine {
                    kind: "intent",
                    data: r#"{"op":"op_1","nested":{"seq":1,"crc":"00000000"}}"#,
                    at: "2026-02-03T04:05:07Z",
                    ms: 1_000,
                    ..MAIN
                },
                NewLine {
                    kind: "started",
                    data: r#"{"op":"op_1","attempt":1}"#,
                    at: "2026-02-03T04:05:07Z",
                    ms: 1_000,
                    ..MAIN
                },
            ],
            true,
        ),
        (&[NewLine { kind: "outcome", data: BLOB, at: "2026-02-03T04:05:09Z", ms: 3_000, ..MAIN }], false),
    ],
    &[
        (
            &[NewLine { kind: "opened", data: r#"{"epoch":2}"#, at: "2026-02-03T05:00:00Z", ms: 0, ..MAIN }],
            true,
        ),
        (
            &[NewLine {
                agent: "sub-1",
                kind: "x_note",
                data: "[1,2.5,null,true]",
                at: "2026-02-03T05:00:01Z",
                ms: 18_446_744_073_709_551_615,
            }],
            true,
        ),
        (
            &[NewLine {
                kind: "turn_end",
                data: r#""completed""#,
                at: "2026-02-03T05:00:02Z",
                ms: 2_000,
                ..MAIN
            }],
            true,
        ),
    ],
];

fn written() -> Vec<u8> {
    let disk = disk();
    let mut log = create(&disk);
    for (index, process) in PROCESSES.iter().enumerate() {
        if index > 0 {
            drop(log);
            log = open(&disk).unwrap().log;
        }
        append(&mut log, process);
    }
    disk.log()
}

fn append(log: &mut SessionLog, batches: &[(&[NewLine], bool)]) {
    for (lines, is_synced) in batches {
        log.append(lines).unwrap();
        if *is_synced {
            log.sync().unwrap();
        }
    }
}

fn assert_same(got: &[u8], want: &[u8]) {
    assert_eq!(String::from_utf8_lossy(got), String::from_utf8_lossy(want));
}

#[test]
fn format_1_is_written_byte_for_byte() {
    assert_same(&written(), FORMAT_1);
}

#[test]
fn format_1_is_read_as_it_was_given() {
    let opened = open(&disk_with(FORMAT_1)).unwrap();
    assert!(opened.found.is_clean(), "{}", opened.found);
    assert_eq!((opened.log.epoch(), opened.log.last_seq()), (3, 8));
    let given = PROCESSES.iter().enumerate().flat_map(|(index, process)| {
        process.iter().flat_map(|(lines, _)| lines.iter()).map(move |line| (index as u64 + 1, line))
    });
    for (line, (epoch, given)) in opened.lines[1..].iter().zip(given) {
        assert_eq!((line.epoch, line.ms), (epoch, given.ms));
        assert_eq!(
            (line.agent(), line.kind(), line.data(), line.at()),
            (given.agent, given.kind, given.data, given.at)
        );
    }
    let durable: Vec<_> = opened.lines.iter().map(|line| line.durable).collect();
    assert_eq!(durable, [0, 0, 2, 2, 4, 5, 6, 7]);
}

#[test]
fn damage_of_format_1_is_repaired_byte_for_byte() {
    let disk = disk_with(FORMAT_1_DAMAGED);
    let opened = open(&disk).unwrap();
    assert_eq!((opened.found.gaps.len(), opened.found.foreign.len()), (1, 1), "{}", opened.found);
    assert_same(&disk.log(), FORMAT_1_REPAIRED);
    assert!(open(&disk_with(FORMAT_1_REPAIRED)).unwrap().found.is_clean());
}
