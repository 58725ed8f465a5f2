//! Seeds run twice here and once in another process: all that was sent, told and written must be the same (G3).

use std::process::Command;

use yaoki_sim::coverage::Coverage;
use yaoki_sim::trace::Look;

use super::caught;

/// Runs seeds 1 to `seeds`. Prints what differs; returns whether nothing does.
pub fn check(seeds: u64) -> bool {
    let elsewhere = match traces_elsewhere(seeds) {
        Ok(traces) => traces,
        Err(error) => {
            println!("G3: no other process could be asked: {error}");
            return false;
        }
    };
    let (first, second) = (traces(seeds), traces(seeds));
    let mut differing = 0;
    for (seed, ((first, second), elsewhere)) in (1..).zip(first.iter().zip(&second).zip(&elsewhere)) {
        if first != second || first != elsewhere {
            differing += 1;
            println!("G3: seed {seed} differs: {first:016x}, {second:016x}, elsewhere {elsewhere:016x}");
        }
    }
    let is_same = differing == 0 && elsewhere.len() as u64 == seeds;
    println!("{seeds} seeds run three times, in two processes: {differing} differ");
    is_same
}

/// Prints one trace a line, for the process that compares.
pub fn print(seeds: u64) {
    for trace in traces(seeds) {
        println!("{trace:016x}");
    }
}

fn traces(seeds: u64) -> Vec<u64> {
    (1..=seeds).map(|seed| caught(seed, &Coverage::default(), Look::Close).trace).collect()
}

fn traces_elsewhere(seeds: u64) -> std::io::Result<Vec<u64>> {
    let output = Command::new(std::env::current_exe()?).args(["traces", &seeds.to_string()]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| u64::from_str_radix(line, 16).ok()).collect())
}
