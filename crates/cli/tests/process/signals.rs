//! A signal asks the agent to leave: it leaves at once with its own code, takes its command along, and the session
//! can be resumed.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde_json::json;
use yaoki_lab::{Holds, Script, Step};

use crate::stage::{Stage, WAIT, is_ready};

#[test]
fn a_signal_ends_the_turn_and_its_command_and_keeps_the_session() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let stage = Stage::new(Script::of(vec![
            Step::tool(
                "Bash",
                json!({ "command": "echo $$ > ../phase; read -r word < ../never; echo late >> ../ledger" }),
            ),
            Step::text("Here again.")
                .expect(Holds { last_contains: vec!["go on".into()], ..Holds::default() }),
        ]));
        let (phase, _never) = (stage.pipe("phase"), stage.pipe("never"));
        let running = stage.start(&["-p", "do it"]);
        let shell = Pid::from_raw(phase.hear().trim().parse().unwrap()).unwrap();
        let shell = pidfd_open(shell, PidfdFlags::empty()).unwrap();
        running.signal(signal);
        let ran = running.wait();
        ran.assert_code(code);
        assert!(is_ready(&shell, WAIT), "the command is gone");
        assert_eq!(stage.read("ledger"), "");

        let ran = stage.run(&["-p", "go on", "--resume", &stage.session()]);
        ran.assert_code(0);
        assert_eq!(ran.out, "Here again.\n");
        stage.assert_accepted();
        let messages = stage.asks().pop().unwrap().body["messages"].to_string();
        assert!(messages.contains("tool_result"), "the interrupted call has a result: {messages}");
    }
}

#[test]
fn a_signal_while_the_model_is_awaited_ends_the_turn() {
    let stage =
        Stage::new(Script::of(vec![Step::fault(yaoki_lab::Fault::Silent), Step::text("Here again.")]));
    let running = stage.start(&["-p", "do it"]);
    assert!(stage.server.wait_for(WAIT, |sent| sent.len() == 1));
    running.signal(Signal::INT);
    running.wait().assert_code(130);
    let ran = stage.run(&["-p", "go on", "--resume", &stage.session()]);
    ran.assert_code(0);
    assert_eq!(ran.out, "Here again.\n");
    stage.assert_accepted();
}
