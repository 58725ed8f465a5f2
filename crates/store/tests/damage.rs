//! Logs that were cut, flipped, filled, glued and shuffled.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

mod common;

use std::collections::BTreeMap;

use common::*;
use proptest::prelude::*;
use yaoki_store::{Findings, GAP, Line, OpenError, Why};

const COUNT: u64 = 60;

/// Opens a damaged log and checks all that holds of any damage. Returns what the open found.
///
/// Nothing is invented, no seq is passed over without a gap, the original bytes are kept, a reader sees the
/// same without writing, the file is clean afterwards and takes the next line.
fn check(original: &[u8], damaged: &[u8]) -> (Vec<Line>, Findings) {
    let disk = disk_with(damaged);
    let (lines_read, found_read) = read(&disk);
    assert!(disk.log() == damaged, "a reader does not write");

    let opened = open(&disk).unwrap();
    let (lines, found) = (opened.lines, opened.found);
    assert_eq!(lines, lines_read);
    assert_eq!((&found.gaps, &found.foreign), (&found_read.gaps, &found_read.foreign));
    assert_lines_are_from(original, &lines);
    match (&found.kept, &found.torn) {
        (Some(kept), _) => assert!(disk.peek(kept).unwrap() == damaged),
        (None, Some(torn)) => {
            let tail = &damaged[torn.place as usize..];
            assert_eq!(torn.bytes, tail.len() as u64);
            assert!(disk.peek(torn.kept.as_ref().unwrap()).unwrap().starts_with(tail));
        }
        (None, None) => assert!(disk.log().starts_with(damaged)),
    }
    let clean: String = lines.iter().map(|line| format!("{}\n", line.raw())).collect();
    assert!(disk.log() == clean.as_bytes(), "{found}");

    let mut log = opened.log;
    let next = lines.last().unwrap().seq_to() + 1;
    assert_eq!(log.append(&[input("next")]).unwrap(), next..=next);
    log.close().unwrap();
    let again = open(&disk).unwrap();
    assert!(again.found.is_clean(), "{}", again.found);
    assert_eq!(again.lines[..lines.len()], lines);
    assert_eq!(again.lines.len(), lines.len() + 1);
    (lines, found)
}

fn assert_lines_are_from(original: &[u8], lines: &[Line]) {
    let pieces = pieces(original);
    let mut seq = 0;
    for line in lines {
        seq += 1;
        assert_eq!(line.seq, seq, "{line:?}");
        if line.kind() == GAP {
            seq = line.seq_to();
        } else {
            assert_eq!(format!("{}\n", line.raw()).as_bytes(), pieces[seq as usize - 1]);
        }
    }
}

/// What should be loaded when these seqs are destroyed: seqs, a gap as its first with its last.
fn want(original: &[u8], destroyed: &[u64]) -> Vec<(u64, u64)> {
    let lines = read(&disk_with(original)).0;
    let mut want = Vec::new();
    let mut seq = 1;
    while seq <= lines.len() as u64 {
        if destroyed.contains(&seq) {
            let rest = lines[seq as usize..].iter().filter(|line| !destroyed.contains(&line.seq));
            let rest: Vec<_> = rest.collect();
            if !rest.iter().any(|line| seq <= line.durable) {
                break;
            }
            want.push((seq, rest[0].seq - 1));
            seq = rest[0].seq;
        } else {
            want.push((seq, seq));
            seq += 1;
        }
    }
    want
}

fn spans(lines: &[Line]) -> Vec<(u64, u64)> {
    lines.iter().map(|line| (line.seq, line.seq_to())).collect()
}

/// The seqs of lines that a change of these bytes destroys. Line breaks can be found again.
fn hit(original: &[u8], bytes: std::ops::Range<usize>) -> Vec<u64> {
    let mut start = 0;
    let mut seqs = Vec::new();
    for (index, piece) in pieces(original).iter().enumerate() {
        if start < bytes.end && bytes.start < start + piece.len() - 1 {
            seqs.push(index as u64 + 1);
        }
        start += piece.len();
    }
    seqs
}

