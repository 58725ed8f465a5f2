//! The lines most like a text that was not found, to show what stands there instead.

use super::text::{first_chars, numbered};

/// Lines looked at; a larger file gets no such help.
const LINES_MAX: usize = 20_000;
/// Lines shown.
const SHOWN_MAX: usize = 20;
const LINE_CHARS_MAX: usize = 200;
/// Below this likeness nothing is shown: it would mislead.
const LIKENESS_MIN: f32 = 0.5;

/// Describes the nearest match of `wanted`, or nothing if there is none worth showing.
pub(super) fn describe(file: &str, wanted: &str) -> Option<String> {
    let lines: Vec<&str> = file.lines().take(LINES_MAX + 1).collect();
    let wanted: Vec<&str> = wanted.lines().collect();
    if lines.len() > LINES_MAX || wanted.is_empty() {
        return None;
    }
    let begin = best_window(&lines, &wanted)?;
    let end = (begin + wanted.len()).min(lines.len());
    let shown = lines[begin..end].iter().take(SHOWN_MAX).map(|line| first_chars(line, LINE_CHARS_MAX));
    let more = if end - begin > SHOWN_MAX { "\n       …" } else { "" };
    let place =
        if end - begin > 1 { format!("lines {}-{end}", begin + 1) } else { format!("line {}", begin + 1) };
    Some(format!("Nearest match, {place}:\n{}{more}", numbered(shown, begin + 1)))
}

/// Where the window of lines begins that is most like `wanted`.
fn best_window(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let trimmed: Vec<&str> = wanted.iter().map(|line| line.trim()).collect();
    let anchor = trimmed.iter().position(|line| !line.is_empty())?;
    // Whole lines in common are the best sign; they are cheap to count.
    let in_common = |begin: usize| {
        let window = lines[begin..].iter().zip(&trimmed);
        window.filter(|(line, wanted)| !wanted.is_empty() && line.trim() == **wanted).count()
    };
    let best = (0..lines.len())
        .map(|begin| (in_common(begin), begin))
        .max_by_key(|&(count, begin)| (count, std::cmp::Reverse(begin)))?;
    if best.0 > 0 {
        return Some(best.1);
    }
    let wanted_line = first_chars(trimmed[anchor], LINE_CHARS_MAX);
    let candidates: Vec<&str> =
        lines.iter().map(|line| first_chars(line.trim(), LINE_CHARS_MAX)).filter(|l| !l.is_empty()).collect();
    let nearest = *similar::get_close_matches(wanted_line, &candidates, 1, LIKENESS_MIN).first()?;
    let at = lines.iter().position(|line| first_chars(line.trim(), LINE_CHARS_MAX) == nearest)?;
    Some(at.saturating_sub(anchor))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "fn main() {\n    let total = sum(&items);\n    println!(\"{total}\");\n}\n";

    #[test]
    fn shows_the_lines_that_are_there_instead() {
        for (wanted, want) in [
            (
                "\tlet total = sum(&items);\n\tprintln!(\"{total}\");",
                Some(
                    "Nearest match, lines 2-3:\n     2→    let total = sum(&items);\n     3→    println!(\"{total}\");",
                ),
            ),
            ("let totals = sum(items);", Some("Nearest match, line 2:\n     2→    let total = sum(&items);")),
            ("SELECT * FROM users WHERE id = 7", None),
            ("", None),
        ] {
            assert_eq!(describe(FILE, wanted).as_deref(), want, "{wanted:?}");
        }
    }
}
