//! Plays one job with the real program, in a home and a project of its own, and measures it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::canned::MODEL;
use super::sample::Watch;
use super::server::{Server, Told};

/// Between two looks at the process.
const PACE: Duration = Duration::from_millis(1);
const LIMIT: Duration = Duration::from_secs(120);

/// What the program is asked to do.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// Commands to run before the answer.
    pub rounds: usize,
}

/// One run.
pub struct Measured {
    /// From before the program was started until its first request was heard.
    pub first_request_ms: f64,
    pub wall_ms: f64,
    pub own_cpu_ms: f64,
    /// With the commands and what runs them.
    pub all_cpu_ms: f64,
    pub peak_mb: f64,
    pub log_syncs: f64,
}

/// Plays the job once.
///
/// Errors: in words, also when the program did anything else than what the job says.
pub fn play(binary: &Path, folder: &Path, job: Job) -> Result<Measured, String> {
    let project =
        fresh_project(folder).map_err(|why| format!("cannot prepare {}: {why}", folder.display()))?;
    let server = Server::start(job.rounds).map_err(|why| format!("cannot listen on loopback: {why}"))?;
    let mut yaoki = command(binary, folder, &server);
    let started = Instant::now();
    let mut child =
        yaoki.current_dir(project).spawn().map_err(|why| format!("{}: {why}", binary.display()))?;
    let watched = watch(&child, &server, started);
    if watched.is_err() {
        // Ours by its id; it may have ended by itself.
        let _ = child.kill();
    }
    let output = child.wait_with_output().map_err(|why| format!("cannot wait for yaoki: {why}"))?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = || format!("{told}{}", String::from_utf8_lossy(&output.stderr));
    let (watch, first, wall) = watched.map_err(|why| format!("{why}\n{}", complaint()))?;
    if !output.status.success() || server.answered() != job.rounds + 1 {
        let (asked, want) = (server.answered(), job.rounds + 1);
        return Err(format!(
            "yaoki asked {asked} times in place of {want}, {}\n{}",
            output.status,
            complaint()
        ));
    }
    let log_syncs = number(&told, "yaoki_log_syncs")
        .ok_or_else(|| format!("the result does not tell yaoki_log_syncs: {told}"))?;
    Ok(Measured {
        first_request_ms: first.as_secs_f64() * 1e3,
        wall_ms: wall.as_secs_f64() * 1e3,
        own_cpu_ms: watch.own_cpu_ms(),
        all_cpu_ms: watch.own_cpu_ms() + watch.children_cpu_ms(),
        peak_mb: watch.peak_mb(),
        log_syncs,
    })
}

/// Follows the process to its end; it is left unreaped, so that its numbers can be read.
///
/// Shape: the watch, the time to the first request, the time to the end.
fn watch(child: &Child, server: &Server, started: Instant) -> Result<(Watch, Duration, Duration), String> {
    let mut watch = Watch::of(child.id());
    let mut first = None;
    while !watch.look()? {
        match server.told.recv_timeout(PACE) {
            Ok(Told::Arrived(at)) => first = first.or(Some(at - started)),
            Ok(Told::Held) => {
                watch.look()?;
                server.let_go();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err("the server is gone".to_owned()),
        }
        if started.elapsed() > LIMIT {
            return Err(format!("yaoki did not end within {} s", LIMIT.as_secs()));
        }
    }
    let wall = started.elapsed();
    first.map(|first| (watch, first, wall)).ok_or_else(|| "yaoki ended without a request".to_owned())
}

fn command(binary: &Path, folder: &Path, server: &Server) -> Command {
    let mut yaoki = Command::new(binary);
    yaoki
        .args(["-p", "Run what you need to, then say that it is done.", "--output-format", "json"])
        .args(["--model", MODEL, "--max-turns", "100", "--dangerously-skip-permissions"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder.join("home"))
        .env("YAOKI_HOME", folder.join("home/yaoki"))
        .env("ANTHROPIC_API_KEY", "sk-bench")
        .env("ANTHROPIC_BASE_URL", format!("http://{}", server.address))
        .env("IS_SANDBOX", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    yaoki
}

/// Makes an empty home and a small git repository; what an earlier run left is removed.
fn fresh_project(folder: &Path) -> std::io::Result<std::path::PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let project = folder.join("project");
    fs::create_dir_all(&project)?;
    fs::create_dir_all(folder.join("home"))?;
    fs::write(project.join("README.md"), "A project to measure in.\n")?;
    Command::new("git").args(["init", "--quiet"]).current_dir(&project).status()?;
    Ok(project)
}

/// Returns the number that follows `"name":` in a line of JSON.
fn number(json: &str, name: &str) -> Option<f64> {
    let rest = json.split_once(&format!("\"{name}\":"))?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_by_its_name() {
        let json = r#"{"num_turns":51,"yaoki_log_syncs": 102}"#;
        assert_eq!(number(json, "yaoki_log_syncs"), Some(102.0));
        assert_eq!(number(json, "num_turns"), Some(51.0));
        assert_eq!(number(json, "syncs"), None);
    }

    #[test]
    fn a_program_that_asks_nothing_is_told() {
        let folder = std::env::temp_dir().join(format!("yaoki-xtask-{}", std::process::id()));
        let told = play(Path::new("true"), &folder, Job { rounds: 0 }).err();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(told.as_deref(), Some("yaoki ended without a request\n"));
    }
}
