//! Rust source with what is not code blanked out, and without its tests.
//!
//! Promises: every line keeps its number and its length. Knows line and block comments, strings, raw
//! strings and character literals; it is no parser.

/// Returns the text with comments and the insides of strings replaced by spaces.
pub fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match skipped_until(&chars, at) {
            Some(end) => end,
            None => {
                out.push(chars[at]);
                at += 1;
                continue;
            }
        };
        out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
        at = end;
    }
    out
}

/// Returns where the comment or literal that starts here ends.
fn skipped_until(chars: &[char], at: usize) -> Option<usize> {
    let starts = |word: &str| chars[at..].iter().copied().take(word.len()).eq(word.chars());
    let follows_a_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    if starts("//") {
        return Some(chars[at..].iter().position(|c| *c == '\n').map_or(chars.len(), |n| at + n));
    }
    if starts("/*") {
        return Some(end_of_block(chars, at));
    }
    if chars[at] == 'r' && !follows_a_word {
        let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
        if chars.get(at + 1 + hashes) == Some(&'"') {
            let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let body = at + 2 + hashes;
            let found = chars[body..].windows(close.len()).position(|window| window == close);
            return Some(found.map_or(chars.len(), |n| body + n + close.len()));
        }
    }
    if chars[at] == '"' {
        return Some(end_of_quoted(chars, at, '"'));
    }
    // A lifetime has no closing quote two places on, unless it is escaped.
    let is_char = chars[at] == '\'' && (chars.get(at + 1) == Some(&'\\') || chars.get(at + 2) == Some(&'\''));
    is_char.then(|| end_of_quoted(chars, at, '\''))
}

fn end_of_quoted(chars: &[char], at: usize, quote: char) -> usize {
    let mut end = at + 1;
    while end < chars.len() && chars[end] != quote {
        end += if chars[end] == '\\' { 2 } else { 1 };
    }
    (end + 1).min(chars.len())
}

fn end_of_block(chars: &[char], at: usize) -> usize {
    let mut depth = 0;
    let mut end = at;
    while end + 1 < chars.len() {
        match (chars[end], chars[end + 1]) {
            ('/', '*') => (depth, end) = (depth + 1, end + 2),
            ('*', '/') => (depth, end) = (depth - 1, end + 2),
            _ => end += 1,
        }
        if depth == 0 {
            return end;
        }
    }
    chars.len()
}

/// Returns the number of lines before the test module, which comes last in a file.
pub fn lines_before_tests(code: &str) -> usize {
    let lines: Vec<&str> = code.lines().collect();
    let is_start = |pair: &[&str]| {
        pair[0].trim_end() == "#[cfg(test)]"
            && pair[1].starts_with("mod ")
            && pair[1].trim_end().ends_with('{')
    };
    lines.windows(2).position(is_start).unwrap_or(lines.len())
}

/// Tells whether the word stands in the line by itself, not as a part of a longer name.
pub fn has_word(line: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_code_is_not() {
        for (text, want) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("std::fs \" x", y)"#, "f(              , y)"),
            ("r#\"a\"b\"# c", "         c"),
            ("let x: &'a str = '\"'; y", "let x: &'a str =    ; y"),
            (r"'\'' z", "     z"),
            ("var\"x\"", "var   "),
        ] {
            assert_eq!(code_only(text), want, "{text}");
        }
    }

    #[test]
    fn the_test_module_is_where_the_code_ends() {
        assert_eq!(lines_before_tests("a\n#[cfg(test)]\nmod tests {\n}\n"), 1);
        assert_eq!(lines_before_tests("#[cfg(test)]\nmod tests;\nb\n"), 3);
    }

    #[test]
    fn a_word_inside_a_name_does_not_count() {
        assert!(has_word("use rand::Rng;", "rand"));
        assert!(!has_word("let operand = brand_new;", "rand"));
    }
}
