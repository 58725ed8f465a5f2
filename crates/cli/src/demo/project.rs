//! The little world of the demo: a git repository with a failing test, and what lies outside of it.
//!
//! Promises: everything is in one temporary folder, git sees no settings but those in it, and nothing needs more
//! than `sh`. Deliberately not here: what the agent does with it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use tempfile::TempDir;

use crate::exit::CliError;

/// The folder, and the far ends of the two pipes through which the smoke test talks to us.
#[derive(Debug)]
pub struct Project {
    dir: Mutex<Option<TempDir>>,
    base: PathBuf,
    /// Held open, so that the smoke test never waits for a reader or misses our word.
    running: File,
    go: File,
}

/// Files of the repository. The fault is the minus.
const FILES: [(&str, &str); 4] = [
    (
        "sum.sh",
        "# Prints the sum of its arguments.\ntotal=0\nfor n in \"$@\"; do\n  total=$((total - n))\ndone\necho \"$total\"\n",
    ),
    (
        "test.sh",
        "# Fails unless sum.sh adds.\nstatus=0\ncheck() {\n  want=$1\n  shift\n  got=$(sh sum.sh \"$@\")\n  \
         if [ \"$got\" = \"$want\" ]; then echo \"ok: sum $* = $want\"\n  \
         else echo \"FAIL: sum $* = $want, got $got\"; status=1; fi\n}\ncheck 0\ncheck 6 1 2 3\nexit $status\n",
    ),
    (
        "deploy.sh",
        "# Tells the world; there is no way back.\necho \"deployed sum.sh $(cksum < sum.sh | cut -d ' ' -f 1)\" >> ../ledger\n\
         tail -n 1 ../ledger\n",
    ),
    (
        "smoke.sh",
        "# Looks at what was deployed. Takes as long as it is told to.\necho begun >> ../smoke.log\necho running > ../running\n\
         read -r word < ../go || exit 1\necho ended >> ../smoke.log\necho 'smoke test: 1 service, healthy'\necho over > ../running\n",
    ),
];

/// The line that is wrong, and the line that the edit puts in its place.
pub const WRONG: &str = "total=$((total - n))";
pub const RIGHT: &str = "total=$((total + n))";

impl Project {
    /// Makes the folder, the repository with one commit, and the pipes.
    ///
    /// Errors: there is no room or no `git`.
    pub fn make() -> Result<Self, CliError> {
        let dir = tempfile::Builder::new().prefix("yaoki-demo-").tempdir().map_err(|error| {
            CliError::environment(
                format_args!("cannot make a temporary folder: {error}"),
                "set TMPDIR to a folder that can be written",
            )
        })?;
        // Names in the log and in git are the real ones.
        let base = fs::canonicalize(dir.path()).map_err(|error| unmade(&error))?;
        let (running, go) = lay_out(&base).map_err(|error| unmade(&error))?;
        let project = Self { dir: Mutex::new(Some(dir)), base, running, go };
        for args in [
            &["-c", "init.defaultBranch=main", "init", "--quiet"][..],
            &["config", "user.name", "Demo"],
            &["config", "user.email", "demo@example.invalid"],
            &["add", "."],
            &["commit", "--quiet", "--message", "a sum that does not add up"],
        ] {
            project.git(args)?;
        }
        Ok(project)
    }

    /// The repository.
    pub fn root(&self) -> PathBuf {
        self.base.join("project")
    }

    /// Home of the agent child: its sessions are here, and no settings of ours.
    pub fn home(&self) -> PathBuf {
        self.base.join("home")
    }

    /// Everything.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Lines of the ledger, which is outside of the repository.
    pub fn ledger(&self) -> Vec<String> {
        lines(&self.base.join("ledger"))
    }

    /// What the smoke test noted of itself.
    pub fn smoke_log(&self) -> Vec<String> {
        lines(&self.base.join("smoke.log"))
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root().join(name)).unwrap_or_default()
    }

    /// Runs the tests ourselves.
    pub fn tests_pass(&self) -> bool {
        let run = self.plainly("sh").arg("test.sh").stdout(Stdio::null()).stderr(Stdio::null()).status();
        run.is_ok_and(|status| status.success())
    }

    /// Runs git in the repository and returns what it printed.
    ///
    /// Errors: it is not there, or says no.
    pub fn git(&self, args: &[&str]) -> Result<String, CliError> {
        let ran = self.plainly("git").args(args).stdin(Stdio::null()).output();
        let hint = "install git; the demo plays in a repository of its own";
        let output =
            ran.map_err(|error| CliError::environment(format_args!("cannot run git: {error}"), hint))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(CliError::environment(format_args!("git {}: {said}", args.join(" ")), hint));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The environment that every child gets, and nothing else: no proxy, no settings, no keys of the user's.
    pub fn env(&self) -> Vec<(&'static str, std::ffi::OsString)> {
        let mut env = vec![
            ("HOME", self.home().into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
        ];
        env.extend(["PATH", "TMPDIR"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        env
    }

    /// Returns an end of the pipe on which the smoke test says that it runs, and that it is over.
    pub fn hear_smoke(&self) -> io::Result<File> {
        self.running.try_clone()
    }

    /// Lets the smoke test go on to its end.
    pub fn let_smoke_end(&self) -> io::Result<()> {
        (&self.go).write_all(b"go\n")
    }

    /// Keeps the folder when the demo is over.
    pub fn keep(&self) {
        let dir = self.dir.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(dir) = dir {
            let _kept = dir.keep();
        }
    }

    fn plainly(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.root()).env_clear().envs(self.env());
        command
    }
}

fn lay_out(base: &Path) -> io::Result<(File, File)> {
    fs::create_dir(base.join("project"))?;
    fs::create_dir(base.join("home"))?;
    for (name, text) in FILES {
        fs::write(base.join("project").join(name), text)?;
    }
    // By the program: there is no call for it that all systems have.
    let made = Command::new("mkfifo").args(["running", "go"]).current_dir(base).status()?;
    if !made.success() {
        return Err(io::Error::other("mkfifo said no"));
    }
    let both_ways = |name| OpenOptions::new().read(true).write(true).open(base.join(name));
    Ok((both_ways("running")?, both_ways("go")?))
}

fn unmade(error: &io::Error) -> CliError {
    CliError::environment(
        format_args!("cannot make the demo's files: {error}"),
        "set TMPDIR to a folder that can be written",
    )
}

fn lines(path: &Path) -> Vec<String> {
    let mut text = String::new();
    if let Ok(file) = File::open(path) {
        // The file is ours and small; what cannot be read fails the check that counts its lines.
        let _ = file.take(1 << 20).read_to_string(&mut text);
    }
    text.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_the_project_fail_until_the_one_line_is_right() {
        let project = Project::make().unwrap();
        assert!(!project.tests_pass());
        let sum = project.read("sum.sh");
        assert_eq!(sum.matches(WRONG).count(), 1);
        fs::write(project.root().join("sum.sh"), sum.replace(WRONG, RIGHT)).unwrap();
        assert!(project.tests_pass());
        assert_eq!(project.git(&["status", "--porcelain"]).unwrap(), " M sum.sh\n");
        assert_eq!(project.ledger(), Vec::<String>::new());
    }

    #[test]
    fn the_folder_is_gone_afterwards_unless_it_is_kept() {
        let project = Project::make().unwrap();
        let base = project.base().to_owned();
        drop(project);
        assert!(!base.exists());
    }
}
