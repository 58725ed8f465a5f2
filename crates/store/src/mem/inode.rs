//! The bytes of one simulated file: what programs see, and what a power cut would leave.

use std::ops::Range;

/// A drive writes sectors of this many bytes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// One file's bytes, as seen and as on the platter.
///
/// Only the difference is kept, so that a sync costs nothing: the platter holds `live[..common]`, then `tail`,
/// except in `lost`.
#[derive(Debug, Clone, Default)]
pub(super) struct Inode {
    pub live: Vec<u8>,
    /// Space taken beyond `live` without bytes.
    pub reserved: u64,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// A count of changes, in place of a time.
    pub modified: u64,
    common: usize,
    tail: Vec<u8>,
    /// Ranges of `live` that a failed sync dropped: seen as if written, and never written.
    lost: Vec<Range<usize>>,
}

impl Inode {
    pub fn new(mode: u32) -> Inode {
        Inode { mode, ..Inode::default() }
    }

    pub fn len(&self) -> u64 {
        self.live.len() as u64 + self.reserved
    }

    /// Up to `len` bytes from `from`, as seen.
    pub fn range(&self, from: u64, len: usize) -> Vec<u8> {
        let start = self.live.len().min(from as usize);
        let end = self.live.len().min(start.saturating_add(len));
        self.live[start..end].to_vec()
    }

    pub fn append(&mut self, bytes: &[u8]) {
        self.live.extend_from_slice(bytes);
    }

    pub fn set_len(&mut self, len: usize) {
        // Within what is reserved no byte is seen to change.
        let beyond = (len as u64).saturating_sub(self.live.len() as u64);
        if 0 < beyond && beyond <= self.reserved {
            self.reserved = beyond;
            return;
        }
        self.reserved = 0;
        if len < self.common {
            let mut tail = self.live[len..self.common].to_vec();
            tail.append(&mut self.tail);
            self.tail = tail;
            self.common = len;
        }
        self.live.resize(len, 0);
        self.lost.retain_mut(|range| {
            range.end = range.end.min(len);
            range.start < range.end
        });
    }

    /// All that is seen is now on the platter.
    pub fn sync(&mut self) {
        self.common = self.live.len();
        self.tail.clear();
    }

    /// A sync failed and the unwritten bytes were forgotten, but are still seen: what Linux does.
    pub fn sync_dropping(&mut self) {
        if self.common < self.live.len() {
            self.lost.push(self.common..self.live.len());
        }
        self.sync();
    }

    /// Whether a power cut could leave something else than what is seen.
    pub fn is_dirty(&self) -> bool {
        self.common < self.live.len() || !self.tail.is_empty() || !self.lost.is_empty()
    }

    /// The bytes from the start that are the same on the platter.
    pub fn kept(&self) -> &[u8] {
        let end = self.lost.iter().map(|range| range.start).fold(self.common, usize::min);
        &self.live[..end]
    }

    /// The cache is dropped: what a failed sync lost is now seen to be lost.
    pub fn evict(&mut self) {
        for range in std::mem::take(&mut self.lost) {
            self.live[range].fill(0);
        }
    }

    /// The power went: some legal mixture of the platter and of what was on its way there remains.
    pub fn crash(&mut self, dice: &mut dyn FnMut() -> u64) {
        if !self.is_dirty() {
            return;
        }
        let mut up_to = |max: usize| (dice() % (max as u64 + 1)) as usize;
        let lost_end = self.lost.last().map(|range| range.end);
        self.evict();
        let common = self.common;
        // Lost bytes at the end of the file may never have become part of its length.
        if lost_end == Some(self.live.len()) && common == self.live.len() && up_to(1) == 0 {
            let end = self.live.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
            self.live.truncate(end);
        } else {
            let old: Vec<u8> = [&self.live[..common], &self.tail].concat();
            match up_to(3) {
                0 => self.live = old,
                1 => {}
                2 => {
                    let end = common + up_to(self.live.len() - common);
                    self.live.truncate(end);
                }
                _ => {
                    let (short, long) = (old.len().min(self.live.len()), old.len().max(self.live.len()));
                    let len = [old.len(), self.live.len(), short + up_to(long - short)][up_to(2)];
                    self.live = mix(&old, &self.live, common, len, &mut up_to);
                }
            }
        }
        self.sync();
    }
}

/// Returns `len` bytes of which each sector after `common` is old, new, or was never written.
fn mix(old: &[u8], new: &[u8], common: usize, len: usize, up_to: &mut dyn FnMut(usize) -> usize) -> Vec<u8> {
    let mut bytes = new[..common].to_vec();
    while bytes.len() < len {
        let start = bytes.len();
        let end = len.min((start / SECTOR_BYTES + 1) * SECTOR_BYTES);
        let from: &[u8] = match up_to(3) {
            0 => old,
            1 => &[],
            _ => new,
        };
        bytes.extend((start..end).map(|at| from.get(at).copied().unwrap_or(0)));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dice(mut state: u64) -> impl FnMut() -> u64 {
        move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        }
    }

    #[test]
    fn what_was_synced_survives_every_crash_and_what_was_not_may_be_lost() {
        let mut outcomes = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut inode = Inode::new(0o600);
            inode.append(b"old ");
            inode.sync();
            inode.append(b"new");
            assert_eq!(inode.kept(), b"old ");
            inode.crash(&mut dice(seed));
            assert!(inode.live.starts_with(b"old "), "{:?}", inode.live);
            outcomes.insert(inode.live);
        }
        assert!(outcomes.contains(b"old ".as_slice()) && outcomes.contains(b"old new".as_slice()));
        assert!(outcomes.contains(b"old ne".as_slice()) && outcomes.contains(b"old \0\0\0".as_slice()));
    }

    #[test]
    fn a_cut_may_be_undone_by_a_crash_until_it_is_synced() {
        let mut outcomes = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut inode = Inode::new(0o600);
            inode.append(b"keep torn");
            inode.sync();
            inode.set_len(4);
            inode.crash(&mut dice(seed));
            outcomes.insert(inode.live);
        }
        assert!(outcomes.contains(b"keep".as_slice()) && outcomes.contains(b"keep torn".as_slice()));
    }

    #[test]
    fn bytes_dropped_by_a_failed_sync_are_gone_after_a_later_good_one() {
        for seed in 0..50 {
            let mut inode = Inode::new(0o600);
            inode.append(b"a");
            inode.sync();
            inode.append(b"b");
            inode.sync_dropping();
            assert_eq!(inode.live, b"ab");
            inode.append(b"c");
            inode.sync();
            assert_eq!(inode.kept(), b"a");
            inode.crash(&mut dice(seed));
            assert_eq!(inode.live, b"a\0c", "seed {seed}");
        }
    }
}
