//! The file and search tools through their port, as the loop uses them.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use yaoki::PermissionMode;
use yaoki::core::effects::EffectClass;
use yaoki::core::ids::{CallId, OpId};
use yaoki::core::json::RawJson;
use yaoki::core::message::{Call, Part};
use yaoki::core::record::{OutcomeStatus, Refusal};
use yaoki::core::step::{Finding, Judgement, PrepareVerdict, RunReport, RunStep};
use yaoki::executor::Executor;
use yaoki::tools::{RuleSet, StandardTools, TOOLS, ToolEnv};

struct Bench {
    dir: tempfile::TempDir,
    tools: StandardTools,
}

impl Bench {
    fn new() -> Self {
        Self::in_mode(PermissionMode::BypassPermissions, &[])
    }

    fn in_mode(mode: PermissionMode, deny: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let deny: Vec<String> = deny.iter().map(|rule| (*rule).to_owned()).collect();
        let tools = tools_in(dir.path().canonicalize().unwrap(), mode, &deny);
        Self { dir, tools }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), bytes).unwrap();
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    async fn prepare(&self, tool: &str, input: Value) -> PrepareVerdict {
        self.tools.prepare(&call(tool, input)).await
    }

    async fn step(&self, tool: &str, input: Value) -> RunStep {
        match self.prepare(tool, input).await {
            PrepareVerdict::Ready(plan) => RunStep {
                op: OpId(7),
                call: CallId::new("call"),
                tool: tool.to_owned(),
                class: plan.class,
                title: plan.title,
                input: plan.input,
                key: "key".to_owned(),
                pre: plan.pre,
                attempt: 1,
            },
            PrepareVerdict::Refused { result, .. } => panic!("{}", result.text()),
        }
    }

    async fn run(&self, step: &RunStep) -> (OutcomeStatus, String) {
        match self.tools.run(step, &|_| {}, CancellationToken::new()).await {
            RunReport::Ended { status, result, .. } => (status, result.text()),
            other => panic!("{other:?}"),
        }
    }

    async fn call(&self, tool: &str, input: Value) -> String {
        let step = self.step(tool, input).await;
        self.run(&step).await.1
    }

    async fn refusal(&self, tool: &str, input: Value) -> (Refusal, String) {
        match self.prepare(tool, input).await {
            PrepareVerdict::Refused { why, result, .. } => {
                assert!(result.is_error);
                (why, result.text())
            }
            PrepareVerdict::Ready(plan) => panic!("{plan:?}"),
        }
    }
}

fn tools_in(cwd: PathBuf, mode: PermissionMode, deny: &[String]) -> StandardTools {
    let rules = RuleSet::new(mode, &cwd).with_rules(&[], &[], deny).unwrap();
    let session = cwd.join(".session");
    StandardTools::new(ToolEnv::new(cwd, session, "/nonexistent/runner", Arc::new(rules)))
}

fn call(tool: &str, input: Value) -> Call {
    Call {
        id: CallId::new("call"),
        provider_id: "toolu_1".to_owned(),
        tool: tool.to_owned(),
        input: RawJson::of(&input),
        broken: None,
    }
}

#[tokio::test]
async fn a_wrong_parameter_name_is_answered_in_the_words_models_know() {
    let bench = Bench::new();
    let verdict = bench.prepare("Read", json!({"path": "README.md"})).await;
    let PrepareVerdict::Refused { why, title, result } = verdict else { panic!("{verdict:?}") };
    assert_eq!((why, title.as_str()), (Refusal::InvalidInput, "Read(README.md)"));
    assert_eq!(
        result.text(),
        "<tool_use_error>InputValidationError: Read failed due to the following issues:\n\
         The required parameter `file_path` is missing\n\
         An unexpected parameter `path` was provided</tool_use_error>"
    );
}

