//! The loop's shell: records to the log, steps to their performers, reports back to the turn machine.
//!
//! Promises: no step starts and no durable claim is shown before the records it rests on are where the machine
//! said they must be; a performer with an effect is never dropped, it is told to stop and waited for.
//! There is one await; whatever comes first is the next input.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use yaoki_core::event::{Event, TurnSummary};
use yaoki_core::ids::OpId;
use yaoki_core::record::Record;
use yaoki_core::step::{Delta, Input, Now, RunStep, Step, StepId};
use yaoki_core::turn::{Told, Turn};
use yaoki_wire::anthropic::encode::Encoder;
use yaoki_wire::attempt::{Attempt, Limits, attempt};
use yaoki_wire::endpoint::Endpoint;
use yaoki_wire::transport::Transport;

use crate::executor::Executor;
use crate::journal::Journal;
use crate::person::{Person, Question};
use crate::world::World;

/// How long performers may take to stop once the log is lost.
const TIDY_MS_MAX: u64 = 10_000;

/// Everything a turn is driven with.
pub(crate) struct Drive {
    pub turn: Turn,
    pub journal: Journal,
    pub hands: Arc<Hands>,
    pub opened: Instant,
    pub interrupts: Arc<Notify>,
    /// Outcomes written but not durable yet: what was kept for them may go after the next barrier.
    forgettable: Vec<(u64, OpId)>,
}

/// The performers' side: what steps are performed with.
pub(crate) struct Hands {
    pub transport: Arc<dyn Transport>,
    pub encoder: Encoder,
    pub endpoint: Endpoint,
    pub limits: Limits,
    pub executor: Arc<dyn Executor>,
    pub person: Arc<dyn Person>,
    pub world: Arc<dyn World>,
}

/// What performers send while they work.
enum Word {
    Delta { request: u64, attempt: u32, delta: Delta },
    Output { op: OpId, piece: String },
}

type Performer = BoxFuture<'static, (StepId, Option<Input>)>;

/// The open steps of one drive.
struct Open {
    performers: FuturesUnordered<Performer>,
    tokens: BTreeMap<StepId, CancellationToken>,
    words: mpsc::UnboundedSender<Word>,
}

/// Shows events to an onlooker, in order, none of them too early.
struct Show<'a> {
    on: &'a mut (dyn FnMut(&Event) + Send),
    held: VecDeque<Held>,
    ended: Option<TurnSummary>,
}

struct Held {
    event: Event,
    /// The record that must be durable first.
    after_seq: u64,
}

impl Drive {
    pub fn new(turn: Turn, journal: Journal, hands: Arc<Hands>, opened: Instant) -> Self {
        Self { turn, journal, hands, opened, interrupts: Arc::new(Notify::new()), forgettable: Vec::new() }
    }

    pub fn now(&self) -> Now {
        Now {
            ms: self.opened.elapsed().as_millis() as u64,
            wall_ms: self.hands.world.wall_ms(),
            dice: self.hands.world.dice(),
        }
    }

    /// Feeds one input and runs until the turn has ended. `None` if no turn was open after it.
    pub async fn run(&mut self, input: Input, on: &mut (dyn FnMut(&Event) + Send)) -> Option<TurnSummary> {
        let (words, mut heard) = mpsc::unbounded_channel();
        let mut open = Open { performers: FuturesUnordered::new(), tokens: BTreeMap::new(), words };
        let mut show = Show { on, held: VecDeque::new(), ended: None };
        let interrupts = Arc::clone(&self.interrupts);
        // An interrupt from before this turn was not meant for it.
        let _ = interrupts.notified().now_or_never();
        self.turn.next(input, self.now());
        loop {
            if !self.settle(&mut open, &mut show) {
                return self.tidy_up(open, show).await;
            }
            if !self.turn.has_open_turn() {
                show.release(self.journal.durable());
                return show.ended;
            }
            tokio::select! {
                biased;
                () = interrupts.notified() => self.turn.next(Input::Interrupt, self.now()),
                Some(word) = heard.recv() => {
                    self.hear(word, &mut show);
                    while let Ok(word) = heard.try_recv() {
                        self.hear(word, &mut show);
                    }
                }
                Some((id, input)) = open.performers.next() => {
                    open.tokens.remove(&id);
                    // What it said before it ended comes before its end.
                    while let Ok(word) = heard.try_recv() {
                        self.hear(word, &mut show);
                    }
                    if let Some(input) = input {
                        self.turn.next(input, self.now());
                    }
                }
                else => unreachable!("an open turn always waits for something"),
            }
        }
    }

    /// Writes, shows and starts what the machine left. Returns false once the log is lost.
    fn settle(&mut self, open: &mut Open, show: &mut Show<'_>) -> bool {
        let out = self.turn.drain();
        if let Err(error) = self.journal.write(&out.records, out.ms, out.barrier) {
            let error = crate::error_chain(&error);
            self.turn.next(Input::StorageFailed { error }, self.now());
            let last = self.turn.drain();
            show.lost(last.events);
            for token in open.tokens.values() {
                token.cancel();
            }
            return false;
        }
        assert_eq!(
            self.turn.state().seq_last,
            self.journal.last_seq(),
            "machine and log number records alike"
        );
        self.remember_outcomes(&out.records);
        self.forget_durable();
        show.take(out.events, self.journal.last_seq());
        show.release(self.journal.durable());
        for step in out.steps {
            self.start(step, open);
        }
        true
    }

    fn hear(&mut self, word: Word, show: &mut Show<'_>) {
        match word {
            Word::Delta { request, attempt, delta } => self.turn.hear(request, attempt, delta),
            Word::Output { op, piece } => {
                let told = Told { event: Event::CallOutput { op, piece }, durable: false };
                show.take(vec![told], self.journal.last_seq());
                show.release(self.journal.durable());
            }
        }
    }

