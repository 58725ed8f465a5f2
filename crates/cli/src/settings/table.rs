//! Every setting, once: its name, what it may hold, what holds without it, and who may set it.
//!
//! Promises: files are checked against these rows and the documentation is printed from them.
//! Deliberately not here: reading (`layer`, `env`) and what a value does (`crate::launch`).

/// One setting. Dotted names stand for nested objects.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    pub kind: Kind,
    /// What holds if nobody sets it, in words.
    pub default: &'static str,
    pub project: Project,
    /// Environment variables that set it, the first one set wins.
    pub env: &'static [&'static str],
    pub flag: Option<&'static str>,
    pub doc: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Bool,
    /// A whole number, both bounds included.
    Count {
        min: u64,
        max: u64,
    },
    Choice(&'static [&'static str]),
    /// One of the words, or a whole number of at least that.
    ChoiceOrCount(&'static [&'static str], u64),
    Texts,
    TextMap,
}

/// What a file inside a project may say: the project is somebody else's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Project {
    /// It can't do harm that the project could not do anyway.
    Any,
    /// Only the values that restrict.
    Only(&'static [&'static str]),
    Never,
}

const MS_MAX: u64 = 24 * 3600 * 1000;
const MS: Kind = Kind::Count { min: 1, max: MS_MAX };

pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "model",
        kind: Kind::Text,
        default: "claude-opus-5-5",
        project: Project::Any,
        env: &["ANTHROPIC_MODEL"],
        flag: Some("--model"),
        doc: "The model to ask.",
    },
    Setting {
        name: "fallbackModels",
        kind: Kind::Texts,
        default: "none",
        project: Project::Any,
        env: &[],
        flag: Some("--fallback-model"),
        doc: "Models to ask, in order, when the one before them is overloaded, gone, or keeps failing; for the rest of the turn.",
    },
    Setting {
        name: "effort",
        kind: Kind::Choice(&["low", "medium", "high", "xhigh", "max"]),
        default: "medium",
        project: Project::Any,
        env: &[],
        flag: None,
        doc: "How hard the model tries, where it knows efforts.",
    },
    Setting {
        name: "thinking",
        kind: Kind::ChoiceOrCount(&["off", "adaptive"], 1024),
        default: "off",
        project: Project::Any,
        env: &[],
        flag: None,
        doc: "Thinking of the model: `off`, `adaptive`, or at most so many tokens.",
    },
    Setting {
        name: "maxTokens",
        kind: Kind::Count { min: 1, max: 10_000_000 },
        default: "32,000, or the model's own limit if lower",
        project: Project::Any,
        env: &["CLAUDE_CODE_MAX_OUTPUT_TOKENS"],
        flag: None,
        doc: "The cap on one answer's tokens.",
    },
    Setting {
        name: "maxTurns",
        kind: Kind::Count { min: 1, max: u32::MAX as u64 },
        default: "no limit",
        project: Project::Any,
        env: &[],
        flag: Some("--max-turns"),
        doc: "Rounds one prompt may take.",
    },
    Setting {
        name: "maxRetries",
        kind: Kind::Count { min: 0, max: 1000 },
        default: "10",
        project: Project::Never,
        env: &["YAOKI_MAX_RETRIES", "CLAUDE_CODE_MAX_RETRIES"],
        flag: None,
        doc: "Retries of one request after its first attempt.",
    },
    Setting {
        name: "retryAfterCapMs",
        kind: MS,
        default: "60000",
        project: Project::Never,
        env: &[],
        flag: None,
        doc: "A longer wait named by the server ends the turn instead, with the time at which it may go on.",
    },
    Setting {
        name: "maxElapsedMs",
        kind: MS,
        default: "600000",
        project: Project::Never,
        env: &[],
        flag: None,
        doc: "All waiting and retrying for one request.",
    },
    Setting {
        name: "firstByteTimeoutMs",
        kind: MS,
        default: "60000; 600000 for an answer in one piece",
        project: Project::Never,
        env: &["YAOKI_FIRST_BYTE_TIMEOUT_MS", "API_TIMEOUT_MS"],
        flag: None,
        doc: "How long an answer may take to begin.",
    },
    Setting {
        name: "streamIdleTimeoutMs",
        kind: MS,
        default: "90000 without bytes, 300000 with nothing but pings",
        project: Project::Never,
        env: &["YAOKI_STREAM_IDLE_TIMEOUT_MS"],
        flag: None,
        doc: "How long a stream may stall before it counts as cut.",
    },
    Setting {
        name: "unstreamedFallback",
        kind: Kind::Bool,
        default: "true",
        project: Project::Never,
        env: &[],
        flag: None,
        doc: "After two broken streams of one request, ask once for the answer in one piece.",
    },
    Setting {
        name: "onUnknown",
        kind: Kind::Choice(&["tell-model", "stop"]),
        default: "tell-model",
        project: Project::Only(&["stop"]),
        env: &[],
        flag: None,
        doc: "When nobody knows whether an earlier call had its effect: tell the model, or end the turn as `needs_decision`.",
    },
    Setting {
        name: "permissions.allow",
        kind: Kind::Texts,
        default: "nothing",
        project: Project::Never,
        env: &[],
        flag: Some("--allowedTools"),
        doc: "Calls that need no question, such as `Edit` or `Bash(cargo test)`. All layers add up.",
    },
    Setting {
        name: "permissions.deny",
        kind: Kind::Texts,
        default: "nothing",
        project: Project::Any,
        env: &[],
        flag: Some("--disallowedTools"),
        doc: "Calls that never run. All layers add up, and deny wins over allow.",
    },
    Setting {
        name: "permissions.defaultMode",
        kind: Kind::Choice(&["default", "acceptEdits", "plan", "bypassPermissions", "dontAsk"]),
        default: "default",
        project: Project::Only(&["plan"]),
        env: &[],
        flag: Some("--permission-mode"),
        doc: "How much is allowed without asking. `bypassPermissions` is refused for root, unless `IS_SANDBOX=1`.",
    },
    Setting {
        name: "durability",
        kind: Kind::Choice(&["disk", "process"]),
        default: "disk",
        project: Project::Never,
        env: &[],
        flag: None,
        doc: "`disk`: survives a power cut. `process`: survives a kill only, and is quicker; for throw-away machines.",
    },
    Setting {
        name: "baseUrl",
        kind: Kind::Text,
        default: "https://api.anthropic.com",
        project: Project::Never,
        env: &["ANTHROPIC_BASE_URL"],
        flag: None,
        doc: "Where requests go.",
    },
    Setting {
        name: "caBundle",
        kind: Kind::Text,
        default: "the system's certificates",
        project: Project::Never,
        env: &["YAOKI_CA_BUNDLE"],
        flag: None,
        doc: "A PEM file of certificates to trust besides, for a proxy that opens TLS.",
    },
    Setting {
        name: "passCredentials",
        kind: Kind::Bool,
        default: "false",
        project: Project::Never,
        env: &[],
        flag: None,
        doc: "Whether commands see the model's key in their environment.",
    },
    Setting {
        name: "env",
        kind: Kind::TextMap,
        default: "nothing",
        project: Project::Never,
        env: &[],
        flag: None,
        doc: "Environment variables of the list below, for when the real environment does not set them.",
    },
];

