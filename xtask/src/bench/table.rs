//! The rows of a measurement, for people and for programs.

/// What a number has to keep to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Not more than the limit; the target is where we want to be.
    AtMost { limit: f64, target: f64 },
    /// This number, give or take.
    Near { want: f64, slack: f64 },
    /// Only told.
    Told,
}

/// One measured thing.
pub struct Row {
    name: &'static str,
    unit: &'static str,
    /// All runs, lowest first.
    values: Vec<f64>,
    bound: Bound,
}

impl Row {
    /// Takes at least one value, in any order.
    pub fn new(name: &'static str, unit: &'static str, mut values: Vec<f64>, bound: Bound) -> Row {
        assert!(!values.is_empty(), "a row has values");
        values.sort_by(f64::total_cmp);
        Row { name, unit, values, bound }
    }

    fn median(&self) -> f64 {
        self.values[self.values.len() / 2]
    }

    /// Returns whether the bound is kept; `None` when there is none.
    ///
    /// A count is the same in every run, so every run has to keep it; times are judged by their median.
    pub fn is_met(&self) -> Option<bool> {
        match self.bound {
            Bound::AtMost { limit, .. } => Some(self.median() <= limit),
            Bound::Near { want, slack } => {
                Some(self.values.iter().all(|value| (value - want).abs() <= slack))
            }
            Bound::Told => None,
        }
    }

    fn bound_in_words(&self) -> String {
        match self.bound {
            Bound::AtMost { limit, target } if target < limit => format!("≤ {limit} (target {target})"),
            Bound::AtMost { limit, .. } => format!("≤ {limit}"),
            Bound::Near { want, slack } => format!("{want} ± {slack}"),
            Bound::Told => String::new(),
        }
    }

    fn verdict(&self) -> &'static str {
        match (self.is_met(), self.bound) {
            (None, _) => "",
            (Some(false), _) => "NOT MET",
            (Some(true), Bound::AtMost { target, .. }) if target < self.median() => "met, target not",
            (Some(true), _) => "met",
        }
    }
}

pub fn to_text(runs: usize, rows: &[Row]) -> String {
    let mut text =
        format!("{:<38}{:>10}{:>10}{:>10}\n", format!("medians of {runs}"), "median", "low", "high");
    for row in rows {
        let (low, high) = (row.values[0], row.values[row.values.len() - 1]);
        let name = format!("{} {}", row.name, row.unit);
        let line = format!(
            "{name:<38}{:>10}{:>10}{:>10}  {:<18} {}",
            to_digits(row.median()),
            to_digits(low),
            to_digits(high),
            row.bound_in_words(),
            row.verdict()
        );
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Returns one JSON object: `{"runs", "rows": [{"name", "unit", "median", "low", "high", "met"}]}`.
pub fn to_json(runs: usize, rows: &[Row]) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|row| {
            let met = row.is_met().map_or("null", |met| if met { "true" } else { "false" });
            format!(
                r#"{{"name":"{}","unit":"{}","median":{:.3},"low":{:.3},"high":{:.3},"bound":"{}","met":{met}}}"#,
                row.name,
                row.unit,
                row.median(),
                row.values[0],
                row.values[row.values.len() - 1],
                row.bound_in_words()
            )
        })
        .collect();
    format!(r#"{{"runs":{runs},"rows":[{}]}}"#, rows.join(","))
}

/// Three digits that matter, and no more than two of them behind the point.
fn to_digits(value: f64) -> String {
    match value {
        0.0..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_decides_on_times_and_every_run_on_counts() {
        let at_most = Bound::AtMost { limit: 30.0, target: 15.0 };
        let near = Bound::Near { want: 102.0, slack: 2.0 };
        for (values, bound, is_met, verdict) in [
            (vec![90.0, 10.0, 12.0], at_most, Some(true), "met"),
            (vec![20.0, 20.0, 90.0], at_most, Some(true), "met, target not"),
            (vec![31.0, 31.0, 1.0], at_most, Some(false), "NOT MET"),
            (vec![102.0, 104.0, 100.0], near, Some(true), "met"),
            (vec![102.0, 102.0, 105.0], near, Some(false), "NOT MET"),
            (vec![1.0], Bound::Told, None, ""),
        ] {
            let row = Row::new("a", "ms", values.clone(), bound);
            assert_eq!((row.is_met(), row.verdict()), (is_met, verdict), "{values:?}");
        }
    }

    #[test]
    fn rows_are_told_to_people_and_programs() {
        let rows =
            [Row::new("start", "ms", vec![12.34, 8.0, 140.0], Bound::AtMost { limit: 30.0, target: 15.0 })];
        let text = to_text(3, &rows);
        assert!(text.contains("12.3") && text.contains("≤ 30 (target 15)") && text.contains("met"), "{text}");
        let want = r#"{"runs":3,"rows":[{"name":"start","unit":"ms","median":12.340,"low":8.000,"high":140.000,"bound":"≤ 30 (target 15)","met":true}]}"#;
        assert_eq!(to_json(3, &rows), want);
    }
}
