//! What the system says about a running process, and about one that has ended and was not yet reaped.
//!
//! Promises: processor time of the process itself in nanoseconds, thread by thread, for as long as the
//! system keeps them; of its children in ticks of 10 ms, which is what the system tells.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// `USER_HZ`, the same on every Linux that Yaoki runs on.
const TICK_MS: f64 = 10.0;

/// A process under observation.
pub struct Watch {
    folder: PathBuf,
    /// Nanoseconds on a processor, by thread. An ended thread keeps its last number.
    threads: BTreeMap<u64, u64>,
    peak_kib: u64,
    stat: Stat,
}

/// The fields of `/proc/PID/stat` that are read here; times in ticks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Stat {
    is_over: bool,
    own_ticks: u64,
    children_ticks: u64,
}

impl Watch {
    pub fn of(id: u32) -> Watch {
        let folder = PathBuf::from(format!("/proc/{id}"));
        Watch { folder, threads: BTreeMap::new(), peak_kib: 0, stat: Stat::default() }
    }

    /// Reads everything once; returns whether the process has ended.
    pub fn look(&mut self) -> Result<bool, String> {
        let path = self.folder.join("stat");
        let stat =
            fs::read_to_string(&path).map_err(|why| format!("cannot read {}: {why}", path.display()))?;
        self.stat = to_stat(&stat).ok_or_else(|| format!("cannot understand {}", path.display()))?;
        // A thread or the memory may be gone by the time it is read; the last number stands.
        if let Ok(status) = fs::read_to_string(self.folder.join("status")) {
            self.peak_kib = self.peak_kib.max(to_peak_kib(&status).unwrap_or(0));
        }
        for thread in fs::read_dir(self.folder.join("task")).into_iter().flatten().flatten() {
            let id = thread.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
            let spent = fs::read_to_string(thread.path().join("schedstat")).ok();
            let spent_ns = spent.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
            if let (Some(id), Some(spent_ns)) = (id, spent_ns) {
                self.threads.insert(id, spent_ns);
            }
        }
        Ok(self.stat.is_over)
    }

    pub fn peak_mb(&self) -> f64 {
        self.peak_kib as f64 * 1024.0 / 1e6
    }

    /// The finer of the two counts, unless it missed a thread.
    pub fn own_cpu_ms(&self) -> f64 {
        let by_thread_ms = self.threads.values().sum::<u64>() as f64 / 1e6;
        by_thread_ms.max(self.stat.own_ticks as f64 * TICK_MS)
    }

    pub fn children_cpu_ms(&self) -> f64 {
        self.stat.children_ticks as f64 * TICK_MS
    }
}

/// Reads `pid (name) state …`; the name may hold anything.
fn to_stat(text: &str) -> Option<Stat> {
    let rest = text.rsplit_once(") ")?.1;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        is_over: matches!(*fields.first()?, "Z" | "X"),
        own_ticks: ticks(11)? + ticks(12)?,
        children_ticks: ticks(13)? + ticks(14)?,
    })
}

fn to_peak_kib(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_system_are_read() {
        let stat = "7 (a) b) Z 1 7 7 0 -1 4194304 98 0 0 0 12 3 40 5 20 0 1 0 188723 3133440 360";
        assert_eq!(to_stat(stat), Some(Stat { is_over: true, own_ticks: 15, children_ticks: 45 }));
        assert_eq!(to_stat("7 (a"), None);
        assert_eq!(to_peak_kib("Name:\ta\nVmHWM:\t    1880 kB\n"), Some(1880));
        assert_eq!(to_peak_kib("Name:\ta\n"), None);
    }
}
