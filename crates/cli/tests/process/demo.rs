//! `yaoki demo` is played whole, checks itself, and leaves nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use yaoki_lab::{Script, Step};

use crate::stage::{Ran, Running, Stage, entries};

/// Runs the demo with a temporary folder of its own, without a key. `path` comes before the real PATH.
fn demo(args: &[&str], path: Option<&str>) -> (Stage, Ran) {
    let stage = Stage::new(Script::of(vec![Step::text("unused")]));
    fs::create_dir(stage.base().join("tmp")).unwrap();
    let mut command = stage.bare(&[&["demo"], args].concat());
    command.env_remove("ANTHROPIC_API_KEY").env_remove("IS_SANDBOX").env("TMPDIR", stage.base().join("tmp"));
    if let Some(tail) = path {
        let folder = stage.base().join("bin");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("tail"), tail).unwrap();
        fs::set_permissions(folder.join("tail"), fs::Permissions::from_mode(0o755)).unwrap();
        let real = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{real}", folder.display()));
    }
    let ran = Running::start(&mut command).wait();
    (stage, ran)
}

#[test]
fn the_story_is_told_whole_and_every_check_holds() {
    let (stage, ran) = demo(&[], None);
    ran.assert_code(0);
    assert_eq!(ran.err, "");
    for words in [
        " 1  The service is overloaded, twice",
        "10  The key is refused",
        "SIGKILL to the agent",
        "fault                      layer    what was done",
        "✓ the ledger has exactly one deploy",
        "All 13 checks hold: 13 requests",
    ] {
        assert!(ran.out.contains(words), "{words:?} is not in\n{}", ran.out);
    }
    assert!(!ran.out.contains('\u{1b}'), "no colour into a pipe");
    assert_eq!(entries(&stage.base().join("tmp")), Vec::<std::path::PathBuf>::new());
    assert_eq!(stage.asks().len(), 0, "the configured endpoint is left alone");
    assert!(!stage.home().exists(), "and so is the user's home");
}

#[test]
fn a_deploy_that_happens_twice_fails_it_and_what_is_kept_is_named() {
    let tail = "#!/bin/sh\necho 'deployed again' >> ../ledger\necho 'deployed sum.sh twice'\n";
    let (stage, ran) = demo(&["--keep"], Some(tail));
    ran.assert_code(1);
    assert!(ran.out.contains("✗ the ledger has exactly one deploy: it has ["), "{}", ran.out);
    assert!(ran.out.contains("1 of 13 checks do not hold."), "{}", ran.out);
    let [kept] = &entries(&stage.base().join("tmp"))[..] else { panic!("one folder is kept") };
    let line = format!("The folder is kept: {}", kept.canonicalize().unwrap().display());
    assert!(ran.out.contains(&line), "{}", ran.out);
    assert!(kept.join("project/sum.sh").exists());
}
