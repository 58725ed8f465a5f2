//! A disk in memory that loses what was not synced.
//!
//! Fault model. Bytes: what was not synced may be lost, kept, torn at any byte, or come back as NULs by the
//! sector; a cut that was not synced may be undone. Names: what was not synced with its folder may be lost, all of
//! it, its end, or any part. Calls: each can fail before or after it took effect, be cut short, or be the moment
//! the power goes. A failed sync may drop the unwritten bytes while they are still seen. Space can be short.
//! Deterministic: the same calls, verdicts and dice give the same disk.
//! Not modelled: bits that flip by themselves (write them with [`MemDisk::poke`]), links inside a path,
//! and permissions beyond the owner's write bit.

mod calls;
mod inode;
mod names;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno as Os;

use inode::Inode;
use names::{Name, Names};

/// A simulated disk. A clone is the same disk; [`MemDisk::fork`] is another one that looks alike.
#[derive(Clone, Default)]
pub struct MemDisk {
    state: Arc<Mutex<State>>,
    /// Apart from the state, so that it may look at the disk and poke it.
    faults: Arc<Mutex<Option<Faults>>>,
}

type Faults = Box<dyn FnMut(&Call) -> Verdict + Send>;

#[derive(Default)]
struct State {
    inodes: Vec<Inode>,
    names: Names,
    /// Of files, whatever their names: one that was removed is locked as long as it is held.
    locks: BTreeSet<usize>,
    /// Grows with each crash; handles and locks of an earlier boot are dead.
    boot: u64,
    is_off: bool,
    call_count: u64,
    change_count: u64,
    space: Option<u64>,
}

/// A call on its way to the disk.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub op: Op,
    /// The path given; for a handle the one it was opened under.
    pub path: &'a Path,
    /// How many bytes are to be written or read, 0 where that means nothing.
    pub bytes: usize,
    /// Calls before this one.
    pub index: u64,
}

/// The calls that can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    OpenAppend,
    CreateNew,
    Read,
    Rename,
    Remove,
    SyncDir,
    CreateDir,
    List,
    Look,
    TryLock,
    Append,
    SyncData,
    SetLen,
    Allocate,
    SetMeta,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It works.
    Go,
    /// It fails and changes nothing.
    Fail(Errno),
    /// It works and says that it failed.
    FailAfter(Errno),
    /// A sync fails and forgets the bytes, which are still seen. Elsewhere as [`Verdict::Fail`].
    FailDropping(Errno),
    /// A write takes only so many bytes (at least one). Elsewhere as [`Verdict::Go`].
    Short(usize),
    /// The power goes before it: this call and all later ones fail, until [`MemDisk::crash`].
    PowerCut,
}

/// Errors a disk can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    Io,
    NoSpace,
    Quota,
    TooManyFiles,
    ReadOnly,
    Denied,
    Interrupted,
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> io::Error {
        let os = match errno {
            Errno::Io => Os::IO,
            Errno::NoSpace => Os::NOSPC,
            Errno::Quota => Os::DQUOT,
            Errno::TooManyFiles => Os::MFILE,
            Errno::ReadOnly => Os::ROFS,
            Errno::Denied => Os::ACCESS,
            Errno::Interrupted => Os::INTR,
        };
        os.into()
    }
}

impl MemDisk {
    /// An empty disk without faults and without bounds. `/` and `.` exist.
    pub fn new() -> MemDisk {
        MemDisk::default()
    }

    /// Asks `faults` about each call from now on. It may [`peek`](Self::peek) and [`poke`](Self::poke), as another
    /// process would between two calls, but make no call of its own.
    pub fn set_faults(&self, faults: impl FnMut(&Call) -> Verdict + Send + 'static) {
        *lock(&self.faults) = Some(Box::new(faults));
    }

    pub fn clear_faults(&self) {
        *lock(&self.faults) = None;
    }

    /// Bounds the bytes of all files together. `None`: no bound.
    pub fn set_space(&self, bytes: Option<u64>) {
        self.state().space = bytes;
    }

    /// Bytes taken by all named files.
    pub fn space_used(&self) -> u64 {
        self.state().space_used()
    }

    /// How many calls were made.
    pub fn call_count(&self) -> u64 {
        self.state().call_count
    }

