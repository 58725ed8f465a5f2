//! Puts the world's deaths and faults into the calls of the disk that write the session.

use yaoki::store::mem::{Call, Errno, Op, Verdict};

use crate::coverage::weight;
use crate::life::HOME;
use crate::world::World;

/// From now on each call that changes something under the sessions' home may fail, or be the last.
pub fn arm(world: &World) {
    let disk = world.disk.clone();
    let world = world.clone();
    let mut is_full = false;
    let mut lost = Lost::default();
    disk.set_faults(move |call: &Call<'_>| {
        if world.is_dying() {
            return Verdict::Fail(Errno::Io);
        }
        let Some(site) = site_of(call) else { return Verdict::Go };
        if lost.may_die() && world.point_in_disk(site) {
            return dying(&world, call);
        }
        // A disk that took a part may have no room for the rest.
        if std::mem::take(&mut is_full) && call.op == Op::Append {
            return Verdict::Fail(Errno::NoSpace);
        }
        if !lost.may_fail(call) || !world.may_fault(world.swarm.disk_faults * weight(site)) {
            lost.worked(call);
            return Verdict::Go;
        }
        let (name, verdict) = fault(&world, call);
        lost.failed(call);
        is_full = name == "short" && world.dice.is(500);
        world.hit(name, site);
        verdict
    });
}

/// After a sync that failed: nothing on disk tells of it until the store has left a mark.
///
/// A process that is killed before, or whose disk does not take the mark either, leaves a file that looks whole, and
/// nobody can know. The store says so; here it does not happen.
#[derive(Default)]
struct Lost {
    is_unmarked: bool,
    has_failed: bool,
}

impl Lost {
    fn may_die(&self) -> bool {
        !self.is_unmarked
    }

    fn may_fail(&mut self, call: &Call<'_>) -> bool {
        !(self.is_unmarked && is_mark(call) && std::mem::replace(&mut self.has_failed, true))
    }

    fn failed(&mut self, call: &Call<'_>) {
        // A log that was moved is still written to under the name it was made with.
        let is_log = has_extension(call, "jsonl") || has_extension(call, "new");
        self.is_unmarked |= call.op == Op::SyncData && is_log;
    }

    fn worked(&mut self, call: &Call<'_>) {
        if is_mark(call) || call.op == Op::SyncDir {
            *self = Lost::default();
        }
    }
}

fn is_mark(call: &Call<'_>) -> bool {
    call.op == Op::CreateNew && call.path.ends_with("suspect")
}

fn has_extension(call: &Call<'_>, name: &str) -> bool {
    call.path.extension().is_some_and(|extension| extension == name)
}

/// Where a call belongs: to the log itself, to a file beside it, or to the names of both.
fn site_of(call: &Call<'_>) -> Option<&'static str> {
    if !call.path.starts_with(HOME) {
        return None;
    }
    let is_log = has_extension(call, "jsonl");
    match call.op {
        Op::Append if is_log => Some("append"),
        Op::SyncData if is_log => Some("sync"),
        Op::Append | Op::SyncData => Some("beside"),
        Op::Rename => Some("rename"),
        Op::SyncDir => Some("folder"),
        Op::CreateNew => Some("create"),
        Op::OpenAppend
        | Op::Read
        | Op::Remove
        | Op::CreateDir
        | Op::List
        | Op::Look
        | Op::TryLock
        | Op::SetLen
        | Op::Allocate
        | Op::SetMeta => None,
    }
}

/// A write may be caught half-way.
fn dying(world: &World, call: &Call<'_>) -> Verdict {
    match call.op == Op::Append && world.dice.is(500) {
        true => Verdict::Short(part_of(world, call)),
        false => Verdict::Fail(Errno::Io),
    }
}

fn fault(world: &World, call: &Call<'_>) -> (&'static str, Verdict) {
    match (call.op, world.dice.below(4)) {
        (Op::Append, 0) => ("short", Verdict::Short(part_of(world, call))),
        (Op::Append, 1) => ("enospc", Verdict::Fail(Errno::NoSpace)),
        (Op::Append, 2) => ("eio", Verdict::Fail(Errno::Io)),
        (Op::Append, _) => ("eio_after", Verdict::FailAfter(Errno::Io)),
        (Op::SyncData, 0) => ("eio", Verdict::Fail(Errno::Io)),
        (Op::SyncData, 1) => ("eio_after", Verdict::FailAfter(Errno::Io)),
        (Op::SyncData, _) => ("eio_dropping", Verdict::FailDropping(Errno::Io)),
        (Op::CreateNew, 0 | 1) => ("enospc", Verdict::Fail(Errno::NoSpace)),
        (_, 0 | 1) => ("eio_after", Verdict::FailAfter(Errno::Io)),
        (_, _) => ("eio", Verdict::Fail(Errno::Io)),
    }
}

fn part_of(world: &World, call: &Call<'_>) -> usize {
    1 + world.dice.below(call.bytes.max(1) as u64) as usize
}
