//! What is known of each model: window, output limit, prices, thinking.
//!
//! Promises: nothing is guessed from a name that only resembles a known one, since a newer model has other prices.
//! The table is `models.toml`, read when first asked.

use std::sync::LazyLock;

use serde::Deserialize;
use yaoki_core::message::Usage;

const UNKNOWN_WINDOW_TOKENS: u64 = 200_000;
const UNKNOWN_OUTPUT_TOKENS: u32 = 32_000;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelFacts {
    /// Tokens of input and output together.
    pub window: u64,
    /// The most tokens one answer may have.
    pub output_max: u32,
    pub thinking: ThinkingSupport,
    pub price: Option<Price>,
    /// False where these are the defaults for a name that is not in the table.
    pub known: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingSupport {
    None,
    /// A budget of tokens is named.
    Budget,
    /// The model decides how much.
    Adaptive,
}

/// Dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

impl Price {
    /// Returns dollars.
    pub fn cost(&self, usage: &Usage) -> f64 {
        (usage.input as f64 * self.input
            + usage.output as f64 * self.output
            + usage.cache_read as f64 * self.cache_read
            + usage.cache_write as f64 * self.cache_write)
            / 1e6
    }
}

#[derive(Deserialize)]
struct Table {
    model: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    window: u64,
    output: u32,
    thinking: ThinkingSupport,
    price: Option<PriceRow>,
}

#[derive(Deserialize)]
struct PriceRow {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("models.toml")).expect("a test reads the embedded table"));

/// Returns what is known of a model, or careful defaults.
pub fn facts(model: &str) -> ModelFacts {
    let name = bare_name(model);
    match TABLE.model.iter().find(|row| row.name == name) {
        Some(row) => ModelFacts {
            window: row.window,
            output_max: row.output,
            thinking: row.thinking,
            price: row.price.as_ref().map(|price| Price {
                input: price.input,
                output: price.output,
                cache_read: price.cache_read.unwrap_or(price.input * 0.1),
                cache_write: price.cache_write.unwrap_or(price.input * 1.25),
            }),
            known: true,
        },
        None => ModelFacts {
            window: UNKNOWN_WINDOW_TOKENS,
            output_max: UNKNOWN_OUTPUT_TOKENS,
            thinking: ThinkingSupport::None,
            price: None,
            known: false,
        },
    }
}

/// Whether `served` is what `asked` names: the same, or one is an undated name of the other.
pub fn is_same_model(asked: &str, served: &str) -> bool {
    if asked == served {
        return true;
    }
    let (asked_base, asked_dated) = split_date(asked);
    let (served_base, served_dated) = split_date(served);
    asked_base == served_base && !(asked_dated && served_dated)
}

/// Returns a name as the table has it: `us.anthropic.claude-haiku-4-5-20251001-v1:0` is `claude-haiku-4-5`.
fn bare_name(model: &str) -> &str {
    let name = model.find("claude-").map_or(model, |at| &model[at..]);
    let name = name.split(':').next().unwrap_or(name);
    let name = match name.rsplit_once("-v") {
        Some((base, version)) if is_digits(version) => base,
        _ => name,
    };
    let (name, _) = split_date(name);
    // The first of a line is also called its zeroth.
    match name {
        "claude-opus-4-0" => "claude-opus-4",
        "claude-sonnet-4-0" => "claude-sonnet-4",
        name => name,
    }
}

/// Returns a name without its date, `-latest` or `[1m]`, and whether it had a date.
fn split_date(name: &str) -> (&str, bool) {
    let name = name.split('[').next().unwrap_or(name);
    match name.rsplit_once(['-', '@']) {
        Some((base, date)) if date.len() == 8 && is_digits(date) => (base, true),
        Some((base, "latest")) => (base, false),
        _ => (name, false),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_be_looked_up_and_no_two_have_one_name() {
        for (index, row) in TABLE.model.iter().enumerate() {
            assert!(facts(&row.name).known, "{}", row.name);
            assert!(TABLE.model[..index].iter().all(|other| other.name != row.name), "{}", row.name);
            assert!(u64::from(row.output) < row.window, "{}", row.name);
        }
    }

    #[test]
    fn names_are_found_in_any_dress_and_not_by_resemblance() {
        for (name, want) in [
            ("claude-haiku-4-5", Some(200_000)),
            ("claude-haiku-4-5-20251001", Some(200_000)),
            ("claude-haiku-4-5@20251001", Some(200_000)),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", Some(200_000)),
            ("anthropic/claude-opus-4-7", Some(1_000_000)),
            ("claude-3-7-sonnet-latest", Some(200_000)),
            ("claude-sonnet-4-0", Some(200_000)),
            ("claude-sonnet-4-6[1m]", Some(1_000_000)),
            ("claude-opus-4-99", None),
            ("claude-opus", None),
            ("gpt-oss", None),
            ("", None),
        ] {
            let got = facts(name);
            assert_eq!(got.known.then_some(got.window), want, "{name}");
        }
    }

    #[test]
    fn an_unknown_model_has_no_price() {
        let got = facts("house-model");
        assert_eq!((got.window, got.output_max, got.price), (200_000, 32_000, None));
    }

    #[test]
    fn a_cost_counts_each_kind_of_token_at_its_price() {
        let price = facts("claude-haiku-4-5").price.unwrap();
        let usage =
            Usage { input: 1_000_000, output: 100_000, cache_read: 1_000_000, cache_write: 1_000_000 };
        assert!((price.cost(&usage) - (1.0 + 0.5 + 0.1 + 1.25)).abs() < 1e-9);
    }

    #[test]
    fn a_date_does_not_make_another_model_but_another_date_does() {
        for (asked, served, want) in [
            ("claude-haiku-4-5", "claude-haiku-4-5-20251001", true),
            ("claude-3-7-sonnet-latest", "claude-3-7-sonnet-20250219", true),
            ("claude-sonnet-4-6[1m]", "claude-sonnet-4-6", true),
            ("claude-haiku-4-5-20250901", "claude-haiku-4-5-20251001", false),
            ("claude-opus-4", "claude-opus-4-1", false),
            ("m", "m", true),
        ] {
            assert_eq!(is_same_model(asked, served), want, "{asked} {served}");
        }
    }
}
