//! May a call run? Rules first, then the mode; what neither decides, a person does.
//!
//! Order: a rule that denies, a rule that asks, a rule that allows, the mode. A rule on commands allows a
//! compound only if it holds for every simple command in it, and denies if it holds for any piece.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use yaoki_core::step::Judgement;

use super::commands;
use super::rules::{Rule, RuleError};
use crate::config::PermissionMode;

/// What a call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Nothing outside the session.
    Session,
    /// Reads below this path.
    Reads(PathBuf),
    /// Changes this file.
    Edits(PathBuf),
    /// Runs this shell command.
    Command(String),
}

/// Judges calls. Asked again before each run that was judged before another effect.
pub trait PermissionPolicy: Send + Sync {
    fn judge(&self, tool: &str, subject: &Subject) -> Judgement;

    /// Whether this is denied whatever else was allowed. A search passes over files that are forbidden.
    fn forbids(&self, tool: &str, subject: &Subject) -> bool {
        matches!(self.judge(tool, subject), Judgement::Deny { .. })
    }
}

/// Folders whose files decide what runs unasked another time: hooks and settings.
const GUARDED: [&str; 3] = [".git", ".yaoki", ".claude"];

/// Mode and rules, in the words of Claude Code's settings.
#[derive(Debug, Clone)]
pub struct RuleSet {
    mode: PermissionMode,
    cwd: PathBuf,
    /// Folders that count as inside besides `cwd`.
    also_inside: Vec<PathBuf>,
    deny: Vec<Rule>,
    ask: Vec<Rule>,
    allow: Vec<Rule>,
}

impl RuleSet {
    pub fn new(mode: PermissionMode, cwd: impl Into<PathBuf>) -> Self {
        let (also_inside, deny, ask, allow) = Default::default();
        Self { mode, cwd: super::paths::resolved(&cwd.into()), also_inside, deny, ask, allow }
    }

    /// Adds rules such as `Bash(git push:*)`. Errors: the first that cannot be read, or that asks or denies for a
    /// tool that does not exist, with its reason.
    pub fn with_rules(
        mut self,
        allow: &[String],
        ask: &[String],
        deny: &[String],
    ) -> Result<Self, RuleError> {
        for text in allow {
            self.allow.push(Rule::parse(text, &self.cwd)?);
        }
        for (texts, into) in [(ask, &mut self.ask), (deny, &mut self.deny)] {
            for text in texts {
                into.push(Rule::parse_strict(text, &self.cwd)?);
            }
        }
        Ok(self)
    }

    /// Lets tools read below this folder as if it were inside the working folder.
    pub fn with_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.also_inside.push(super::paths::resolved(&folder.into()));
        self
    }

    fn may_read(&self, path: &Path) -> bool {
        // A link inside may lead outside.
        let real = super::paths::resolved(path);
        real.starts_with(&self.cwd) || self.also_inside.iter().any(|folder| real.starts_with(folder))
    }

    fn may_edit(&self, path: &Path) -> bool {
        let real = super::paths::resolved(path);
        let is_guarded = |name: &OsStr| GUARDED.iter().any(|guarded| name.eq_ignore_ascii_case(guarded));
        real.strip_prefix(&self.cwd).is_ok_and(|below| !below.iter().any(is_guarded))
            // Those are for reading only, wherever they are.
            && !self.also_inside.iter().any(|folder| real.starts_with(folder))
    }

    /// Plan mode holds against rules that allow too.
    fn is_against_the_plan(&self, subject: &Subject) -> bool {
        self.mode == PermissionMode::Plan
            && match subject {
                Subject::Session | Subject::Reads(_) => false,
                Subject::Edits(_) => true,
                Subject::Command(line) => !commands::only_reads(line),
            }
    }

    fn mode_allows(&self, subject: &Subject) -> bool {
        use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};
        match (self.mode, subject) {
            (BypassPermissions, _) => true,
            (_, Subject::Session) => true,
            (_, Subject::Reads(path)) => self.may_read(path),
            (AcceptEdits, Subject::Edits(path)) => self.may_edit(path),
            (Default | DontAsk | Plan, Subject::Edits(_)) => false,
            (Default | DontAsk | Plan | AcceptEdits, Subject::Command(_)) => false,
        }
    }
}

impl PermissionPolicy for RuleSet {
    fn judge(&self, tool: &str, subject: &Subject) -> Judgement {
        let rule = |by: &str| Judgement::Allow { by: by.to_owned() };
        if let Some(found) = self.deny.iter().find(|rule| rule.touches(tool, subject)) {
            return Judgement::Deny {
                by: "rule".to_owned(),
                reason: format!("Permission to use {tool} was denied by the rule {found}"),
            };
        }
        if self.mode != PermissionMode::BypassPermissions
            && self.ask.iter().any(|rule| rule.touches(tool, subject))
        {
            return self.asked(tool);
        }
        if self.is_against_the_plan(subject) {
            return self.asked(tool);
        }
        if self.rules_allow(tool, subject) {
            return rule("rule");
        }
        if self.mode_allows(subject) {
            return rule("mode");
        }
        self.asked(tool)
    }

