//! From flags, files and environment to what the library needs to start.
//!
//! Promises: whatever is wrong is known before a session exists; the key is never printed. A scripted model is reached
//! like a real one: only the address and the key differ.
//! Deliberately not here: reading settings (`settings`), running turns (`turn`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use yaoki::core::policy::{OnUnknown, Policy};
use yaoki::core::request::Thinking;
use yaoki::wire::attempt::Limits;
use yaoki::wire::endpoint::{Credential, Endpoint, Secret};
use yaoki::{Agent, Config, Durability, OpenError, PermissionMode, Person, Ports, StartError};
use yaoki_lab::serve::Server;
use yaoki_lab::{Lab, Script};

use crate::args::{RunFlags, split_rules};
use crate::exit::CliError;
use crate::settings::Settings;
use crate::settings::env::Env;

const BASE_URL: &str = "https://api.anthropic.com";
/// Needed by the protocol, not by the lab. It is taken out of whatever is told, so it must occur in no text.
const FAKE_KEY: &str = "yaoki-fake-key-b07c1e9d4a62";
const KEYS: [&str; 2] = ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"];

/// Everything that is needed to open sessions.
pub struct Launch {
    pub config: Config,
    pub env: Env,
    /// For standard error, once.
    pub warnings: Vec<String>,
    /// Where the key is from.
    pub key_source: &'static str,
    /// The scripted model, as long as it is needed.
    pub lab: Option<Server>,
}

impl Launch {
    /// Decides everything from the flags and this process's environment.
    ///
    /// `is_resuming` leaves the session its own model unless a flag or the environment names one.
    /// Errors: one line, exit code 2, or 1 where the machine is not as needed.
    pub fn prepare(flags: &RunFlags, is_resuming: bool) -> Result<Self, CliError> {
        let is_root = rustix::process::geteuid().is_root();
        Self::prepare_in(Env::process(), flags, is_resuming, is_root)
    }

    fn prepare_in(
        mut env: Env,
        flags: &RunFlags,
        is_resuming: bool,
        is_root: bool,
    ) -> Result<Self, CliError> {
        let cwd = working_folder(flags.cwd.as_deref())?;
        let mut settings = Settings::load(&mut env, &cwd, flags.settings.as_deref())?;
        lay_flags_over(&mut settings, flags)?;
        let permission_mode = permission_mode(&settings, flags, &env, is_root)?;
        let lab = flags.fake.as_deref().map(start_lab).transpose()?;
        let (endpoint, key_source) = match &lab {
            Some(lab) => (Endpoint::new(lab.url(), Credential::ApiKey(Secret::new(FAKE_KEY))), "--fake"),
            None => endpoint(&settings, &env)?,
        };
        let mut secrets = Vec::new();
        for name in KEYS {
            secrets.extend(env.get(name)?.map(|value| (name.to_owned(), value.trim().to_owned())));
        }
        let model_from = settings.source("model");
        let model_counts = !is_resuming || model_from == "--model" || model_from == "the environment";
        let config = Config {
            endpoint,
            model: settings.text("model").filter(|_| model_counts).map(str::to_owned),
            effort: settings.text("effort").unwrap_or("medium").to_owned(),
            max_tokens: settings.count("maxTokens").map(|n| n as u32),
            thinking: thinking(&settings),
            limits: limits(&settings),
            policy: policy(&settings),
            permission_mode,
            allow: settings.texts("permissions.allow"),
            deny: settings.texts("permissions.deny"),
            home: home(&env)?,
            cwd,
            system_prompt: flags.system_prompt.clone(),
            append_system_prompt: flags.append_system_prompt.clone(),
            durability: match settings.text("durability") {
                Some("process") => Durability::Process,
                _ => Durability::Disk,
            },
            max_turns: settings.count("maxTurns").map(|n| n as u32),
            secrets,
            ca_bundle: settings.text("caBundle").map(PathBuf::from),
            pass_credentials: settings.bool("passCredentials").unwrap_or(false),
        };
        let mut warnings = settings.warnings;
        for rule in &config.allow {
            let unknown = yaoki::tools::unknown_tool(rule);
            warnings.extend(unknown.map(|why| format!("the permission rule {rule:?} {why}")));
        }
        Ok(Self { config, env, warnings, key_source, lab })
    }

