//! SIGKILL of the agent at every kind of moment of one turn. Whatever the moment, `resume --continue` finishes the
//! turn, the command has run once, and the strict lab accepts all that was sent.
//! 28 moments, most of them told by how far the lab has written, or by the command itself.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::json;
use yaoki_lab::serve::Sent;
use yaoki_lab::{Answer, Block, Fault, Holds, Place, Repeat, Script, Step};

use crate::stage::{Pipe, Stage, WAIT, entries, is_ready};

const PROMPT: &str = "do the job";
const ANSWER: &str = "The job is done, and it was done once.";

/// The command: tells where it is, and waits to be let on before and after its effect.
const JOB: &str = "echo begun > ../phase\nread -r word < ../before || exit 1\necho once >> ../ledger\n\
                   echo written > ../phase\nread -r word < ../after || exit 1\necho 'the ledger is written'\n";

/// Events of the streams below; a stall can come before each of them.
const EVENTS_OF_CALL: u32 = 11;
const EVENTS_OF_ANSWER: u32 = 7;

fn call() -> Answer {
    Answer::blocks(vec![
        Block::Text("I will do it.".into()),
        Block::tool("Bash", json!({ "command": "sh ../job.sh" })),
    ])
}

/// A script that serves any number of processes: what is said depends on what the request brings.
/// The stalls come once, before the whole answers.
fn script(stall_in_call: Option<Fault>, stall_in_answer: Option<Fault>) -> Script {
    let results = |count| Holds { results: Some(count), ..Holds::default() };
    let stalled = |answer: Answer, fault: Fault| {
        if fault.has_answer() { Step::answer(answer).with_fault(fault) } else { Step::fault(fault) }
    };
    let always = |step: Step| Step { repeat: Repeat::Always, ..step };
    let mut steps = Vec::new();
    steps
        .extend(stall_in_call.map(|fault| stalled(call(), fault).when(results(0)).labelled("stall in call")));
    steps.push(always(Step::answer(call()).when(results(0)).labelled("call")));
    steps.extend(
        stall_in_answer
            .map(|fault| stalled(Answer::text(ANSWER), fault).when(results(1)).labelled("stall in answer")),
    );
    let whole =
        Step::text(ANSWER).when(Holds { last_contains: vec!["the ledger is written".into()], ..results(1) });
    steps.push(always(whole.labelled("answer")));
    Script::of(steps)
}

struct Job {
    stage: Stage,
    phase: Pipe,
    before: Pipe,
    after: Pipe,
}

impl Job {
    fn new(script: Script) -> Job {
        let stage = Stage::new(script);
        stage.write("job.sh", JOB);
        let [phase, before, after] = ["phase", "before", "after"].map(|name| stage.pipe(name));
        Job { stage, phase, before, after }
    }

    /// Lets the command run through without waiting for us.
    fn open_gates(&self) {
        self.before.say("go");
        self.after.say("go");
    }

    /// Waits until so many writes of an answer have left.
    fn await_writes(&self, ask: usize, writes: u32) {
        let is_so = |sent: &[Sent]| sent.get(ask - 1).is_some_and(|row| row.writes >= writes);
        assert!(self.stage.server.wait_for(WAIT, is_so), "request {ask} got {writes} writes");
    }

    fn await_over(&self, ask: usize) {
        let is_so = |sent: &[Sent]| sent.get(ask - 1).is_some_and(|row| row.is_over);
        assert!(self.stage.server.wait_for(WAIT, is_so), "request {ask} is answered");
    }

    fn finish(&self, moment: &str) {
        let resumed = self.stage.resume();
        assert_eq!(resumed.status.code(), Some(0), "{moment}: {resumed:?}");
        assert_eq!(resumed.out.trim_end(), ANSWER, "{moment}: {resumed:?}");
        self.assert_done(moment);
    }

    fn assert_done(&self, moment: &str) {
        assert_eq!(self.stage.read("ledger"), "once\n", "{moment}: the command ran once");
        assert_eq!(self.stage.server.report().complaints(), Vec::<String>::new(), "{moment}");
        let last = self.stage.asks().pop().unwrap();
        let text = last.body["messages"].to_string();
        assert!(text.contains("the ledger is written"), "{moment}: the model saw the real outcome: {text}");
        let ends = self.stage.records().into_iter().filter(|(kind, _)| kind == "turn_end").count();
        assert_eq!(ends, 1, "{moment}: the turn ended once");
        if let [run] = &self.runs()[..] {
            // Its runner had not left yet; the next process that opens the session takes it away.
            await_end(run);
            self.stage.resume().assert_code(0);
        }
        assert_eq!(self.runs(), Vec::<PathBuf>::new(), "{moment}: nothing is left of the run");
    }
}

#[test]
fn killed_before_the_first_request_is_heard() {
    let job = Job::new(script(None, None));
    job.open_gates();
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = job.stage.yaoki(&["-p", PROMPT]);
    command.env("ANTHROPIC_BASE_URL", format!("http://{}", deaf.local_addr().unwrap()));
    let running = crate::stage::Running::start(&mut command);
    assert!(is_ready(&deaf, WAIT), "it connects");
    running.kill();
    drop(deaf);
    job.finish("before the first request");
}

