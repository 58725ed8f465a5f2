//! The processes below the runner: who is left, and how they are ended.
//!
//! On Linux the runner is a subreaper: whatever a command leaves behind, also through `setsid` and double
//! forks, becomes its child. Only its own children are signalled, and only it reaps them, so no signal
//! reaches a stranger that was given an old pid. Elsewhere the command's process group is all that is known.

use rustix::process::{Pid, Signal};

/// One direct child of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Child {
    pub pid: Pid,
    pub group: Option<Pid>,
    pub name: String,
    pub is_zombie: bool,
}

/// Makes orphaned descendants ours.
#[cfg(target_os = "linux")]
pub(super) fn adopt_orphans() {
    // Without it (an old kernel) the group is still ended; nothing to tell anyone.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(not(target_os = "linux"))]
pub(super) fn adopt_orphans() {}

/// Lists the direct children, or none where the system does not show them.
pub(super) fn list() -> Option<Vec<Child>> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        if !name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit) {
            continue;
        }
        // It may be gone by now; then it is no child.
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        children.extend(child_of(own, &String::from_utf8_lossy(&stat)));
    }
    Some(children)
}

/// Reads a line of `/proc/PID/stat`: `pid (name) state parent group …`. The name may hold anything.
fn child_of(parent: i32, stat: &str) -> Option<Child> {
    let (pid, rest) = stat.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let (state, ppid, group) = (fields.next()?, fields.next()?, fields.next()?);
    if ppid.parse::<i32>().ok()? != parent {
        return None;
    }
    Some(Child {
        pid: Pid::from_raw(pid.parse().ok()?)?,
        group: group.parse().ok().and_then(Pid::from_raw),
        name: name.to_owned(),
        is_zombie: state == "Z",
    })
}

/// Sends a signal to everything below us, once to each group and stray process until [`Self::again`].
#[derive(Debug, Default)]
pub(super) struct Signaller {
    told: Vec<Pid>,
}

impl Signaller {
    /// Everything may be told once more.
    pub(super) fn again(&mut self) {
        self.told.clear();
    }

    /// `group` is the command's own; `is_held` while its leader is not reaped, so that the number is its.
    pub(super) fn send(&mut self, group: Pid, is_held: bool, signal: Signal) {
        if is_held {
            self.send_group(group, signal);
        }
        let own = rustix::process::getpgrp();
        let Some(children) = list() else { return self.send_group(group, signal) };
        for child in children.into_iter().filter(|child| !child.is_zombie) {
            match child.group {
                Some(theirs) if theirs != own => self.send_group(theirs, signal),
                _ if self.is_news(child.pid) => {
                    let _ = rustix::process::kill_process(child.pid, signal);
                }
                _ => {}
            }
        }
    }

    fn send_group(&mut self, group: Pid, signal: Signal) {
        if self.is_news(group) {
            // An error means that nobody is there any more, which is what was wanted.
            let _ = rustix::process::kill_process_group(group, signal);
            // A stopped process would not hear anything but KILL.
            let _ = rustix::process::kill_process_group(group, Signal::CONT);
        }
    }

    fn is_news(&mut self, pid: Pid) -> bool {
        let is_news = !self.told.contains(&pid);
        if is_news {
            self.told.push(pid);
        }
        is_news
    }
}

/// Whether anything is left below us, once the shell is reaped.
pub(super) fn are_left(group: Pid, none_to_wait_for: bool) -> bool {
    if cfg!(target_os = "linux") {
        !none_to_wait_for
    } else {
        rustix::process::test_kill_process_group(group).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_name_holds() {
        let child = child_of(7, "42 (a) b (c) S 7 41 41 0 -1").unwrap();
        assert_eq!(child.pid.as_raw_nonzero().get(), 42);
        assert_eq!(child.group.map(|group| group.as_raw_nonzero().get()), Some(41));
        assert_eq!((child.name.as_str(), child.is_zombie), ("a) b (c", false));
        assert_eq!(child_of(8, "42 (a) S 7 41 41 0 -1"), None);
        assert!(child_of(7, "42 (a) Z 7 41").unwrap().is_zombie);
    }
}