    /// Opens a session, or creates one.
    pub async fn open(&self, session: Option<&str>, person: Arc<dyn Person>) -> Result<Agent, CliError> {
        let mut ports = Ports::standard(&self.config).map_err(|error| start_error(&error))?;
        ports.person = person;
        let opened = match session {
            Some(session) => Agent::open(self.config.clone(), ports, session).await,
            None => Agent::create(self.config.clone(), ports).await,
        };
        opened.map_err(|error| open_error(&error))
    }

    /// Tells the warnings, and what the lab has to complain about at the end.
    pub fn complaints(&self) -> Vec<String> {
        let lab = self.lab.iter().flat_map(|lab| lab.report().complaints());
        lab.map(|complaint| format!("lab: {complaint}")).collect()
    }
}

/// Folds an error of starting into a kind, with the next thing to try.
fn start_error(error: &StartError) -> CliError {
    let message = yaoki::error_chain(error);
    match error {
        StartError::Rule(_) => CliError::config(
            message,
            "write it as Edit, Bash(cargo test) or Read(src/**), in permissions or --allowedTools and --disallowedTools",
        ),
        StartError::Http(_) => {
            CliError::config(message, "check caBundle, and the proxy variables of the environment")
        }
        StartError::Runner(_) => CliError::environment(message, "install yaoki again"),
    }
}

/// Folds an error of opening into a kind, with the next thing to try.
fn open_error(error: &OpenError) -> CliError {
    let hint = match error {
        OpenError::NoSession { .. } => "yaoki sessions --all lists those there are",
        OpenError::Create(_) | OpenError::Write(_) => {
            "check disk space and permissions, or set YAOKI_HOME to a folder that can be written"
        }
        OpenError::Open(yaoki::store::OpenError::Locked { .. }) => {
            "end the other yaoki, or begin a new session"
        }
        OpenError::Open(_) => "the session's files are left as they are; begin a new session to go on",
        OpenError::Newer(_) => "use the newer yaoki that wrote it",
    };
    CliError::environment(yaoki::error_chain(error), hint)
}

fn working_folder(flag: Option<&Path>) -> Result<PathBuf, CliError> {
    let cwd = match flag {
        Some(folder) => folder.canonicalize().map_err(|error| {
            CliError::usage(format_args!("--cwd {}: {error}", folder.display()), "name a folder that exists")
        })?,
        None => std::env::current_dir().map_err(|error| {
            CliError::environment(
                format_args!("the working folder cannot be found: {error}"),
                "change to a folder that exists, or name one with --cwd",
            )
        })?,
    };
    if !cwd.is_dir() {
        return Err(CliError::usage(
            format_args!("--cwd {} is not a folder", cwd.display()),
            "name a folder",
        ));
    }
    Ok(cwd)
}

fn lay_flags_over(settings: &mut Settings, flags: &RunFlags) -> Result<(), CliError> {
    if let Some(model) = &flags.model {
        settings.set_flag("model", model)?;
    }
    if let Some(rounds) = flags.max_turns {
        settings.set_flag("maxTurns", &rounds.to_string())?;
    }
    if let Some(mode) = &flags.permission_mode {
        settings.set_flag("permissions.defaultMode", mode)?;
    }
    settings.set_texts_flag("fallbackModels", split_models(&flags.fallback_model));
    settings.add_flag("permissions.allow", split_rules(&flags.allowed_tools));
    settings.add_flag("permissions.deny", split_rules(&flags.disallowed_tools));
    Ok(())
}

