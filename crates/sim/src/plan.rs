//! What a schedule's model will say, and which kinds of trouble it enables: all decided before it begins.

use crate::dice::Dice;

/// One schedule's script. Every part follows from the seed.
#[derive(Debug, Clone)]
pub struct Plan {
    pub turns: Vec<Vec<Round>>,
    pub swarm: Swarm,
    /// Rounds a turn may take.
    pub max_turns: Option<u32>,
    /// The turn stops at an outcome that nobody knows.
    pub is_cautious: bool,
    /// The user's own cap on output.
    pub max_tokens: Option<u32>,
    /// Another model may be asked when the first cannot serve.
    pub has_fallback: bool,
}

/// What the model says at one point of a turn.
#[derive(Debug, Clone)]
pub struct Round {
    pub has_thinking: bool,
    pub text: Option<String>,
    pub calls: Vec<PlannedCall>,
    /// None lets the blocks decide.
    pub stop: Option<&'static str>,
}

#[derive(Debug, Clone)]
pub struct PlannedCall {
    pub tool: &'static str,
    /// Unique in the schedule, but for twins: what the world counts by.
    pub tag: String,
    /// The model's JSON is broken.
    pub is_broken: bool,
}

/// Which kinds of trouble this schedule may have, per mille; swarm style, so that each has long runs without the others.
#[derive(Debug, Clone, Copy, Default)]
pub struct Swarm {
    pub answer_faults: u64,
    /// Whole answers that are not good ones.
    pub flaws: u64,
    pub crashes: u64,
    pub interrupts: u64,
    pub disk_faults: u64,
    pub person_faults: u64,
    pub runner_faults: u64,
    /// Lines of the log go bad between two lives.
    pub damages: u64,
    /// The service is down: nothing but refusals, until the faults are used up.
    pub is_outage: bool,
    /// The same, and all it says is that we ask too often.
    pub is_quota: bool,
    pub faults_max: u32,
    pub lives_max: u32,
    /// The log is folded anew at every step.
    pub is_refolded: bool,
}

/// The user's own cap, where there is one.
pub const MAX_TOKENS: u32 = 4_096;
/// The model that is asked when the first cannot serve.
pub const FALLBACK: &str = "claude-sonnet-5";

/// The end of the tag of a call that comes twice in one message.
pub const TWIN: &str = "twin";

/// The tools of the simulated world.
pub const TOOLS: [&str; 6] = ["look", "put", "edit", "act", "send", "wrong"];

impl Plan {
    pub fn new(dice: &Dice) -> Self {
        let turns = (0..1 + dice.below(2)).map(|turn| rounds(dice, turn)).collect();
        let swarm = Swarm::new(dice);
        Plan {
            turns,
            swarm,
            max_turns: dice.is(100).then(|| 3 + dice.below(6) as u32),
            is_cautious: dice.is(100),
            max_tokens: dice.is(150).then_some(MAX_TOKENS),
            has_fallback: dice.is(if swarm.is_outage { 600 } else { 200 }),
        }
    }
}

impl Swarm {
    fn new(dice: &Dice) -> Self {
        let maybe = |per_mille: u64| if dice.is(600) { per_mille } else { 0 };
        let is_outage = dice.is(40);
        Swarm {
            answer_faults: if is_outage { 1_000 } else { maybe(350) },
            flaws: maybe(60),
            crashes: maybe(12),
            interrupts: maybe(5),
            disk_faults: maybe(6),
            person_faults: maybe(400),
            runner_faults: maybe(100),
            damages: if dice.is(160) { 700 } else { 0 },
            is_outage,
            is_quota: is_outage && dice.is(300),
            faults_max: if is_outage { 8 + dice.below(24) } else { 6 + dice.below(10) } as u32,
            lives_max: 2 + dice.below(3) as u32,
            is_refolded: dice.below(64) == 0,
        }
    }
}

/// The last round is said again for as long as the turn goes on.
fn rounds(dice: &Dice, turn: u64) -> Vec<Round> {
    if dice.is(40) {
        // A model that turns in a circle.
        let call = PlannedCall { tool: "look", tag: format!("t{turn}r0c0"), is_broken: false };
        return vec![Round { has_thinking: false, text: None, calls: vec![call], stop: None }];
    }
    let count = 5 + dice.below(8);
    let mut rounds: Vec<Round> = (0..count).map(|round| tool_round(dice, turn, round)).collect();
    rounds.push(Round {
        has_thinking: dice.is(200),
        text: Some(format!("turn {turn} is done")),
        calls: Vec::new(),
        stop: None,
    });
    rounds
}

fn tool_round(dice: &Dice, turn: u64, round: u64) -> Round {
    let is_reading = dice.is(250);
    let mut calls: Vec<PlannedCall> = (0..1 + dice.below(3))
        .map(|index| PlannedCall {
            tool: if is_reading {
                "look"
            } else {
                dice.pick::<&str>(&["look", "put", "edit", "act", "act", "send", "wrong"])
            },
            tag: format!("t{turn}r{round}c{index}"),
            is_broken: dice.is(20),
        })
        .collect();
    if dice.is(40) {
        let twin = PlannedCall { tool: "put", tag: format!("t{turn}r{round}{TWIN}"), is_broken: false };
        calls.extend([twin.clone(), twin]);
    }
    Round {
        has_thinking: dice.is(300),
        text: dice.is(700).then(|| format!("step {round} – näher dran")),
        calls,
        stop: dice.is(30).then_some("max_tokens"),
    }
}