#[test]
fn cut_at_every_byte_the_longest_whole_prefix_is_left() {
    let log = long(COUNT);
    let header_bytes = pieces(&log)[0].len();
    for cut in 0..log.len() {
        let damaged = &log[..cut];
        if cut < header_bytes - 1 {
            assert!(matches!(open(&disk_with(damaged)), Err(OpenError::Empty { .. })), "cut at {cut}");
            continue;
        }
        let (lines, found) = check(&log, damaged);
        let whole =
            pieces(damaged).iter().zip(pieces(&log)).filter(|(got, all)| got.len() + 1 >= all.len()).count();
        assert_eq!(lines.len(), whole, "cut at {cut}");
        assert!(!found.is_alarm(), "cut at {cut}: {found}");
        assert_eq!(found.is_last_line_ended_late, damaged.last() == Some(&b'}') && found.torn.is_none());
    }
}

#[test]
fn every_flipped_bit_of_the_end_costs_its_line_and_the_tail_behind_it_at_most() {
    let log = long(COUNT);
    let mut wants = BTreeMap::new();
    for bit in (log.len() - 4096) * 8..log.len() * 8 {
        let mut damaged = log.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let destroyed = hit(&log, bit / 8..bit / 8 + 1);
        let want = wants.entry(destroyed.clone()).or_insert_with(|| want(&log, &destroyed));
        // All that `check` asks is asked of every seventh: of each line, and of each bit of a byte.
        let lines = if bit % 7 == 0 { check(&log, &damaged).0 } else { read(&disk_with(&damaged)).0 };
        assert_eq!(spans(&lines), *want, "bit {bit}");
    }
}

#[test]
fn every_tail_filled_with_nuls_is_cut_or_gapped_as_the_marks_say() {
    let log = long(COUNT);
    for start in (pieces(&log)[0].len()..log.len()).step_by(5) {
        let mut damaged = log.clone();
        damaged[start..].fill(0);
        let (lines, found) = check(&log, &damaged);
        assert_eq!(spans(&lines), want(&log, &hit(&log, start..log.len())), "from {start}");
        assert!(found.torn.is_some());
        // A hole of NULs with good lines behind it.
        let mut damaged = log.clone();
        let end = (start + 300).min(log.len());
        damaged[start..end].fill(0);
        assert_eq!(spans(&check(&log, &damaged).0), want(&log, &hit(&log, start..end)), "{start}..{end}");
    }
}

#[test]
fn a_torn_tail_is_set_aside_and_a_second_one_beside_it() {
    let log = long(9);
    let disk = disk_with(&log[..log.len() - 10]);
    let opened = open(&disk).unwrap();
    let torn = opened.found.torn.clone().unwrap();
    assert_eq!((torn.seq_from, torn.kept.unwrap().to_str()), (9, Some("/home/sessions/-w/s/s.torn")));
    assert!(!opened.found.is_alarm());
    drop(opened);
    let first = disk.beside("torn").unwrap();
    disk.set_log(&[disk.log(), b"half".to_vec()].concat());
    open(&disk).unwrap();
    assert_eq!(disk.beside("torn").unwrap(), [first, b"half\n".to_vec()].concat());
}

#[test]
fn unsynced_lines_behind_a_lost_one_go_with_it() {
    // Lines 4 to 6 were written after the sync of 3 and say so; the disk kept 5 and 6 and lost 4.
    let log = long(6);
    let mut pieces = pieces(&log);
    let len = pieces[3].len();
    pieces[3][..len - 1].fill(0);
    let (lines, found) = check(&log, &pieces.concat());
    assert_eq!(lines.len(), 3);
    assert!(found.torn.is_some() && !found.is_alarm(), "{found}");
}