fn split_models(lists: &[String]) -> Vec<String> {
    let names = lists.iter().flat_map(|list| list.split(',')).map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn permission_mode(
    settings: &Settings,
    flags: &RunFlags,
    env: &Env,
    is_root: bool,
) -> Result<PermissionMode, CliError> {
    let name = settings.text("permissions.defaultMode").unwrap_or("default");
    let mode = if flags.dangerously_skip_permissions {
        PermissionMode::BypassPermissions
    } else {
        PermissionMode::from_name(name).expect("the table knows only modes that exist")
    };
    let is_sandbox = env.get("IS_SANDBOX")?.as_deref() == Some("1");
    if mode == PermissionMode::BypassPermissions && is_root && !is_sandbox {
        let asked_by = match flags.dangerously_skip_permissions {
            true => "--dangerously-skip-permissions".to_owned(),
            false => format!("bypassPermissions ({})", settings.source("permissions.defaultMode")),
        };
        return Err(CliError::usage(
            format_args!("{asked_by} is refused for root: every command would run unasked"),
            "run as another user, or set IS_SANDBOX=1 on a machine that may be broken",
        ));
    }
    Ok(mode)
}

fn endpoint(settings: &Settings, env: &Env) -> Result<(Endpoint, &'static str), CliError> {
    let base_url = settings.text("baseUrl").unwrap_or(BASE_URL).trim();
    let host = base_url.strip_prefix("https://").or_else(|| base_url.strip_prefix("http://"));
    let is_plain = base_url.chars().all(|c| !c.is_whitespace() && !c.is_control());
    if !is_plain || host.is_none_or(|host| host.is_empty() || host.starts_with('/')) {
        return Err(CliError::config(
            format_args!("{} is no address of a service: {base_url:?}", source_of_url(settings)),
            format!("write it as {BASE_URL}, or remove it"),
        ));
    }
    for name in KEYS {
        let Some(key) = env.get(name)? else { continue };
        let key = key.trim();
        // It becomes a header: what cannot stand there would only fail later, and less clearly.
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_graphic()) {
            return Err(CliError::config(
                format_args!("{name} holds spaces or characters that no key has"),
                "copy the key again, as one word",
            ));
        }
        let secret = Secret::new(key);
        let credential = match name {
            "ANTHROPIC_AUTH_TOKEN" => Credential::Bearer(secret),
            _ => Credential::ApiKey(secret),
        };
        return Ok((Endpoint::new(base_url, credential), name));
    }
    Err(CliError::config(
        "there is no key to ask a model with",
        "set ANTHROPIC_API_KEY (from console.anthropic.com) or ANTHROPIC_AUTH_TOKEN in the environment or under \"env\" \
         in ~/.config/yaoki/settings.json; yaoki demo needs none",
    ))
}

fn source_of_url(settings: &Settings) -> String {
    match settings.source("baseUrl") {
        "the environment" => "ANTHROPIC_BASE_URL".to_owned(),
        file => format!("baseUrl ({file})"),
    }
}

/// Starts the scripted model on loopback, on a thread of its own so that a busy terminal does not stop it.
fn start_lab(path: &Path) -> Result<Server, CliError> {
    let script = load_script(path)?;
    Server::start_on_thread(Lab::new(script), "127.0.0.1:0").map_err(|error| {
        CliError::environment(format_args!("the lab cannot listen on loopback: {error}"), "")
    })
}

/// Reads a script, from a file or, by name, one of those that come with the lab.
pub fn load_script(path: &Path) -> Result<Script, CliError> {
    let shown = path.display();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let known = yaoki_lab::example(stem).filter(|_| error.kind() == std::io::ErrorKind::NotFound);
            let names: Vec<&str> = yaoki_lab::examples().iter().map(|(name, _)| *name).collect();
            known.map(str::to_owned).ok_or_else(|| {
                CliError::usage(
                    format_args!("cannot read the script {shown}: {error}"),
                    format!("name a file, or one of {}", names.join(", ")),
                )
            })?
        }
    };
    Script::parse(&text).map_err(|error| {
        let message = yaoki::error_chain(&error);
        CliError::config(
            format_args!("{shown} is no script: {message}"),
            "yaoki lab schema prints what a script may hold",
        )
    })
}

/// Returns where sessions and the prompt history live.
///
/// Errors: there is no such place, or YAOKI_HOME is relative: it would be another for each working folder.
pub fn home(env: &Env) -> Result<PathBuf, CliError> {
    if env.folder("YAOKI_HOME").is_none()
        && let Some(relative) = env.get("YAOKI_HOME")?
    {
        return Err(CliError::config(
            format_args!("YAOKI_HOME is not an absolute path: {relative:?}"),
            "begin it with /, or unset it",
        ));
    }
    env.folder("YAOKI_HOME")
        .or_else(|| env.folder("XDG_DATA_HOME").map(|data| data.join("yaoki")))
        .or_else(|| env.folder("HOME").map(|home| home.join(".local/share/yaoki")))
        .ok_or_else(|| {
            CliError::config(
                "there is no home folder to keep sessions in",
                "set HOME, or YAOKI_HOME to an absolute path",
            )
        })
}

fn thinking(settings: &Settings) -> Thinking {
    match (settings.text("thinking"), settings.count("thinking")) {
        (Some("adaptive"), _) => Thinking::Adaptive,
        (_, Some(tokens)) => Thinking::Budget(tokens as u32),
        _ => Thinking::Off,
    }
}