    fn forbids(&self, tool: &str, subject: &Subject) -> bool {
        self.deny.iter().any(|rule| rule.touches(tool, subject))
    }
}

impl RuleSet {
    fn asked(&self, tool: &str) -> Judgement {
        let reason = match self.mode {
            PermissionMode::Plan => format!(
                "Permission to use {tool} was denied: in plan mode nothing is changed. Finish the plan first"
            ),
            PermissionMode::DontAsk => format!(
                "Permission to use {tool} was denied: no rule allows it and the mode is dontAsk, so nobody is asked"
            ),
            PermissionMode::Default | PermissionMode::AcceptEdits | PermissionMode::BypassPermissions => {
                return Judgement::Ask;
            }
        };
        Judgement::Deny { by: "mode".to_owned(), reason }
    }

    fn rules_allow(&self, tool: &str, subject: &Subject) -> bool {
        match subject {
            Subject::Command(line) => {
                // A whole line that a rule gives word for word needs no taking apart.
                self.allow.iter().any(|rule| rule.covers_all(tool) || rule.is_line(tool, line.trim()))
                    || commands::simple_commands(line).is_some_and(|commands| {
                        let holds = |words: &Vec<String>| {
                            self.allow.iter().any(|rule| rule.covers_command(tool, &commands::to_line(words)))
                        };
                        commands.iter().all(holds)
                    })
            }
            Subject::Session | Subject::Reads(_) | Subject::Edits(_) => {
                self.allow.iter().any(|rule| rule.covers(tool, subject))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(mode: PermissionMode, allow: &[&str], deny: &[&str]) -> RuleSet {
        let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        RuleSet::new(mode, "/srv/here").with_rules(&own(allow), &[], &own(deny)).unwrap()
    }

    fn verdict(rules: &RuleSet, tool: &str, subject: Subject) -> String {
        match rules.judge(tool, &subject) {
            Judgement::Allow { by } => format!("allow by {by}"),
            Judgement::Ask => "ask".to_owned(),
            Judgement::Deny { by, .. } => format!("deny by {by}"),
        }
    }

    #[test]
    fn the_mode_decides_where_no_rule_does() {
        let read = || Subject::Reads("/srv/here/a".into());
        let read_outside = || Subject::Reads("/etc/hosts".into());
        let edit = || Subject::Edits("/srv/here/a".into());
        let edit_outside = || Subject::Edits("/srv/there".into());
        let command = || Subject::Command("ls".to_owned());
        use PermissionMode::*;
        for (mode, want) in [
            (Default, ["allow by mode", "ask", "ask", "ask", "ask"]),
            (AcceptEdits, ["allow by mode", "ask", "allow by mode", "ask", "ask"]),
            (Plan, ["allow by mode", "deny by mode", "deny by mode", "deny by mode", "deny by mode"]),
            (DontAsk, ["allow by mode", "deny by mode", "deny by mode", "deny by mode", "deny by mode"]),
            (BypassPermissions, ["allow by mode"; 5]),
        ] {
            let rules = rules(mode, &[], &[]);
            let got = [
                verdict(&rules, "Read", read()),
                verdict(&rules, "Read", read_outside()),
                verdict(&rules, "Edit", edit()),
                verdict(&rules, "Write", edit_outside()),
                verdict(&rules, "Bash", command()),
            ];
            assert_eq!(got, want, "{mode:?}");
        }
    }

    #[test]
    fn a_rule_allows_a_compound_only_if_it_holds_for_every_part() {
        let allow = ["Bash(git push:*)", "Bash(ls)", "Bash(make \"a b\" > log)"];
        let rules = rules(PermissionMode::Default, &allow, &[]);
        for (line, want) in [
            ("make \"a b\" > log", "allow by rule"),
            ("make \"a b\" > log2", "ask"),
            ("git \"push origin\"", "ask"),
            ("git push \"a b\"", "allow by rule"),
            ("git push", "allow by rule"),
            ("git push origin main", "allow by rule"),
            ("git push && ls", "allow by rule"),
            ("git pushy", "ask"),
            ("git push && rm -rf x", "ask"),
            ("git push $(rm -rf x)", "ask"),
            ("git push; rm x", "ask"),
            ("ls -l", "ask"),
            ("git push > x", "ask"),
        ] {
            assert_eq!(verdict(&rules, "Bash", Subject::Command(line.to_owned())), want, "{line}");
        }
    }

    #[test]
    fn a_rule_that_denies_wins_always() {
        let rules = rules(
            PermissionMode::BypassPermissions,
            &["Bash", "Edit"],
            &["Bash(git push:*)", "Edit(secret/**)", "Read(//etc/**)"],
        );
        for (tool, subject, want) in [
            ("Bash", Subject::Command("ls && git push".to_owned()), "deny by rule"),
            ("Bash", Subject::Command("echo $(git push)".to_owned()), "deny by rule"),
            ("Bash", Subject::Command("git pull".to_owned()), "allow by rule"),
            ("Edit", Subject::Edits("/srv/here/secret/a".into()), "deny by rule"),
            ("Write", Subject::Edits("/srv/here/secret/a".into()), "deny by rule"),
            ("Write", Subject::Edits("/srv/here/open/a".into()), "allow by rule"),
            ("Grep", Subject::Reads("/etc/hosts".into()), "deny by rule"),
        ] {
            assert_eq!(verdict(&rules, tool, subject.clone()), want, "{tool} {subject:?}");
        }
    }

    #[test]
    fn edits_that_would_lead_to_more_than_edits_are_asked_about() {
        let rules = rules(PermissionMode::AcceptEdits, &[], &[]);
        let rules = rules.with_folder("/session").with_folder("/srv/here/state/session");
        for (path, want) in [
            ("/srv/here/src/a", "allow by mode"),
            ("/srv/here/.github/a", "allow by mode"),
            ("/srv/here/.git/hooks/pre-commit", "ask"),
            ("/srv/here/sub/.GIT/config", "ask"),
            ("/srv/here/.yaoki/settings.json", "ask"),
            ("/session/log.jsonl", "ask"),
            ("/srv/here/state/session/log.jsonl", "ask"),
        ] {
            assert_eq!(verdict(&rules, "Write", Subject::Edits(path.into())), want, "{path}");
        }
        assert_eq!(verdict(&rules, "Read", Subject::Reads("/session/output/a".into())), "allow by mode");
    }

    #[test]
    fn a_plan_changes_nothing_whatever_the_rules_allow() {
        let rules = rules(PermissionMode::Plan, &["Bash", "Edit"], &[]);
        for (tool, subject, want) in [
            ("Edit", Subject::Edits("/srv/here/a".into()), "deny by mode"),
            ("Bash", Subject::Command("git status; rm a".to_owned()), "deny by mode"),
            ("Bash", Subject::Command("git status".to_owned()), "allow by rule"),
            ("Read", Subject::Reads("/srv/here/a".into()), "allow by mode"),
        ] {
            assert_eq!(verdict(&rules, tool, subject.clone()), want, "{subject:?}");
        }
    }

    #[test]
    fn a_rule_allows_where_a_path_leads_and_denies_by_its_name_too() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (dir.path().join("here"), dir.path().join("there"));
        std::fs::create_dir_all(&there).unwrap();
        std::fs::create_dir_all(here.join("src")).unwrap();
        std::os::unix::fs::symlink(&there, here.join("src/out")).unwrap();
        std::os::unix::fs::symlink(&here, dir.path().join("link")).unwrap();
        let absolute = format!("Edit(/{}/*)", dir.path().join("link").display());
        for (rule, path, want) in [
            ("Edit(src/**)", "here/src/a", "allow by rule"),
            ("Edit(src/**)", "link/src/a", "allow by rule"),
            ("Edit(src/**)", "here/src/out/a", "ask"),
            (absolute.as_str(), "link/a", "allow by rule"),
            (absolute.as_str(), "here/a", "allow by rule"),
        ] {
            let of = |allow: &[String], deny: &[String]| {
                RuleSet::new(PermissionMode::Default, &here).with_rules(allow, &[], deny).unwrap()
            };
            let subject = || Subject::Edits(dir.path().join(path));
            assert_eq!(verdict(&of(&[rule.to_owned()], &[]), "Edit", subject()), want, "{rule} {path}");
            let denied = verdict(&of(&[], &[rule.to_owned()]), "Edit", subject());
            assert_eq!(denied, "deny by rule", "{rule} {path}");
        }
    }

    #[test]
    fn a_rule_that_asks_wins_over_one_that_allows() {
        let own = |text: &str| vec![text.to_owned()];
        let rules = RuleSet::new(PermissionMode::AcceptEdits, "/srv/here")
            .with_rules(&own("Bash"), &own("Bash(git push:*)"), &[])
            .unwrap();
        for (line, want) in [("git push", "ask"), ("ls; git push", "ask"), ("git pull", "allow by rule")] {
            assert_eq!(verdict(&rules, "Bash", Subject::Command(line.to_owned())), want, "{line}");
        }
    }
}
