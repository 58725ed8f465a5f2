//! What the machine takes for the same syncs and commands without an agent around them.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// About what one round appends to the log.
const RECORD_BYTES: usize = 600;

/// Returns the milliseconds of so many appends to one file, each synced.
pub fn syncs_ms(folder: &Path, count: usize) -> Result<f64, String> {
    let path = folder.join("syncs");
    let timed = || -> std::io::Result<f64> {
        fs::create_dir_all(folder)?;
        let mut file = File::create(&path)?;
        let started = Instant::now();
        for _ in 0..count {
            file.write_all(&[b'x'; RECORD_BYTES])?;
            file.sync_data()?;
        }
        Ok(started.elapsed().as_secs_f64() * 1e3)
    };
    timed().map_err(|why| format!("cannot sync {}: {why}", path.display()))
}

/// Returns the milliseconds of so many shells, one after the other.
pub fn shells_ms(count: usize) -> Result<f64, String> {
    (0..count).map(|_| program_ms(Command::new("sh").args(["-c", "true"]))).sum()
}

/// Returns the milliseconds from start to end of one program.
pub fn program_ms(command: &mut Command) -> Result<f64, String> {
    let started = Instant::now();
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let took_ms = started.elapsed().as_secs_f64() * 1e3;
    let name = command.get_program().to_string_lossy();
    match ended {
        Ok(status) if status.success() => Ok(took_ms),
        Ok(status) => Err(format!("{name}: {status}")),
        Err(why) => Err(format!("{name}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_is_told_and_not_timed() {
        assert!(program_ms(&mut Command::new("true")).is_ok());
        assert!(program_ms(&mut Command::new("false")).is_err());
        assert!(program_ms(&mut Command::new("no-such-program")).is_err());
    }
}
