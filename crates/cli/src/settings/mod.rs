//! Settings: which sources there are, which one wins, and what comes of them.
//!
//! From weak to strong: the user's file, the project's file, the project's local file, `--settings`, the
//! environment, flags. Lists of permissions add up over all of them.
//! Promises: no file is ever written; a file that cannot be read or understood stops the start with one line.
//! Deliberately not here: the table itself, and what a value does (`crate::launch`).

pub mod env;
pub mod layer;
pub mod table;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use self::env::Env;
use self::layer::{Layer, Trust};
use self::table::{Kind, SETTINGS};
use crate::exit::CliError;

/// A settings file is a page, not a database.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The values in force, each with the source that set it.
#[derive(Debug, Default)]
pub struct Settings {
    values: BTreeMap<&'static str, (Value, String)>,
    /// For standard error, once.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Reads all files and the environment. `flag` is the text of `--settings`.
    ///
    /// What `env` of the files adds goes into `env`, before the environment is asked.
    /// Errors: one line naming file or variable, exit code 2.
    pub fn load(env: &mut Env, cwd: &Path, flag: Option<&str>) -> Result<Self, CliError> {
        let mut settings = Settings::default();
        for file in files(env, cwd) {
            refuse_special(&file)?;
            if let Some(text) = read_if_there(&file.path, &file.shown)? {
                settings.put(layer::parse(&text, &file.shown, file.trust)?);
            }
        }
        if let Some(flag) = flag {
            settings.put(from_flag(flag, cwd)?);
        }
        if let Some((Value::Object(added), _)) = settings.values.get("env") {
            for (name, value) in added {
                env.add(name.clone(), value.as_str().unwrap_or_default().to_owned());
            }
        }
        settings.put(from_env(env)?);
        Ok(settings)
    }

    /// Lays a stronger source over what is there.
    fn put(&mut self, layer: Layer) {
        self.warnings.extend(layer.warnings);
        for (name, value) in layer.values {
            self.put_one(name, value, &layer.from);
        }
    }

    fn put_one(&mut self, name: &'static str, value: Value, from: &str) {
        let kind = table::setting(name).expect("layers hold only names of the table").kind;
        match (kind, self.values.get_mut(name), value) {
            // Permissions add up; a chain is one word, and the strongest source has it.
            (Kind::Texts, Some((Value::Array(old), from_old)), Value::Array(new))
                if name.starts_with("permissions.") =>
            {
                old.extend(new);
                *from_old = from.to_owned();
            }
            (Kind::TextMap, Some((Value::Object(old), from_old)), Value::Object(new)) => {
                old.extend(new);
                *from_old = from.to_owned();
            }
            (_, _, value) => {
                self.values.insert(name, (value, from.to_owned()));
            }
        }
    }

    /// Sets a value from a flag, the strongest source.
    ///
    /// Errors: the value cannot be.
    pub fn set_flag(&mut self, name: &'static str, text: &str) -> Result<(), CliError> {
        let setting = table::setting(name).expect("flags name rows of the table");
        let from = setting.flag.unwrap_or(name);
        let value = layer::read_text(setting, text, from)?;
        self.values.insert(name, (value, from.to_owned()));
        Ok(())
    }

    /// Sets a list from a flag, in place of any weaker one.
    pub fn set_texts_flag(&mut self, name: &'static str, items: Vec<String>) {
        if !items.is_empty() {
            let from = table::setting(name).and_then(|setting| setting.flag).unwrap_or(name);
            self.values.insert(name, (Value::from(items), from.to_owned()));
        }
    }