#[test]
fn killed_while_the_answer_is_awaited_or_streams() {
    let job = Job::new(script(Some(Fault::Silent), None));
    job.open_gates();
    let running = job.stage.start(&["-p", PROMPT]);
    job.await_writes(1, 0);
    running.kill();
    job.finish("while the head is awaited");

    for event in 0..EVENTS_OF_CALL {
        let job = Job::new(script(Some(Fault::Stall { at: Place::Event(event) }), None));
        job.open_gates();
        let running = job.stage.start(&["-p", PROMPT]);
        job.await_writes(1, 1 + event);
        running.kill();
        assert_eq!(job.stage.read("ledger"), "", "nothing runs before the answer is whole");
        job.finish(&format!("behind event {event} of the call"));
    }
}

#[test]
fn killed_right_after_the_call_was_heard() {
    let job = Job::new(script(None, None));
    job.open_gates();
    let running = job.stage.start(&["-p", PROMPT]);
    job.await_over(1);
    running.kill();
    job.finish("right after message_stop");
}

#[test]
fn killed_while_the_command_runs_which_goes_on() {
    for (moment, phase, is_let_on_first) in [
        ("before its effect; it ends alone", "begun", true),
        ("before its effect; resume attaches", "begun", false),
        ("after its effect; it ends alone", "written", true),
        ("after its effect; resume attaches", "written", false),
    ] {
        let job = Job::new(script(None, None));
        let running = job.stage.start(&["-p", PROMPT]);
        assert_eq!(job.phase.hear(), "begun");
        if phase == "written" {
            job.before.say("go");
            assert_eq!(job.phase.hear(), "written");
        }
        running.kill();
        if is_let_on_first {
            job.open_gates();
            job.await_end_of_command();
            job.finish(moment);
        } else {
            let asked = job.stage.asks().len();
            let resumed = job.stage.start(&["resume", &job.stage.session(), "--continue"]);
            job.open_gates();
            let resumed = resumed.wait();
            assert_eq!(resumed.out.trim_end(), ANSWER, "{moment}: {resumed:?}");
            assert_eq!(job.stage.asks().len(), asked + 1, "{moment}: the call is not asked for again");
            job.assert_done(moment);
        }
    }
}

#[test]
fn killed_when_the_command_has_ended_and_its_outcome_is_not_recorded() {
    let job = Job::new(script(None, None));
    let running = job.stage.start(&["-p", PROMPT]);
    assert_eq!(job.phase.hear(), "begun");
    running.signal(Signal::STOP);
    job.open_gates();
    job.await_end_of_command();
    running.kill();
    assert_eq!(job.stage.asks().len(), 1, "the outcome was not sent");
    job.finish("between the command's end and the next request");
}

#[test]
fn killed_while_the_last_answer_is_awaited_or_streams() {
    let job = Job::new(script(None, Some(Fault::Silent)));
    job.open_gates();
    let running = job.stage.start(&["-p", PROMPT]);
    job.await_writes(2, 0);
    running.kill();
    job.finish("while the last head is awaited");

    for event in 0..EVENTS_OF_ANSWER {
        let job = Job::new(script(None, Some(Fault::Stall { at: Place::Event(event) })));
        job.open_gates();
        let running = job.stage.start(&["-p", PROMPT]);
        job.await_writes(2, 1 + event);
        running.kill();
        job.finish(&format!("behind event {event} of the answer"));
    }
}

#[test]
fn killed_right_after_the_last_answer_was_heard() {
    let job = Job::new(script(None, None));
    job.open_gates();
    let running = job.stage.start(&["-p", PROMPT]);
    job.await_over(2);
    let killed = running.kill_or_end();
    let is_ended = job.stage.records().iter().any(|(kind, _)| kind == "turn_end");
    let resumed = job.stage.resume();
    if !is_ended {
        resumed.assert_code(0);
        assert_eq!(resumed.out.trim_end(), ANSWER, "{killed:?}\n{resumed:?}");
    }
    job.assert_done("right after the last message_stop");
}

impl Job {
    /// Folders of runs whose outcome is not durable yet.
    fn runs(&self) -> Vec<PathBuf> {
        let all = entries(&self.stage.session_folder().join("run"));
        all.into_iter().filter(|path| path.is_dir()).collect()
    }

    /// Waits until the command has ended and its outcome is on disk.
    fn await_end_of_command(&self) {
        let runs = self.runs();
        let [run] = &runs[..] else { panic!("one run: {runs:?}") };
        await_end(run);
    }
}

/// Waits until the runner of a run has let go of it.
fn await_end(run: &Path) {
    let started = std::fs::File::open(run.join("started")).unwrap();
    // Bounded by the command's own time limit; the lock is what a resumed agent looks at, too.
    rustix::fs::flock(&started, rustix::fs::FlockOperation::LockShared).unwrap();
    assert!(run.join("exit").exists());
}
