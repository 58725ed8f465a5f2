//! Scripts that come with the lab.

/// Returns all of them, as (name, JSON).
pub fn examples() -> &'static [(&'static str, &'static str)] {
    &EXAMPLES
}

/// Returns the JSON of one.
pub fn example(name: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(n, _)| *n == name).map(|(_, json)| *json)
}

const EXAMPLES: [(&str, &str); 2] = [
    ("hello", include_str!("../script/examples/hello.json")),
    ("five-errors", include_str!("../script/examples/five-errors.json")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Script;

    #[test]
    fn every_example_is_a_script_of_its_name() {
        for (name, json) in examples() {
            let script = Script::parse(json).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(script.name, *name);
        }
    }
}
