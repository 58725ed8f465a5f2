//! What is known of each model.

/// Whether `served` is what `asked` names: the same, or one is an undated name of the other.
pub fn is_same_model(asked: &str, served: &str) -> bool {
    if asked == served {
        return true;
    }
    let (asked_base, asked_dated) = split_date(asked);
    let (served_base, served_dated) = split_date(served);
    asked_base == served_base && !(asked_dated && served_dated)
}

/// Returns a name without its date, `-latest` or `[1m]`, and whether it had a date.
fn split_date(name: &str) -> (&str, bool) {
    let name = name.split('[').next().unwrap_or(name);
    if let Some((base, date)) = name.rsplit_once(['-', '@']) {
        if date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()) {
            return (base, true);
        }
        if date == "latest" {
            return (base, false);
        }
    }
    (name, false)
}