#[test]
fn middle_damage_leaves_a_gap_an_alarm_and_the_original() {
    let log = long(20);
    let mut all = pieces(&log);
    all[7][40] ^= 1;
    let disk = disk_with(&all.concat());
    let opened = open(&disk).unwrap();
    assert!(opened.found.is_alarm());
    let gap = &opened.lines[7];
    assert_eq!((gap.kind(), gap.seq, gap.seq_to(), gap.agent()), (GAP, 8, 8, "main"));
    let place = all[..7].concat().len();
    let bytes = all[7].len();
    assert_eq!(gap.parse::<serde_json::Value>().unwrap()["seq_from"], 8);
    assert_eq!(
        opened.found.notices(),
        [
            format!("records 8 to 8 are damaged ({bytes} bytes at byte {place})"),
            "the damaged file is kept as /home/sessions/-w/s/s.damaged".to_owned(),
        ]
    );
    drop(opened);
    // A second damage, around the first gap, is kept beside the first.
    let mut all = pieces(&disk.log());
    all[6][40] ^= 1;
    all[8][40] ^= 1;
    disk.set_log(&all.concat());
    let opened = open(&disk).unwrap();
    assert_eq!(disk.beside("damaged-2").unwrap(), all.concat());
    let spans = spans(&opened.lines);
    assert_eq!(spans[5..9], [(6, 6), (7, 7), (8, 8), (9, 9)]);
    let kinds: Vec<_> = opened.lines[5..9].iter().map(Line::kind).collect();
    assert_eq!(kinds, ["input", GAP, GAP, GAP]);
}

#[test]
fn lines_glued_doubled_swapped_or_strewn_with_dirt_lose_nothing() {
    let log = long(20);
    let all = pieces(&log);
    let bare = |index: usize| all[index][..all[index].len() - 1].to_vec();
    let join = |from: usize, to: usize| all[from..to].concat();
    let mut noise = join(0, 20);
    noise.splice(all[0].len()..all[0].len(), b"dirt\n".to_vec());
    for (name, damaged, why) in [
        ("glued", [join(0, 4), bare(4), join(5, 20)].concat(), None),
        ("doubled", [join(0, 5), join(4, 20)].concat(), Some(Why::Duplicate)),
        ("a block doubled", [join(0, 12), join(5, 20)].concat(), Some(Why::Duplicate)),
        ("swapped", [join(0, 5), join(6, 7), join(5, 6), join(7, 20)].concat(), None),
        ("dirt in front", [b"dirt".to_vec(), join(0, 20)].concat(), Some(Why::NoLine)),
        ("dirt between", noise, Some(Why::NoLine)),
        ("a blank line", [join(0, 3), b"\n".to_vec(), join(3, 20)].concat(), Some(Why::NoLine)),
        ("CRLF", [bare(0), b"\r\n".to_vec(), join(1, 20)].concat(), Some(Why::NoLine)),
        ("doubled at the end", [join(0, 20), join(19, 20)].concat(), Some(Why::Duplicate)),
    ] {
        let (lines, found) = check(&log, &damaged);
        assert_eq!(lines.len(), 20, "{name}");
        assert!(found.gaps.is_empty(), "{name}: {found}");
        assert_eq!(found.foreign.first().map(|foreign| foreign.why), why, "{name}");
        assert!(found.kept.is_some() || found.torn.is_some(), "{name}: the original is kept");
    }
}

#[test]
fn a_line_cut_in_half_and_glued_to_the_next_costs_itself_only() {
    let log = long(40);
    let all = pieces(&log);
    let half = &all[14][..all[14].len() / 2];
    let (lines, _) = check(&log, &[&all[..14].concat(), half, &all[15..].concat()].concat());
    assert_eq!(spans(&lines), want(&log, &[15]));
    assert_eq!(lines.len(), 40);
}

#[test]
fn lines_that_vanished_are_a_gap() {
    let log = long(20);
    let mut all = pieces(&log);
    all.drain(5..8);
    let (lines, found) = check(&log, &all.concat());
    assert_eq!(spans(&lines)[4..7], [(5, 5), (6, 8), (9, 9)]);
    assert_eq!((found.gaps.len(), found.gaps[0].bytes), (1, 0));
}

#[test]
fn a_line_of_another_session_is_refused() {
    let log = long(20);
    let disk = disk();
    let mut other = create(&disk);
    for _ in 0..30 {
        other.append(&[input("not ours")]).unwrap();
    }
    let (all, others) = (pieces(&log), pieces(&disk.log()));
    // In the middle with a seq that fits, with one from the past, with one from the future; and at the end.
    for (place, stranger) in [(10, 10), (10, 3), (10, 28), (20, 20)] {
        let damaged = [&all[..place].concat(), &others[stranger], &all[place..].concat()[..]].concat();
        let (lines, found) = check(&log, &damaged);
        assert_eq!(lines.len(), 20, "{place}, {stranger}");
        assert_eq!(found.foreign.len(), 1, "{place}, {stranger}: {found}");
        assert_eq!(found.foreign[0].why, Why::Stranger);
    }
}