fn limits(settings: &Settings) -> Limits {
    let mut limits = Limits::default();
    if let Some(ms) = settings.count("firstByteTimeoutMs") {
        limits.first_byte_ms = ms;
        limits.first_byte_unstreamed_ms = ms;
    }
    if let Some(ms) = settings.count("streamIdleTimeoutMs") {
        limits.idle_ms = ms;
        limits.content_idle_ms = ms;
    }
    limits
}

fn policy(settings: &Settings) -> Policy {
    let default = Policy::default();
    Policy {
        max_retries: settings.count("maxRetries").map_or(default.max_retries, |n| n as u32),
        retry_after_cap_ms: settings.count("retryAfterCapMs").unwrap_or(default.retry_after_cap_ms),
        max_elapsed_ms: settings.count("maxElapsedMs").unwrap_or(default.max_elapsed_ms),
        fallback_models: settings.texts("fallbackModels"),
        unstreamed_allowed: settings.bool("unstreamedFallback").unwrap_or(default.unstreamed_allowed),
        on_unknown: match settings.text("onUnknown") {
            Some("stop") => OnUnknown::Stop,
            Some("tell-model") => OnUnknown::TellModel,
            _ => default.on_unknown,
        },
        ..default
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(pairs: &[(&str, &str)], flags: RunFlags, is_root: bool) -> Result<Launch, CliError> {
        let mut all = vec![("YAOKI_HOME", "/nowhere/yaoki")];
        all.extend(pairs);
        let flags = RunFlags { cwd: flags.cwd.or_else(|| Some("/".into())), ..flags };
        Launch::prepare_in(Env::of(&all), &flags, false, is_root)
    }

    fn refused(pairs: &[(&str, &str)], flags: RunFlags, is_root: bool) -> String {
        match prepared(pairs, flags, is_root) {
            Ok(_) => panic!("it was accepted"),
            Err(error) => {
                assert_eq!(error.kind.code(), 2, "{error}");
                error.to_string()
            }
        }
    }

    #[test]
    fn without_a_key_it_says_what_to_set_and_where() {
        let text = refused(&[("ANTHROPIC_API_KEY", "")], RunFlags::default(), false);
        for word in
            ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "~/.config/yaoki/settings.json", "yaoki demo"]
        {
            assert!(text.contains(word), "{word} is missing: {text}");
        }
        assert!(!text.contains('\n'));
    }

    #[test]
    fn a_key_is_trimmed_a_token_wins_and_a_broken_key_is_not_printed() {
        let both = [("ANTHROPIC_API_KEY", " k\n"), ("ANTHROPIC_AUTH_TOKEN", "t")];
        let launch = prepared(&both, RunFlags::default(), false).unwrap();
        assert!(matches!(&launch.config.endpoint.credential, Credential::Bearer(t) if t.expose() == "t"));
        assert_eq!(launch.key_source, "ANTHROPIC_AUTH_TOKEN");
        assert_eq!(launch.config.secrets.len(), 2);
        let launch = prepared(&both[..1], RunFlags::default(), false).unwrap();
        assert!(matches!(&launch.config.endpoint.credential, Credential::ApiKey(k) if k.expose() == "k"));
        let text = refused(&[("ANTHROPIC_API_KEY", "sk-ant two words")], RunFlags::default(), false);
        assert!(!text.contains("sk-ant"), "{text}");
    }

    #[test]
    fn a_relative_home_is_refused_and_not_passed_over() {
        let pairs = [("ANTHROPIC_API_KEY", "k"), ("YAOKI_HOME", "state"), ("HOME", "/h")];
        let text = refused(&pairs, RunFlags::default(), false);
        assert_eq!(text, "YAOKI_HOME is not an absolute path: \"state\"; begin it with /, or unset it");
        let env = Env::of(&[("YAOKI_HOME", ""), ("HOME", "/h")]);
        assert_eq!(home(&env).unwrap(), Path::new("/h/.local/share/yaoki"));
    }

    #[test]
    fn a_rule_on_a_tool_that_does_not_exist_is_a_warning_where_it_allows() {
        let flags = RunFlags { allowed_tools: vec!["bash,Edit,mcp__a__b".into()], ..RunFlags::default() };
        let warnings = prepared(&[("ANTHROPIC_API_KEY", "k")], flags, false).unwrap().warnings;
        let [warning] = &warnings[..] else { panic!("not one: {warnings:?}") };
        assert!(warning.contains("\"bash\"") && warning.contains("did you mean Bash?"), "{warning}");
    }

    #[test]
    fn an_address_must_be_one() {
        for url in ["localhost:8080", "ftp://x", "https://", "http:///v1", "http://a b"] {
            let text = refused(
                &[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", url)],
                RunFlags::default(),
                false,
            );
            assert!(text.starts_with("ANTHROPIC_BASE_URL is no address of a service"), "{text}");
        }
        let pairs = [("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/gate")];
        assert_eq!(
            prepared(&pairs, RunFlags::default(), false).unwrap().config.endpoint.base_url,
            pairs[1].1
        );
    }

    #[test]
    fn root_may_not_skip_permissions_unless_the_machine_may_be_broken() {
        let key = ("ANTHROPIC_API_KEY", "k");
        let skip = || RunFlags { dangerously_skip_permissions: true, ..RunFlags::default() };
        let mode = || RunFlags { permission_mode: Some("bypassPermissions".into()), ..RunFlags::default() };
        for flags in [skip(), mode()] {
            let text = refused(&[key], flags, true);
            assert!(text.contains("refused for root") && text.contains("IS_SANDBOX=1"), "{text}");
        }
        for (pairs, is_root) in [(&[key, ("IS_SANDBOX", "1")][..], true), (&[key], false)] {
            let launch = prepared(pairs, skip(), is_root).unwrap();
            assert_eq!(launch.config.permission_mode, PermissionMode::BypassPermissions);
        }
    }

    #[test]
    fn settings_reach_the_configuration() {
        let pairs = [
            ("ANTHROPIC_API_KEY", "k"),
            ("YAOKI_MAX_RETRIES", "2"),
            ("API_TIMEOUT_MS", "1500"),
            ("YAOKI_STREAM_IDLE_TIMEOUT_MS", "700"),
        ];
        let text = r#"{"thinking":4096,"onUnknown":"stop","durability":"process","unstreamedFallback":false,
            "maxTokens":500,"permissions":{"allow":["Edit"],"defaultMode":"acceptEdits"}}"#;
        let flags = RunFlags {
            settings: Some(text.into()),
            max_turns: Some(7),
            model: Some("m".into()),
            allowed_tools: vec!["Bash(a, b) Grep".into()],
            ..RunFlags::default()
        };
        let config = prepared(&pairs, flags, false).unwrap().config;
        assert_eq!(config.policy.max_retries, 2);
        assert_eq!((config.policy.on_unknown, config.policy.unstreamed_allowed), (OnUnknown::Stop, false));
        assert_eq!((config.limits.first_byte_ms, config.limits.idle_ms), (1500, 700));
        assert_eq!((config.thinking, config.durability), (Thinking::Budget(4096), Durability::Process));
        assert_eq!(
            (config.model.as_deref(), config.max_turns, config.max_tokens),
            (Some("m"), Some(7), Some(500))
        );
        assert_eq!(config.allow, ["Edit", "Bash(a, b)", "Grep"]);
        assert_eq!(config.permission_mode, PermissionMode::AcceptEdits);
    }

    #[test]
    fn a_wrong_mode_folder_or_script_is_one_line() {
        let key = [("ANTHROPIC_API_KEY", "k")];
        let flags = RunFlags { permission_mode: Some("yolo".into()), ..RunFlags::default() };
        assert_eq!(
            refused(&key, flags, false),
            "--permission-mode must be one of default, acceptEdits, plan, bypassPermissions, dontAsk, not \"yolo\"; correct it, or unset it"
        );
        let flags = RunFlags { cwd: Some("/does/not/exist".into()), ..RunFlags::default() };
        assert!(refused(&key, flags, false).starts_with("--cwd /does/not/exist: "));
        let flags = RunFlags { fake: Some("/does/not/exist.json".into()), ..RunFlags::default() };
        assert!(refused(&key, flags, false).starts_with("cannot read the script /does/not/exist.json: "));
    }

    #[test]
    fn an_unknown_session_is_named_and_ends_with_one() {
        let error = open_error(&OpenError::NoSession { id: "x".into() });
        assert_eq!(
            error.to_string(),
            "No conversation found with session ID: x; yaoki sessions --all lists those there are"
        );
        assert_eq!(error.kind.code(), 1);
    }
}
