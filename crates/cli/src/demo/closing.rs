//! The closing table: each fault, whose business it was, what was done, and what was not undone.
//!
//! Promises: numbers in it are those that were seen. Deliberately not here: whether it is true (`checks`).

use crate::render::style::width;

use super::tale::Told;

const HEAD: [&str; 4] = ["fault", "layer", "what was done", "what was not undone"];
const NOTHING: &str = "nothing to undo";

/// Returns the table as aligned lines.
pub fn table(told: &Told, ledger: &[String]) -> String {
    let busy = format!("waited {} and sent the same bytes", seconds(&told.waits_busy_ms));
    let cut = format!("withdrew it, waited {}, sent the same bytes", seconds(&told.waits_cut_ms));
    let deploy = format!("stands: {}", ledger.join("; "));
    let rows = [
        ["529 overloaded, twice", "request", &busy, NOTHING],
        ["wrong parameter name", "tool", "told the model, before anything ran", NOTHING],
        ["missing file", "tool", "told the model", NOTHING],
        ["failing command", "tool", "told the model: exit code and output", NOTHING],
        ["stream cut after a deploy", "stream", &cut, &deploy],
        [
            "agent killed in a command",
            "session",
            "the command went on; resume took its outcome",
            "what the command did",
        ],
        ["401 key refused", "request", "ended the turn, did not ask again", "the session: it can be resumed"],
    ];
    lay_out(&rows)
}

fn seconds(waits_ms: &[u64]) -> String {
    let each: Vec<String> = waits_ms.iter().map(|ms| format!("{:.1}s", *ms as f64 / 1000.0)).collect();
    each.join(" and ")
}

fn lay_out(rows: &[[&str; 4]]) -> String {
    let all = || std::iter::once(&HEAD).chain(rows);
    let widths: Vec<usize> =
        (0..HEAD.len()).map(|column| all().map(|row| width(row[column])).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for (index, row) in all().enumerate() {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, columns)| format!("{cell}{}", " ".repeat(columns - width(cell))));
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
        if index == 0 {
            let rules: Vec<String> = widths.iter().map(|columns| "─".repeat(*columns)).collect();
            out.push_str(&rules.join("  "));
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other_and_numbers_are_those_seen() {
        let told = Told { waits_busy_ms: vec![512, 1_100], waits_cut_ms: vec![498], ..Told::default() };
        let table = table(&told, &["deployed sum.sh 42".to_owned()]);
        assert!(table.contains("waited 0.5s and 1.1s and sent"), "{table}");
        assert!(table.contains("stands: deployed sum.sh 42"), "{table}");
        let place = |line: &str, word: &str| line.find(word).map(|at| line[..at].chars().count());
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 9);
        assert_eq!(place(lines[0], "layer"), place(lines[2], "request"));
        assert_eq!(place(lines[0], "what was done"), place(lines[3], "told the model"));
    }
}