#[test]
fn a_writer_that_lost_the_session_is_refused_by_the_reader() {
    let disk = disk();
    let mut old = create(&disk);
    old.append(&[input("a")]).unwrap();
    let before = disk.log();
    // The old one writes on although a new one took over: a lock that did not hold.
    old.append(&[input("old b"), input("old c")]).unwrap();
    let stale = disk.log()[before.len()..].to_vec();
    drop(old);
    disk.set_log(&before);
    let mut new = open(&disk).unwrap().log;
    new.append(&[input("new b")]).unwrap();
    disk.set_log(&[disk.log(), stale].concat());
    drop(new);
    let opened = open(&disk).unwrap();
    let bodies: Vec<_> = opened.lines.iter().map(Line::data).collect();
    assert_eq!(bodies, [HEADER, r#""a""#, r#""new b""#]);
    assert_eq!(opened.found.foreign.len(), 1, "{}", opened.found);
    assert_eq!(opened.found.foreign[0].why, Why::StaleEpoch);
    assert!(disk.beside("torn").is_some());
}

#[test]
fn an_epoch_never_goes_back_whatever_a_line_claims_to_follow() {
    let disk = disk();
    drop(create(&disk));
    let mut log = open(&disk).unwrap().log;
    log.append(&[input("of epoch 2")]).unwrap();
    drop(log);
    let last = read(&disk).0.pop().unwrap();
    let crc = &last.raw()[last.raw().len() - 10..last.raw().len() - 2];
    // One that chains to the last line, and one that claims that lines before it are lost.
    for (seq, durable, prev) in [(3, 2, crc), (9, 8, "01234567")] {
        let body = format!(
            r#"{{"seq":{seq},"epoch":1,"durable":{durable},"at":"x","ms":0,"agent":"main","type":"input","data":1,"prev":"{prev}""#
        );
        let stale = format!("{body},\"crc\":\"{:08x}\"}}\n", crc32c::crc32c(body.as_bytes()));
        let (lines, found) = read(&disk_with(&[disk.log(), stale.into_bytes()].concat()));
        assert_eq!((lines.len(), found.gaps.len()), (2, 0), "seq {seq}");
        assert_eq!(found.foreign.first().map(|foreign| foreign.why), Some(Why::StaleEpoch), "seq {seq}");
    }
}

#[test]
fn without_its_header_a_session_is_read_and_not_written() {
    let log = long(20);
    let mut damaged = log.clone();
    damaged[30] ^= 1;
    let disk = disk_with(&damaged);
    assert!(matches!(open(&disk), Err(OpenError::NoHeader { .. })));
    let (lines, found) = read(&disk);
    assert_eq!(spans(&lines)[..2], [(1, 1), (2, 2)]);
    assert_eq!((lines.len(), lines[0].kind(), found.gaps.len()), (20, GAP, 1));
    assert_eq!(disk.log(), damaged, "nothing was repaired");
}

#[test]
fn a_file_without_anything_acknowledged_was_never_begun() {
    let log = long(2);
    for damaged in [vec![], vec![0; 4096], b"\n".to_vec(), b"not a log\n".to_vec(), pieces(&log)[1].clone()] {
        let disk = disk_with(&damaged);
        assert!(matches!(open(&disk), Err(OpenError::Empty { .. })), "{damaged:?}");
        assert_eq!(disk.log(), damaged);
    }
    assert!(matches!(open(&disk()), Err(OpenError::NotFound { .. })));
}

#[test]
fn a_later_format_is_read_and_not_written() {
    let log = String::from_utf8(long(3)).unwrap();
    // The same log with a header of format 2, sealed anew.
    let mut text = Vec::new();
    let mut prev = "00000000".to_owned();
    for line in log.lines() {
        let body = &line[..line.len() - 36];
        let body = body.replace(r#""format":1"#, r#""format":2"#);
        let sealed = format!(r#"{body},"prev":"{prev}""#);
        prev = format!("{:08x}", crc32c::crc32c(sealed.as_bytes()));
        text.extend(format!("{sealed},\"crc\":\"{prev}\"}}\n").bytes());
    }
    let disk = disk_with(&[&text[..], b"torn"].concat());
    let error = open(&disk).unwrap_err();
    assert!(matches!(error, OpenError::Newer { format: 2, .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "session s is of format 2; this yaoki writes format 1, so it can only read it"
    );
    let (lines, found) = read(&disk);
    assert_eq!((lines.len(), found.format_needed), (3, Some(2)));
    assert!(disk.log().ends_with(b"torn"));
}

/// One thing that happens to a file.
#[derive(Debug, Clone)]
enum Harm {
    Flip(usize),
    Fill(usize, usize, u8),
    Cut(usize),
    Remove(usize, usize),
    Insert(usize, Vec<u8>),
    Copy(usize, usize, usize),
}

fn harm(log: &mut Vec<u8>, harm: &Harm) {
    let len = log.len() + 1;
    let range = |at: usize, count: usize| at % len..(at % len + count).min(len - 1);
    match harm {
        Harm::Flip(bit) if !log.is_empty() => {
            let byte = bit / 8 % log.len();
            log[byte] ^= 1 << (bit % 8);
        }
        Harm::Flip(_) => {}
        Harm::Fill(at, count, byte) => log[range(*at, *count)].fill(*byte),
        Harm::Cut(at) => log.truncate(at % len),
        Harm::Remove(at, count) => drop(log.drain(range(*at, *count))),
        Harm::Insert(at, bytes) => drop(log.splice(at % len..at % len, bytes.clone())),
        Harm::Copy(from, count, to) => {
            let bytes = log[range(*from, *count)].to_vec();
            drop(log.splice(to % len..to % len, bytes));
        }
    }
}

fn harms() -> impl Strategy<Value = Vec<Harm>> {
    let at = 0usize..100_000;
    let count = 1usize..700;
    let one = prop_oneof![
        (0usize..800_000).prop_map(Harm::Flip),
        (at.clone(), count.clone(), any::<u8>()).prop_map(|(at, count, byte)| Harm::Fill(at, count, byte)),
        at.clone().prop_map(Harm::Cut),
        (at.clone(), count.clone()).prop_map(|(at, count)| Harm::Remove(at, count)),
        (at.clone(), proptest::collection::vec(any::<u8>(), 1..40))
            .prop_map(|(at, bytes)| Harm::Insert(at, bytes)),
        (at.clone(), count, at).prop_map(|(from, count, to)| Harm::Copy(from, count, to)),
    ];
    proptest::collection::vec(one, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_breaks_a_promise(harms in harms()) {
        let log = long(30);
        let mut damaged = log.clone();
        harms.iter().for_each(|one| harm(&mut damaged, one));
        match open(&disk_with(&damaged)) {
            Ok(_) => drop(check(&log, &damaged)),
            Err(OpenError::Empty { .. } | OpenError::NoHeader { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lines_come_back_as_they_were_given(
        texts in proptest::collection::vec((any::<String>(), "[a-z_]{1,12}", any::<u64>()), 1..20),
    ) {
        let disk = disk();
        let mut log = create(&disk);
        let bodies: Vec<_> = texts.iter().map(|(text, _, _)| serde_json::to_string(text).unwrap()).collect();
        let news: Vec<_> = texts.iter().zip(&bodies).map(|((_, kind, ms), data)| {
            yaoki_store::NewLine { kind, data, ms: *ms, ..input("") }
        }).collect();
        log.append(&news).unwrap();
        log.close().unwrap();
        let opened = open(&disk).unwrap();
        prop_assert!(opened.found.is_clean());
        for (line, (text, kind, ms)) in opened.lines[1..].iter().zip(&texts) {
            prop_assert_eq!((line.kind(), line.ms), (kind.as_str(), *ms));
            prop_assert_eq!(&line.parse::<String>().unwrap(), text);
        }
        prop_assert_eq!(opened.lines.len(), texts.len() + 1);
    }
}