/// Environment variables that are not the other name of a setting.
pub const ENV: &[(&str, &str)] = &[
    ("ANTHROPIC_API_KEY", "The key to ask the model with. It, or ANTHROPIC_AUTH_TOKEN, is needed."),
    ("ANTHROPIC_AUTH_TOKEN", "A bearer token, sent instead of a key. It wins if both are set."),
    (
        "YAOKI_HOME",
        "Where sessions and the prompt history live, before XDG_DATA_HOME/yaoki and ~/.local/share/yaoki.",
    ),
    ("XDG_DATA_HOME", "See YAOKI_HOME."),
    ("XDG_CONFIG_HOME", "The user's settings are yaoki/settings.json in it, or in ~/.config."),
    ("IS_SANDBOX", "1: this machine may be broken; root may then run without asking."),
    ("NO_COLOR", "Anything: no colours."),
];

/// Finds a setting by its dotted name.
pub fn setting(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

impl Kind {
    /// Says in words what it may hold, to follow "must be".
    pub fn words(self) -> String {
        match self {
            Kind::Text => "a text".to_owned(),
            Kind::Bool => "true or false".to_owned(),
            Kind::Count { min, max } if max >= MS_MAX => format!("a whole number of at least {min}"),
            Kind::Count { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::ChoiceOrCount(words, min) => {
                format!("{}, or a whole number of at least {min}", words.join(", "))
            }
            Kind::Texts => "a list of texts".to_owned(),
            Kind::TextMap => "an object of texts".to_owned(),
        }
    }

    /// Says whether a value fits.
    pub fn takes(self, value: &serde_json::Value) -> bool {
        use serde_json::Value;
        match (self, value) {
            (Kind::Text, Value::String(text)) => !text.trim().is_empty(),
            (Kind::Bool, Value::Bool(_)) => true,
            (Kind::Count { min, max }, value) => value.as_u64().is_some_and(|n| (min..=max).contains(&n)),
            (Kind::Choice(words) | Kind::ChoiceOrCount(words, _), Value::String(text)) => {
                words.contains(&text.as_str())
            }
            (Kind::ChoiceOrCount(_, min), value) => {
                value.as_u64().is_some_and(|n| (min..=u64::from(u32::MAX)).contains(&n))
            }
            (Kind::Texts, Value::Array(items)) => items.iter().all(Value::is_string),
            (Kind::TextMap, Value::Object(map)) => map.values().all(Value::is_string),
            (Kind::Text | Kind::Bool | Kind::Choice(_) | Kind::Texts | Kind::TextMap, _) => false,
        }
    }

    /// Reads a value from a text, as the environment and flags have it.
    pub fn read(self, text: &str) -> Option<serde_json::Value> {
        use serde_json::Value;
        let value = match self {
            Kind::Text | Kind::Choice(_) => Value::from(text),
            Kind::Bool => match text {
                "true" | "1" => Value::from(true),
                "false" | "0" => Value::from(false),
                _ => return None,
            },
            Kind::Count { .. } => Value::from(text.parse::<u64>().ok()?),
            Kind::ChoiceOrCount(..) => text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from),
            Kind::Texts | Kind::TextMap => return None,
        };
        self.takes(&value).then_some(value)
    }
}

/// Returns the known name that is nearest to a wrong one, if one is near.
pub fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (distance(&wrong.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(steps, name)| *steps <= name.len().div_ceil(3))
        .min()
        .map(|(_, name)| name)
}

/// Counts the letters to add, drop or change.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_unique_and_none_is_the_start_of_another() {
        for (i, a) in SETTINGS.iter().enumerate() {
            for b in &SETTINGS[i + 1..] {
                assert_ne!(a.name, b.name);
                assert!(!b.name.starts_with(&format!("{}.", a.name)), "{} hides {}", a.name, b.name);
            }
        }
    }

    #[test]
    fn nothing_that_grants_or_redirects_comes_from_a_project() {
        for name in ["permissions.allow", "baseUrl", "env", "durability", "maxRetries"] {
            assert_eq!(setting(name).map(|setting| setting.project), Some(Project::Never), "{name}");
        }
        let Some(Setting { project: Project::Only(modes), .. }) = setting("permissions.defaultMode") else {
            panic!("the mode is not restricted")
        };
        // Any other could loosen what its user chose.
        assert_eq!(modes, &["plan"]);
    }

    #[test]
    fn kinds_take_what_they_say() {
        let count = Kind::Count { min: 1, max: 9 };
        let either = Kind::ChoiceOrCount(&["off"], 1024);
        for (kind, value, fits) in [
            (Kind::Text, json!("x"), true),
            (Kind::Text, json!(" "), false),
            (Kind::Text, json!(1), false),
            (Kind::Bool, json!(false), true),
            (Kind::Bool, json!("false"), false),
            (count, json!(9), true),
            (count, json!(10), false),
            (count, json!(-1), false),
            (count, json!(1.5), false),
            (count, json!("3"), false),
            (Kind::Choice(&["a", "b"]), json!("b"), true),
            (Kind::Choice(&["a", "b"]), json!("c"), false),
            (either, json!("off"), true),
            (either, json!(2000), true),
            (either, json!(5), false),
            (either, json!("on"), false),
            (Kind::Texts, json!(["a"]), true),
            (Kind::Texts, json!(["a", 1]), false),
            (Kind::TextMap, json!({"a": "b"}), true),
            (Kind::TextMap, json!({"a": 1}), false),
        ] {
            assert_eq!(kind.takes(&value), fits, "{kind:?} and {value}");
        }
        assert_eq!(count.read("3"), Some(json!(3)));
        assert_eq!(count.read("x"), None);
        assert_eq!(either.read("2000"), Some(json!(2000)));
        assert_eq!(either.read("off"), Some(json!("off")));
    }

    #[test]
    fn a_wrong_name_finds_its_neighbour_and_nonsense_none() {
        let names = || SETTINGS.iter().map(|setting| setting.name);
        assert_eq!(nearest("modle", names()), Some("model"));
        assert_eq!(nearest("max_turns", names()), Some("maxTurns"));
        assert_eq!(nearest("zzzzzzzz", names()), None);
    }
}