    /// Adds to a list from a flag.
    pub fn add_flag(&mut self, name: &'static str, items: Vec<String>) {
        if !items.is_empty() {
            let from = table::setting(name).and_then(|setting| setting.flag).unwrap_or(name);
            self.put_one(name, Value::from(items), from);
        }
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    pub fn count(&self, name: &str) -> Option<u64> {
        self.get(name)?.as_u64()
    }

    pub fn bool(&self, name: &str) -> Option<bool> {
        self.get(name)?.as_bool()
    }

    pub fn texts(&self, name: &str) -> Vec<String> {
        let items = self.get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    }

    /// Which source set it, for error messages.
    pub fn source(&self, name: &str) -> &str {
        self.values.get(name).map_or("the default", |(_, from)| from)
    }

    fn get(&self, name: &str) -> Option<&Value> {
        debug_assert!(table::setting(name).is_some(), "{name} has a row");
        self.values.get(name).map(|(value, _)| value)
    }
}

/// One place where a settings file may be.
#[derive(Debug, PartialEq)]
pub struct Place {
    pub path: PathBuf,
    /// The path as people are told it, without the home folder.
    pub shown: String,
    pub trust: Trust,
}

/// Lists the files, weak to strong, whether they exist or not.
pub fn files(env: &Env, cwd: &Path) -> Vec<Place> {
    let mut places = Vec::new();
    let config =
        env.folder("XDG_CONFIG_HOME").or_else(|| env.folder("HOME").map(|home| home.join(".config")));
    if let Some(config) = config {
        let path = config.join("yaoki/settings.json");
        places.push(Place { shown: shown(env, &path), path, trust: Trust::User });
    }
    let project = project_folder(cwd);
    for name in [".yaoki/settings.json", ".yaoki/settings.local.json"] {
        places.push(Place { path: project.join(name), shown: name.to_owned(), trust: Trust::Project });
    }
    places
}

/// Returns the nearest folder upwards that has `.yaoki`, no further than the repository's root; else `cwd`.
fn project_folder(cwd: &Path) -> PathBuf {
    let mut nearest = None;
    for folder in cwd.ancestors() {
        if nearest.is_none() && folder.join(".yaoki").is_dir() {
            nearest = Some(folder);
        }
        if folder.join(".git").exists() {
            return nearest.unwrap_or(cwd).to_owned();
        }
    }
    // Without a repository, a folder further up is not this project's.
    cwd.to_owned()
}

/// Writes a path as `~/…` where it is below the home folder.
pub fn shown(env: &Env, path: &Path) -> String {
    match env.folder("HOME").and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

/// A pipe or device that is found, rather than named by a person, could hold up the start for ever.
fn refuse_special(place: &Place) -> Result<(), CliError> {
    match std::fs::metadata(&place.path) {
        Ok(found) if !found.is_file() && !found.is_dir() => Err(CliError::config(
            format_args!("cannot read {}: it is not a regular file", place.shown),
            "put a file there, or move it away to go on without it",
        )),
        // Reading says what else is wrong.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Reads a file; none if it is not there.
fn read_if_there(path: &Path, shown: &str) -> Result<Option<String>, CliError> {
    let unreadable = |error: std::io::Error| {
        CliError::config(
            format_args!("cannot read {shown}: {error}"),
            "make it readable, or move it away to go on without it",
        )
    };
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error)),
    };
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(unreadable)?;
    Ok(Some(text))
}

fn from_flag(flag: &str, cwd: &Path) -> Result<Layer, CliError> {
    if flag.trim_start().starts_with('{') {
        return layer::parse(flag, "--settings", Trust::User);
    }
    match read_if_there(&cwd.join(flag), flag)? {
        Some(text) => layer::parse(&text, flag, Trust::User),
        None if serde_json::from_str::<Value>(flag).is_ok() => layer::parse(flag, "--settings", Trust::User),
        None => Err(CliError::config(
            format_args!("--settings: there is no file {flag}"),
            "name a file that exists, or give the JSON itself, such as '{\"model\": \"…\"}'",
        )),
    }
}

fn from_env(env: &Env) -> Result<Layer, CliError> {
    let mut layer = Layer { from: "the environment".to_owned(), ..Layer::default() };
    for setting in SETTINGS {
        for name in setting.env {
            if let Some(text) = env.get(name)? {
                layer.values.insert(setting.name, layer::read_text(setting, &text, name)?);
                break;
            }
        }
    }
    Ok(layer)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A home and a project in a folder of their own, with these files.
    fn world(files: &[(&str, &str)]) -> (tempfile::TempDir, Env, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let (home, project) = (dir.path().join("home"), dir.path().join("project"));
        fs::create_dir_all(project.join(".git")).unwrap();
        fs::create_dir_all(&home).unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let env = Env::of(&[("HOME", home.to_str().unwrap())]);
        (dir, env, project)
    }

    const USER: &str = "home/.config/yaoki/settings.json";
    const PROJECT: &str = "project/.yaoki/settings.json";
    const LOCAL: &str = "project/.yaoki/settings.local.json";

    #[test]
    fn each_source_is_stronger_than_the_one_before() {
        let files: Vec<(&str, &str)> = vec![
            (USER, r#"{"model":"user"}"#),
            (PROJECT, r#"{"model":"project"}"#),
            (LOCAL, r#"{"model":"local"}"#),
        ];
        for count in 0..=files.len() {
            let (_dir, mut env, project) = world(&files[..count]);
            let settings = Settings::load(&mut env, &project, None).unwrap();
            assert_eq!(settings.text("model"), [None, Some("user"), Some("project"), Some("local")][count]);
        }
        let (_dir, mut env, project) = world(&files);
        let mut settings = Settings::load(&mut env, &project, Some(r#"{"model":"flag"}"#)).unwrap();
        assert_eq!((settings.text("model"), settings.source("model")), (Some("flag"), "--settings"));
        settings.set_flag("model", "typed").unwrap();
        assert_eq!((settings.text("model"), settings.source("model")), (Some("typed"), "--model"));
    }

    #[test]
    fn the_environment_wins_over_files_and_our_name_over_the_other() {
        let mut env = Env::of(&[("YAOKI_MAX_RETRIES", "2"), ("CLAUDE_CODE_MAX_RETRIES", "7")]);
        let chain = r#"{"maxRetries":5,"fallbackModels":["a","b"]}"#;
        let mut settings = Settings::load(&mut env, Path::new("/"), Some(chain)).unwrap();
        assert_eq!(settings.texts("fallbackModels"), ["a", "b"]);
        settings.set_texts_flag("fallbackModels", vec!["c".into()]);
        assert_eq!(settings.texts("fallbackModels"), ["c"], "a chain is one word");
        assert_eq!(settings.count("maxRetries"), Some(2));
        let mut env = Env::of(&[("YAOKI_MAX_RETRIES", ""), ("CLAUDE_CODE_MAX_RETRIES", "7")]);
        let settings = Settings::load(&mut env, Path::new("/"), None).unwrap();
        assert_eq!(settings.count("maxRetries"), Some(7));
    }

    #[test]
    fn a_bad_number_in_the_environment_is_one_line() {
        let mut env = Env::of(&[("YAOKI_MAX_RETRIES", "ten")]);
        let error = Settings::load(&mut env, Path::new("/"), None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "YAOKI_MAX_RETRIES must be a whole number from 0 to 1000, not \"ten\"; set it to a number, or unset it"
        );
        assert_eq!(error.kind.code(), 2);
    }

    #[test]
    fn permissions_add_up_and_the_environment_of_settings_is_the_weaker_one() {
        let (_dir, mut env, project) = world(&[
            (
                USER,
                r#"{"permissions":{"allow":["Edit"],"deny":["A"]},"env":{"ANTHROPIC_MODEL":"m","HOME":"/x"}}"#,
            ),
            (PROJECT, r#"{"permissions":{"deny":["B"]}}"#),
        ]);
        let flag = r#"{"permissions":{"allow":["Grep"]}}"#;
        let mut settings = Settings::load(&mut env, &project, Some(flag)).unwrap();
        settings.add_flag("permissions.allow", vec!["Bash(ls)".into()]);
        assert_eq!(settings.texts("permissions.allow"), ["Edit", "Grep", "Bash(ls)"]);
        assert_eq!(settings.texts("permissions.deny"), ["A", "B"]);
        assert_eq!(settings.text("model"), Some("m"));
        assert_ne!(env.folder("HOME"), Some(PathBuf::from("/x")));
    }

    #[test]
    fn a_broken_file_stops_the_start_and_is_left_as_it_is() {
        let (dir, mut env, project) = world(&[(USER, "{\"model\": ")]);
        let error = Settings::load(&mut env, &project, None).unwrap_err();
        assert!(error.to_string().starts_with("~/.config/yaoki/settings.json:1:"), "{error}");
        assert_eq!(fs::read_to_string(dir.path().join(USER)).unwrap(), "{\"model\": ");
    }

    #[test]
    fn a_file_that_is_a_folder_or_is_not_there_is_told_apart() {
        let (dir, mut env, project) = world(&[]);
        fs::create_dir_all(dir.path().join(USER)).unwrap();
        let error = Settings::load(&mut env, &project, None).unwrap_err();
        assert!(error.to_string().starts_with("cannot read ~/.config/yaoki/settings.json: "), "{error}");
        let (_dir, mut env, project) = world(&[]);
        let error = Settings::load(&mut env, &project, Some("none.json")).unwrap_err();
        assert!(error.to_string().starts_with("--settings: there is no file none.json; "), "{error}");
    }

    #[test]
    fn json_that_is_no_object_is_said_to_be_none() {
        let (_dir, mut env, project) = world(&[]);
        for flag in ["[]", " 3", "null", "\"x\""] {
            let error = Settings::load(&mut env, &project, Some(flag)).unwrap_err().to_string();
            assert!(error.contains("it must be a JSON object; write it in braces"), "{flag}: {error}");
        }
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for() {
        let (_dir, mut env, project) = world(&[]);
        fs::create_dir_all(project.join(".yaoki")).unwrap();
        let path = project.join(".yaoki/settings.json");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        let error = Settings::load(&mut env, &project, None).unwrap_err();
        assert!(error.to_string().contains("settings.json: it is not a regular file"), "{error}");
    }

    #[test]
    fn the_project_is_found_from_below_but_not_outside_its_repository() {
        let (dir, env, project) = world(&[(PROJECT, "{}"), ("stray/.yaoki/settings.json", "{}")]);
        let below = project.join("src/deep");
        let stray = dir.path().join("stray/below");
        fs::create_dir_all(&below).unwrap();
        fs::create_dir_all(&stray).unwrap();
        let has =
            |cwd: &Path, want: &str| files(&env, cwd).iter().any(|place| place.path == dir.path().join(want));
        assert!(has(&below, PROJECT));
        assert!(!has(&stray, "stray/.yaoki/settings.json"));
    }
}
