//! The REPL with piped input: five errors of two prompts, and the process goes on after each.

use yaoki_lab::{Script, example};

use crate::stage::{Running, Stage};

#[test]
fn five_errors_do_not_end_it_and_the_counts_are_right() {
    let stage = Stage::new(Script::parse(example("five-errors").unwrap()).unwrap());
    let mut command = stage.yaoki(&[]);
    let ran = Running::start_with(&mut command, "Summarise the README\nSay it again\n/status\n");
    ran.assert_code(0);
    stage.assert_accepted();
    assert_eq!(ran.err, "");
    let session = stage.session();
    let cwd = stage.project().canonicalize().unwrap();
    let date = ran.out.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
    assert!(date.len() == 10 && date.chars().filter(|c| *c == '-').count() == 2, "a date: {date}");
    let retry = ran.out.lines().find(|line| line.starts_with("Retrying in")).unwrap().to_owned();
    assert!(retry.ends_with("s · attempt 1/10 · 529 overloaded"), "{retry}");
    // The number of the exit code is the system's own business.
    let ls = ran.out.lines().skip_while(|line| *line != "✘ Bash → [stderr]").nth(1).unwrap().to_owned();
    assert!(ls.contains("README.md"), "{ls}");
    let code = ran.out.lines().find(|line| line.contains("[exit code ")).unwrap().to_owned();
    let want = format!(
        "◇ project notes: none · git: main, no commit yet · {date}
❯ Summarise the README
{retry}
  I will read the README first.
● Read(README.md)
✘ Read → <tool_use_error>InputValidationError: Read failed due to the following issues:
  The required parameter `file_path` is missing
  An unexpected parameter `path` was provided</tool_use_error>
  That parameter has another name; it is file_path.
● Read(README.md)
✘ Read → <tool_use_error>Error: ENOENT: no such file or directory, open '{readme}'</tool_use_error>
  The file seems not to exist; let me make sure.
● Bash(ls README.md)
✘ Bash → [stderr]
{ls}
{code}
  There is no README.md in the project root. Shall I write one?
❯ Say it again
✗ auth_error · 401 auth: invalid x-api-key; check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, and ANTHROPIC_BASE_URL
❯ /status
model     claude-opus-5-5
effort    medium
cwd       {cwd}
session   {session}
mode      bypassPermissions
allow     -
messages  9
context   100 tokens (input of the last answered request)
total     in 400 / out 80 / 4 requests
failed    2 attempts
",
        readme = cwd.join("README.md").display(),
        cwd = cwd.display(),
    );
    assert_eq!(ran.out, want);
    assert_eq!(stage.asks().len(), 6, "four answered, two failed attempts");
}