    fn remember_outcomes(&mut self, records: &[Record]) {
        let first_seq = self.journal.last_seq() + 1 - records.len() as u64;
        for (seq, record) in (first_seq..).zip(records) {
            match record {
                Record::Outcome(outcome) => self.forgettable.push((seq, outcome.op)),
                Record::Resolved(resolved) => self.forgettable.push((seq, resolved.op)),
                _ => {}
            }
        }
    }

    fn forget_durable(&mut self) {
        let durable = self.journal.durable();
        let executor = &self.hands.executor;
        self.forgettable.retain(|(seq, op)| {
            if *seq <= durable {
                executor.forget(*op);
            }
            *seq > durable
        });
    }

    fn start(&mut self, step: Step, open: &mut Open) {
        let hands = Arc::clone(&self.hands);
        let words = open.words.clone();
        let (id, token) = match &step {
            Step::Attempt { request, attempt, .. } => {
                open.token(StepId::Attempt { request: *request, attempt: *attempt })
            }
            Step::Wait { request, attempt, .. } => {
                open.token(StepId::Wait { request: *request, attempt: *attempt })
            }
            Step::Prepare { call } => open.token(StepId::Prepare(call.id.clone())),
            Step::Ask { op, .. } => open.token(StepId::Ask(*op)),
            Step::Run(run) => open.token(StepId::Run(run.op)),
            Step::Look { run, .. } => open.token(StepId::Look(run.op)),
            Step::Cancel(id) => {
                if let Some(token) = open.tokens.get(id) {
                    token.cancel();
                }
                return;
            }
        };
        let performer: Performer = match step {
            Step::Attempt { request, attempt: number, ask, client_id, fresh_connection } => {
                Box::pin(async move {
                    let what = Attempt {
                        endpoint: &hands.endpoint,
                        ask: &ask,
                        client_id: &client_id,
                        fresh: fresh_connection,
                        limits: hands.limits,
                        wall_s: Some(hands.world.wall_ms() / 1_000),
                    };
                    let mut hear = |delta| {
                        // The loop may be gone already, in which case nobody is left to show it to.
                        let _ = words.send(Word::Delta { request, attempt: number, delta });
                    };
                    let end =
                        attempt(hands.transport.as_ref(), &hands.encoder, what, &mut hear, &token).await;
                    (id, Some(Input::AttemptEnded { request, attempt: number, end }))
                })
            }
            Step::Wait { request, attempt, ms } => until_cancelled(id, token, async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Input::Waited { request, attempt }
            }),
            Step::Prepare { call } => until_cancelled(id, token, async move {
                let verdict = hands.executor.prepare(&call).await;
                Input::Prepared { call: call.id, verdict }
            }),
            Step::Ask { op, call, title } => until_cancelled(id, token, async move {
                let question = Question { op, tool: call.tool, title, input: call.input };
                let answer = hands.person.ask(question).await;
                Input::Answered { op, answer }
            }),
            Step::Run(run) => Box::pin(async move {
                let progress = say(words, run.op);
                let report = hands.executor.run(&run, &progress, token).await;
                let RunStep { op, .. } = run;
                (id, Some(Input::Ran { op, report }))
            }),
            Step::Look { run, wait } => Box::pin(async move {
                let progress = say(words, run.op);
                let finding = hands.executor.look(&run, wait, &progress, token).await;
                (id, Some(Input::Looked { op: run.op, finding }))
            }),
            Step::Cancel(_) => unreachable!("answered above"),
        };
        open.performers.push(performer);
    }

    /// The log is lost: nothing more is recorded, but what runs is stopped and waited for, for a while.
    async fn tidy_up(&mut self, mut open: Open, show: Show<'_>) -> Option<TurnSummary> {
        let all = async { while open.performers.next().await.is_some() {} };
        // Past the limit they are dropped: a process that will not die must not keep ours.
        let _ = tokio::time::timeout(Duration::from_millis(TIDY_MS_MAX), all).await;
        show.ended
    }
}

impl Open {
    fn token(&mut self, id: StepId) -> (StepId, CancellationToken) {
        let token = CancellationToken::new();
        self.tokens.insert(id.clone(), token.clone());
        (id, token)
    }
}

impl Show<'_> {
    fn take(&mut self, events: Vec<Told>, after_seq: u64) {
        for Told { event, durable } in events {
            // What follows a held event waits with it: onlookers see one order.
            self.held.push_back(Held { event, after_seq: if durable { after_seq } else { 0 } });
        }
    }

    fn release(&mut self, durable: u64) {
        while self.held.front().is_some_and(|held| held.after_seq <= durable) {
            let Some(held) = self.held.pop_front() else { return };
            self.tell(held.event);
        }
    }

    /// What claimed to be durable never will be; only the end of the turn is still told.
    fn lost(&mut self, last: Vec<Told>) {
        self.held.clear();
        for told in last {
            self.tell(told.event);
        }
    }

    fn tell(&mut self, event: Event) {
        (self.on)(&event);
        if let Event::TurnEnded(summary) = event {
            self.ended = Some(summary);
        }
    }
}

fn say(words: mpsc::UnboundedSender<Word>, op: OpId) -> impl Fn(String) + Send + Sync {
    move |piece| {
        let _ = words.send(Word::Output { op, piece });
    }
}

/// A performer without an effect: cancelling lets it go at once, and nobody waits for its report.
fn until_cancelled(
    id: StepId,
    token: CancellationToken,
    work: impl Future<Output = Input> + Send + 'static,
) -> Performer {
    Box::pin(async move {
        tokio::select! {
            biased;
            () = token.cancelled() => (id, None),
            input = work => (id, Some(input)),
        }
    })
}
