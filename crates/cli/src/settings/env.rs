//! The environment, behind one door, so that tests need no real one.
//!
//! Promises: an empty variable counts as unset; nothing here is ever printed whole.
//! Deliberately not here: what a variable means (`table`).

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::exit::CliError;

/// Where variables are looked up: the process's own, then those that settings add.
#[derive(Debug, Clone)]
pub struct Env {
    real: Real,
    /// From `env` of the settings; the real environment wins.
    added: HashMap<String, String>,
}

#[derive(Debug, Clone)]
enum Real {
    Process,
    #[cfg(test)]
    Given(HashMap<String, String>),
}

impl Env {
    pub fn process() -> Self {
        Self { real: Real::Process, added: HashMap::new() }
    }

    #[cfg(test)]
    pub fn of(pairs: &[(&str, &str)]) -> Self {
        let given = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { real: Real::Given(given), added: HashMap::new() }
    }

    pub fn add(&mut self, name: String, value: String) {
        self.added.insert(name, value);
    }

    /// Errors: the value is not UTF-8.
    pub fn get(&self, name: &str) -> Result<Option<String>, CliError> {
        match self.raw(name).filter(|value| !value.is_empty()) {
            Some(value) => value.into_string().map(Some).map_err(|_| {
                CliError::config(format_args!("{name} is not UTF-8"), "set it to plain text, or unset it")
            }),
            None => Ok(self.added.get(name).filter(|value| !value.is_empty()).cloned()),
        }
    }

    /// Returns a folder's path; one that is not absolute counts as unset, as the XDG rules want it.
    pub fn folder(&self, name: &str) -> Option<PathBuf> {
        let value = self.raw(name).map(PathBuf::from).or_else(|| self.added.get(name).map(PathBuf::from))?;
        value.is_absolute().then_some(value)
    }

    fn raw(&self, name: &str) -> Option<OsString> {
        match &self.real {
            Real::Process => std::env::var_os(name),
            #[cfg(test)]
            Real::Given(given) => given.get(name).map(OsString::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_is_unset_and_the_real_environment_wins() {
        let mut env = Env::of(&[("A", "real"), ("B", "")]);
        env.add("A".into(), "added".into());
        env.add("B".into(), "added".into());
        assert_eq!(env.get("A").unwrap().as_deref(), Some("real"));
        assert_eq!(env.get("B").unwrap().as_deref(), Some("added"));
        assert_eq!(env.get("C").unwrap(), None);
    }

    #[test]
    fn a_relative_folder_counts_as_unset() {
        let env = Env::of(&[("X", "data"), ("Y", "/data")]);
        assert_eq!(env.folder("X"), None);
        assert_eq!(env.folder("Y"), Some(PathBuf::from("/data")));
    }
}
