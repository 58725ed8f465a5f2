//! One JSON object as one line that every client can read.
//!
//! Promises: no raw newline or line separator, and less than 1 MiB whatever is in it: clients end a session over
//! a longer line. What is left out is said where it was. Deliberately not here: what the objects are.

use serde_json::Value;

/// Python clients stop at 1 MiB; some room is left for their count of it.
pub const LINE_BYTES_MAX: usize = 1_000_000;
const STRING_BYTES_FIRST: usize = 256 << 10;
const STRING_BYTES_LEAST: usize = 64;
const ITEMS_MAX: usize = 100;

/// Prints an object, without the newline.
pub fn to_line(value: &Value) -> String {
    let line = print(value);
    if line.len() < LINE_BYTES_MAX { line } else { clipped(value.clone()) }
}

fn print(value: &Value) -> String {
    let line = value.to_string();
    // JSON allows them in strings; JavaScript and readers by line do not.
    if line.contains('\u{2028}') || line.contains('\u{2029}') {
        line.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
    } else {
        line
    }
}

/// Shortens long strings first, then long lists; at last the largest members go.
fn clipped(mut value: Value) -> String {
    let mut cap = STRING_BYTES_FIRST;
    while cap >= STRING_BYTES_LEAST {
        clip_strings(&mut value, cap);
        let line = print(&value);
        if line.len() < LINE_BYTES_MAX {
            return line;
        }
        cap /= 4;
    }
    clip_lists(&mut value);
    if let Value::Object(map) = &mut value {
        drop_largest(map);
    }
    print(&value)
}

/// Takes out the largest members until the rest fits.
fn drop_largest(map: &mut serde_json::Map<String, Value>) {
    // Quotes, colon and comma come to each member.
    let size =
        |(key, member): (&String, &Value)| print(&Value::from(key.as_str())).len() + print(member).len() + 2;
    let mut sizes: Vec<usize> = map.iter().map(size).collect();
    let mut total: usize = sizes.iter().sum::<usize>() + 2;
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let mut largest_kept = usize::MAX;
    for size in sizes {
        if total < LINE_BYTES_MAX {
            break;
        }
        total -= size;
        largest_kept = size - 1;
    }
    map.retain(|key, member| size((key, &*member)) <= largest_kept);
}

fn clip_strings(value: &mut Value, cap: usize) {
    match value {
        Value::String(text) if text.len() > cap => {
            let mut end = cap;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let left = text[end..].chars().count();
            text.truncate(end);
            text.push_str(&format!("… [{left} more characters left out: a line must stay below 1 MiB]"));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| clip_strings(item, cap)),
        Value::Object(map) => map.values_mut().for_each(|member| clip_strings(member, cap)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn clip_lists(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.truncate(ITEMS_MAX);
            items.iter_mut().for_each(clip_lists);
        }
        Value::Object(map) => map.values_mut().for_each(clip_lists),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn line_separators_are_escaped_and_read_back() {
        let value = json!({"a": "x\u{2028}\u{2029}\ny"});
        let line = to_line(&value);
        assert_eq!(line, r#"{"a":"x\u2028\u2029\ny"}"#);
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
    }

    #[test]
    fn whatever_is_in_it_a_line_stays_below_a_mebibyte_and_is_json() {
        let wide = vec![json!(123_456_789); 120_000];
        let keys: serde_json::Map<String, Value> =
            (0..60_000).map(|n| (format!("key number {n}"), json!(n))).collect();
        for value in [
            json!({"type": "user", "text": "é".repeat(600_000)}),
            json!({"type": "user", "many": vec!["x".repeat(1000); 1500]}),
            json!({"type": "user", "wide": wide}),
            json!({"type": "user", "escaped": "\u{2028}".repeat(300_000)}),
            json!({"type": "user", "keys": keys}),
        ] {
            let line = to_line(&value);
            assert!(line.len() < LINE_BYTES_MAX, "{}", line.len());
            let back: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(back["type"], "user");
        }
    }

    #[test]
    fn a_clipped_text_says_how_much_is_missing() {
        let line = to_line(&json!({"text": "x".repeat(2_000_000)}));
        assert!(line.ends_with("x… [1737856 more characters left out: a line must stay below 1 MiB]\"}"));
    }
}