    /// The power goes and comes back. What was not synced is lost in a way the dice choose; handles and locks die.
    ///
    /// `dice` gives evenly spread numbers.
    pub fn crash(&self, dice: &mut dyn FnMut() -> u64) {
        let mut state = self.state();
        state.names.crash(dice);
        for inode in &mut state.inodes {
            inode.crash(dice);
        }
        state.locks.clear();
        state.boot += 1;
        state.is_off = false;
    }

    /// The cache is dropped, as under memory pressure: bytes lost in a failed sync are now seen as NULs.
    pub fn evict(&self) {
        self.state().inodes.iter_mut().for_each(Inode::evict);
    }

    /// A copy that goes its own way, without faults. Handles and locks stay with the original.
    pub fn fork(&self) -> MemDisk {
        let state = self.state();
        let copy = State {
            inodes: state.inodes.clone(),
            names: state.names.clone(),
            space: state.space,
            boot: state.boot,
            ..State::default()
        };
        MemDisk { state: Arc::new(Mutex::new(copy)), faults: Arc::default() }
    }

    /// Sets a file's bytes, seen and on the platter, with its name and folders: for setting up and for damage.
    pub fn poke(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        let index = match state.names.file(path) {
            Some(index) => index,
            None => {
                state.inodes.push(Inode::new(0o644));
                let index = state.inodes.len() - 1;
                state.names.poke(path, Name::File(index));
                index
            }
        };
        let inode = &mut state.inodes[index];
        inode.set_len(0);
        inode.append(bytes);
        inode.sync();
    }

    /// Returns a file's bytes as seen, past all faults. `None`: there is no such file.
    pub fn peek(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        state.names.file(path).map(|index| state.inodes[index].live.clone())
    }

    /// Returns the bytes of a file that no power cut can take: its name is on the platter, and so is what it holds up
    /// to there. `None`: a power cut may take the name, or bring another file under it.
    pub fn kept(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        state.names.kept_file(path).map(|index| state.inodes[index].kept().to_vec())
    }

    /// Returns the paths of all files and links, sorted.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.state().names.paths()
    }

    /// Makes a symbolic link; it lasts.
    pub fn link(&self, path: &Path, target: &Path) {
        self.state().names.poke(path, Name::Link(target.to_path_buf()));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Counts a call and asks what becomes of it.
    fn judge(&self, op: Op, path: &Path, bytes: usize) -> Verdict {
        let index = {
            let mut state = self.state();
            state.call_count += 1;
            if state.is_off {
                return Verdict::Fail(Errno::Io);
            }
            state.call_count - 1
        };
        match lock(&self.faults).as_mut() {
            Some(faults) => faults(&Call { op, path, bytes, index }),
            None => Verdict::Go,
        }
    }

    /// Counts a call, judges it and performs it.
    fn call<T>(
        &self,
        op: Op,
        path: &Path,
        bytes: usize,
        act: impl FnOnce(&mut State, Verdict) -> io::Result<T>,
    ) -> io::Result<T> {
        let verdict = self.judge(op, path, bytes);
        let mut state = self.state();
        match verdict {
            Verdict::Fail(errno) => Err(errno.into()),
            Verdict::FailDropping(errno) if op != Op::SyncData => Err(errno.into()),
            Verdict::FailAfter(errno) => {
                let result = act(&mut state, Verdict::Go);
                // A lock lets go of itself through the state.
                drop(state);
                result.and_then(|_| Err(errno.into()))
            }
            Verdict::PowerCut => {
                state.is_off = true;
                Err(Errno::Io.into())
            }
            Verdict::Go | Verdict::Short(_) | Verdict::FailDropping(_) => act(&mut state, verdict),
        }
    }
}

/// A panic of a test leaves the disk as it is.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for MemDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemDisk({} calls)", self.call_count())
    }
}

impl State {
    fn space_used(&self) -> u64 {
        self.names.files().map(|index| self.inodes[index].len()).sum()
    }

    fn space_left(&self) -> u64 {
        self.space.map_or(u64::MAX, |space| space.saturating_sub(self.space_used()))
    }

    fn file(&self, path: &Path) -> io::Result<usize> {
        self.names.file(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