#[tokio::test]
async fn unknown_tools_and_broken_inputs_never_run() {
    let bench = Bench::new();
    let (why, text) = bench.refusal("Telepathy", json!({})).await;
    assert_eq!(why, Refusal::UnknownTool);
    assert!(text.starts_with(
        "<tool_use_error>Error: No such tool available: Telepathy. Available: Read, Write, Edit, "
    ));

    let mut broken = call("Write", json!({}));
    broken.broken = Some("expected `:` at line 1 column 14".to_owned());
    let PrepareVerdict::Refused { why, result, .. } = bench.tools.prepare(&broken).await else { panic!() };
    assert_eq!(why, Refusal::InvalidInput);
    assert!(
        result
            .text()
            .contains("is not valid JSON and the call was not run: expected `:` at line 1 column 14")
    );
}

#[tokio::test]
async fn a_missing_file_is_the_models_next_observation() {
    let bench = Bench::new();
    bench.write("readme.txt", "hi");
    let step = bench.step("Read", json!({"file_path": "README.md"})).await;
    let (status, text) = bench.run(&step).await;
    assert_eq!(status, OutcomeStatus::FailedClean);
    assert_eq!(
        text,
        format!(
            "<tool_use_error>Error: ENOENT: no such file or directory, open '{}'. Did you mean readme.txt?</tool_use_error>",
            bench.path("README.md").display()
        )
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_named() {
    let bench = Bench::new();
    bench.write("a.pdf", b"%PDF-1.7\0\0");
    bench.write("dir/x", "");
    symlink("loop", bench.path("loop")).unwrap();
    for (name, want) in [
        ("a.pdf", "is not a text file but PDF document (10 bytes)"),
        ("dir", "EISDIR: illegal operation on a directory"),
        ("loop", "ELOOP: too many symbolic links"),
        ("/dev/zero", "is not a regular file"),
    ] {
        let text = bench.call("Read", json!({"file_path": name})).await;
        assert!(text.contains(want), "{text}");
    }
}

#[tokio::test]
async fn images_are_shown_if_the_api_would_take_them() {
    let bench = Bench::new();
    let png = |width: u32, height: u32| {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend(width.to_be_bytes());
        png.extend(height.to_be_bytes());
        png
    };
    // The name lies; the content counts.
    bench.write("a.jpg", png(640, 480));
    bench.write("wide.png", png(8_001, 10));
    let mut heavy = png(10, 10);
    heavy.resize(4 << 20, 0);
    bench.write("heavy.png", heavy);
    let step = bench.step("Read", json!({"file_path": "a.jpg"})).await;
    match bench.tools.run(&step, &|_| {}, CancellationToken::new()).await {
        RunReport::Ended { result, .. } => match result.parts.as_slice() {
            [Part::Text { .. }, Part::Media(media)] => assert_eq!(media.media_type, "image/png"),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
    assert!(
        bench.call("Read", json!({"file_path": "wide.png"})).await.contains("8001×10 pixels, at most 8000")
    );
    assert!(bench.call("Read", json!({"file_path": "heavy.png"})).await.contains("at most 5 MB"));
}

#[tokio::test]
async fn a_file_is_read_before_it_is_changed_and_again_when_others_change_it() {
    let bench = Bench::new();
    bench.write("a.txt", "one\ntwo\n");
    let edit = json!({"file_path": "a.txt", "old_string": "two", "new_string": "three"});
    let (why, text) = bench.refusal("Edit", edit.clone()).await;
    assert_eq!(why, Refusal::Precondition);
    assert!(text.contains("File has not been read yet"), "{text}");
    let write = json!({"file_path": "a.txt", "content": "x"});
    assert!(bench.refusal("Write", write).await.1.contains("File has not been read yet"));

    bench.call("Read", json!({"file_path": "a.txt"})).await;
    bench.write("a.txt", "one\ntwo!\n");
    assert!(bench.refusal("Edit", edit.clone()).await.1.contains("modified since it was read"));

    bench.call("Read", json!({"file_path": "a.txt"})).await;
    let judged = bench.step("Edit", edit).await;
    bench.write("a.txt", "one\ntwo!!\n");
    let (status, text) = bench.run(&judged).await;
    assert_eq!(status, OutcomeStatus::FailedClean, "{text}");
    assert_eq!(bench.bytes("a.txt"), b"one\ntwo!!\n");
}

#[tokio::test]
async fn edits_of_one_message_follow_each_other() {
    let bench = Bench::new();
    bench.write("a.txt", "one\ntwo\n");
    bench.call("Read", json!({"file_path": "a.txt"})).await;
    let first =
        bench.step("Edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "1"})).await;
    let second =
        bench.step("Edit", json!({"file_path": "a.txt", "old_string": "two", "new_string": "2"})).await;
    assert_eq!(bench.run(&first).await.0, OutcomeStatus::Success);
    let (status, text) = bench.run(&second).await;
    assert_eq!(status, OutcomeStatus::Success, "{text}");
    assert_eq!(bench.bytes("a.txt"), b"1\n2\n");
    assert!(text.contains("     1→1\n     2→2"), "{text}");
}

#[tokio::test]
async fn links_modes_and_byte_order_marks_outlive_a_change() {
    let bench = Bench::new();
    for tool in ["Edit", "Write"] {
        bench.write("real.sh", b"\xef\xbb\xbf#!/bin/sh\r\necho hi\r\n");
        fs::set_permissions(bench.path("real.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        let _ = fs::remove_file(bench.path("link.sh"));
        symlink("real.sh", bench.path("link.sh")).unwrap();
        bench.call("Read", json!({"file_path": "link.sh"})).await;
        let input = match tool {
            "Edit" => {
                json!({"file_path": "link.sh", "old_string": "echo hi", "new_string": "echo ho\necho hu"})
            }
            _ => json!({"file_path": "link.sh", "content": "#!/bin/sh\necho ho\necho hu\n"}),
        };
        bench.call(tool, input).await;
        assert!(fs::symlink_metadata(bench.path("link.sh")).unwrap().is_symlink(), "{tool}");
        assert_eq!(bench.bytes("real.sh"), b"\xef\xbb\xbf#!/bin/sh\r\necho ho\r\necho hu\r\n", "{tool}");
        let mode = fs::metadata(bench.path("real.sh")).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o755, "{tool}");
    }
    let names: Vec<_> = fs::read_dir(bench.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "no stray file: {names:?}");
}

#[tokio::test]
async fn bytes_that_are_not_text_stay_when_a_line_beside_them_is_edited() {
    let bench = Bench::new();
    bench.write("latin.txt", b"caf\xe9\nalpha\n\x99\n\xd6\xd0\xce\xc4\n");
    let shown = bench.call("Read", json!({"file_path": "latin.txt"})).await;
    assert!(shown.contains("not valid UTF-8"));
    bench.call("Edit", json!({"file_path": "latin.txt", "old_string": "alpha", "new_string": "beta"})).await;
    assert_eq!(bench.bytes("latin.txt"), b"caf\xe9\nbeta\n\x99\n\xd6\xd0\xce\xc4\n");
}

#[tokio::test]
async fn a_change_is_settled_by_hashes_after_a_crash() {
    let bench = Bench::new();
    bench.write("a.txt", "old");
    bench.call("Read", json!({"file_path": "a.txt"})).await;
    let step = bench.step("Write", json!({"file_path": "a.txt", "content": "new"})).await;
    assert_eq!(step.class, EffectClass::Reversible);
    let pre = step.pre.clone().unwrap().value();
    assert_eq!((pre["bytes"].as_u64(), pre["old"]["text"].as_str()), (Some(3), Some("old")));
    let look = || async { bench.tools.look(&step, true, &|_| {}, CancellationToken::new()).await };
    assert_eq!(look().await, Finding::NeverRan);
    bench.write("a.txt", "new");
    match look().await {
        Finding::Ended(RunReport::Ended { status, .. }) => assert_eq!(status, OutcomeStatus::Success),
        other => panic!("{other:?}"),
    }
    bench.write("a.txt", "neither");
    assert!(matches!(look().await, Finding::Nothing { .. }));
}

#[tokio::test]
async fn what_earlier_outcomes_say_of_files_counts_as_seen() {
    let bench = Bench::new();
    bench.write("a.txt", "one");
    let step = bench.step("Read", json!({"file_path": "a.txt"})).await;
    let RunReport::Ended { post: Some(post), .. } =
        bench.tools.run(&step, &|_| {}, CancellationToken::new()).await
    else {
        panic!("a read has facts")
    };
    let later = tools_in(bench.path(""), PermissionMode::BypassPermissions, &[]);
    let edit = call("Edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "1"}));
    assert!(matches!(later.prepare(&edit).await, PrepareVerdict::Refused { .. }));
    later.recall("Read", &post);
    assert!(matches!(later.prepare(&edit).await, PrepareVerdict::Ready(_)));
}

#[tokio::test]
async fn a_new_file_gets_its_folders_and_is_known() {
    let bench = Bench::new();
    let text = bench.call("Write", json!({"file_path": "a/b/c.txt", "content": "x\ny\n"})).await;
    assert!(text.ends_with("has been created (2 lines)."), "{text}");
    bench.call("Edit", json!({"file_path": "a/b/c.txt", "old_string": "x", "new_string": "z"})).await;
    assert_eq!(bench.bytes("a/b/c.txt"), b"z\ny\n");
}

#[tokio::test]
async fn what_is_denied_is_not_looked_at() {
    let bench = Bench::in_mode(PermissionMode::Default, &["Edit(secret/**)"]);
    bench.write("secret/key", "sesame");
    let edit = json!({"file_path": "secret/key", "old_string": "a", "new_string": "b"});
    match bench.prepare("Edit", edit).await {
        PrepareVerdict::Ready(plan) => {
            assert!(matches!(plan.permission, Judgement::Deny { .. }));
            assert_eq!(plan.pre, None);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn equal_commands_are_equal_whatever_they_are_called() {
    let bench = Bench::new();
    let canonical = |input: Value| async {
        match bench.prepare("Bash", input).await {
            PrepareVerdict::Ready(plan) => (plan.canonical, plan.class),
            other => panic!("{other:?}"),
        }
    };
    let plain = canonical(json!({"command": "make"})).await;
    assert_eq!(plain, canonical(json!({"command": "make", "description": "Build", "timeout": 5})).await);
    assert_ne!(plain.0, canonical(json!({"command": "make all"})).await.0);
    assert_eq!(plain.1, EffectClass::Unknown);
    assert_eq!(canonical(json!({"command": "git status && ls"})).await.1, EffectClass::Pure);
    assert_eq!(canonical(json!({"command": "ls", "run_in_background": true})).await.1, EffectClass::Unknown);
}

#[tokio::test]
async fn files_are_found_by_pattern_newest_first_and_ignored_ones_are_not() {
    let bench = Bench::new();
    for name in ["src/a.rs", "src/deep/b.rs", "c.rs", "target/x.rs", "d.txt", ".github/e.rs", ".git/f.rs"] {
        bench.write(name, "");
    }
    bench.write(".gitignore", "target/\n");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
    for (i, name) in ["c.rs", "src/a.rs", "src/deep/b.rs", ".github/e.rs"].into_iter().enumerate() {
        let file = fs::File::options().write(true).open(bench.path(name)).unwrap();
        file.set_modified(old + std::time::Duration::from_secs(i as u64)).unwrap();
    }
    for (pattern, want) in [
        ("*.rs", ".github/e.rs\nsrc/deep/b.rs\nsrc/a.rs\nc.rs"),
        ("src/**/*.rs", "src/deep/b.rs\nsrc/a.rs"),
        ("src/*.{rs,txt}", "src/a.rs"),
        ("*.go", "No files found"),
    ] {
        assert_eq!(bench.call("Glob", json!({"pattern": pattern})).await, want, "{pattern}");
    }
    let absolute = bench.path("src/*.rs");
    assert_eq!(bench.call("Glob", json!({"pattern": absolute})).await, "src/a.rs");
    assert!(
        bench
            .call("Glob", json!({"pattern": "a{b"}))
            .await
            .contains("<tool_use_error>Error: error parsing glob")
    );
    assert!(bench.call("Glob", json!({"pattern": "*", "path": "nowhere"})).await.contains("ENOENT"));
}

#[tokio::test]
async fn lines_are_found_in_every_mode() {
    let bench = Bench::new();
    bench.write("a.rs", "fn one() {}\nfn two() {}\n// end\n");
    bench.write("b.txt", "one\n");
    bench.write("bin", b"one\0");
    bench.write(".gitignore", "ignored\n");
    bench.write("ignored", "one");
    for (input, want) in [
        (json!({"pattern": "two"}), "Found 1 file\na.rs"),
        (json!({"pattern": "TWO"}), "No matches found"),
        (json!({"pattern": "TWO", "-i": true, "output_mode": "content"}), "a.rs:2:fn two() {}"),
        (json!({"pattern": "two", "output_mode": "content", "-n": false}), "a.rs:fn two() {}"),
        (
            json!({"pattern": "two", "output_mode": "content", "-C": 1}),
            "a.rs-1-fn one() {}\na.rs:2:fn two() {}\na.rs-3-// end",
        ),
        (json!({"pattern": "fn", "output_mode": "count"}), "a.rs:2\n2 matches in 1 file"),
        (json!({"pattern": "one", "output_mode": "content", "type": "rust"}), "a.rs:1:fn one() {}"),
        (json!({"pattern": "one", "output_mode": "content", "glob": "*.txt"}), "b.txt:1:one"),
        (json!({"pattern": "one", "output_mode": "content", "path": "b.txt"}), "b.txt:1:one"),
        (
            json!({"pattern": "fn", "output_mode": "content", "head_limit": 1}),
            "a.rs:1:fn one() {}\n(Stopped after 1 line; there are more.)",
        ),
        (
            json!({"pattern": "one.*two", "output_mode": "content", "multiline": true}),
            "a.rs:1:fn one() {}\na.rs:2:fn two() {}",
        ),
    ] {
        assert_eq!(bench.call("Grep", input.clone()).await, want, "{input}");
    }
    for (input, want) in [
        (json!({"pattern": "a("}), "the pattern is not a valid regular expression"),
        (json!({"pattern": "a\\nb"}), "Set multiline"),
        (json!({"pattern": "a", "type": "klingon"}), "unrecognized file type: klingon"),
        (json!({"pattern": "a", "path": "nowhere"}), "ENOENT"),
    ] {
        let text = bench.call("Grep", input.clone()).await;
        assert!(text.starts_with("<tool_use_error>Error: ") && text.contains(want), "{input}: {text}");
    }
}

#[tokio::test]
async fn the_task_list_is_checked_and_kept() {
    let bench = Bench::new();
    let todo = |status: &str| json!({"content": "Run", "status": status, "activeForm": "Running"});
    let text = bench.call("TodoWrite", json!({"todos": [todo("in_progress"), todo("pending")]})).await;
    assert_eq!(text, "The task list has been updated.");
    let text = bench.call("TodoWrite", json!({"todos": [todo("pending")]})).await;
    assert!(text.contains("No task is in progress"));
    let (_, text) = bench.refusal("TodoWrite", json!({"todos": [todo("done"), {"content": ""}]})).await;
    for line in [
        "`todos[0].status` must be one of `pending`, `in_progress`, `completed` but is `done`",
        "`todos[1].status` is missing",
        "`todos[1].activeForm` is missing",
        "`todos[1].content` must not be empty",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn every_schema_is_one_the_api_takes() {
    for tool in TOOLS {
        let schema = (tool.schema)();
        assert_eq!(schema["type"], "object", "{}", tool.name);
        assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
        let text = schema.to_string();
        for odd in ["$ref", "$defs", "anyOf", "\"null\"", "$schema", "\"title\""] {
            assert!(!text.contains(odd), "{}: {odd} in {text}", tool.name);
        }
        assert!(tool.name.chars().all(|letter| letter.is_ascii_alphanumeric()));
    }
}

#[tokio::test]
async fn what_a_rule_forbids_to_read_is_found_by_no_search() {
    let bench = Bench::in_mode(PermissionMode::Default, &["Read(private/**)"]);
    bench.write("private/key.txt", "needle one");
    bench.write("open.txt", "needle two");
    for mode in ["content", "files_with_matches", "count"] {
        let found = bench.call("Grep", json!({"pattern": "needle", "output_mode": mode})).await;
        assert!(found.contains("open.txt") && !found.contains("private"), "{mode}: {found}");
    }
    assert_eq!(bench.call("Glob", json!({"pattern": "**/*.txt"})).await, "open.txt");
}

#[tokio::test]
async fn a_secret_in_a_file_is_neither_shown_by_a_refusal_nor_lost_by_a_change() {
    const SECRET: &str = "sk-secret-0123456789";
    let dir = tempfile::tempdir().unwrap();
    let cwd = dir.path().canonicalize().unwrap();
    let rules = Arc::new(RuleSet::new(PermissionMode::BypassPermissions, &cwd));
    let mut env = ToolEnv::new(&cwd, cwd.join(".session"), "/nonexistent/runner", rules);
    env.secrets = vec![("KEY".to_owned(), SECRET.to_owned())];
    let bench = Bench { dir, tools: StandardTools::new(env) };
    bench.write("env", format!("# the key\nkey = {SECRET}\n"));
    assert_eq!(
        bench.call("Read", json!({"file_path": "env"})).await,
        "     1→# the key\n     2→key = [secret:KEY]"
    );

    let near = json!({"file_path": "env", "old_string": "# the key\nkeys = x", "new_string": "y"});
    let (_, text) = bench.refusal("Edit", near).await;
    assert!(text.contains("key = [secret:KEY]") && !text.contains(SECRET), "{text}");
    for (tool, input) in [
        ("Edit", json!({"file_path": "env", "old_string": "key = [secret:KEY]", "new_string": "key = 1"})),
        ("Edit", json!({"file_path": "env", "old_string": "# the", "new_string": "[secret:KEY] is the"})),
        ("Write", json!({"file_path": "env", "content": "key = [secret:KEY]\n"})),
        ("Write", json!({"file_path": "new", "content": "key = [secret:KEY]\n"})),
    ] {
        let (why, text) = bench.refusal(tool, input).await;
        assert_eq!(why, Refusal::Precondition);
        assert!(text.contains("[secret:KEY] is not in the file"), "{text}");
    }
    // Where the label itself is the file's text, it is text.
    bench.write("doc", "shown as [secret:KEY]\n");
    bench.call("Read", json!({"file_path": "doc"})).await;
    let edit = json!({"file_path": "doc", "old_string": "as [secret:KEY]", "new_string": "so: [secret:KEY]"});
    bench.call("Edit", edit).await;
    assert_eq!(bench.bytes("doc"), b"shown so: [secret:KEY]\n");
}

#[tokio::test]
async fn a_look_at_what_is_no_file_any_more_ends() {
    let bench = Bench::new();
    let step = bench.step("Write", json!({"file_path": "a", "content": "x"})).await;
    rustix::fs::mkfifoat(rustix::fs::CWD, bench.path("a"), rustix::fs::Mode::RUSR).unwrap();
    let found = bench.tools.look(&step, true, &|_| {}, CancellationToken::new()).await;
    assert!(matches!(found, Finding::Nothing { .. }), "{found:?}");
}
