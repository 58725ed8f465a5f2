//! What must be true when the story is over.
//!
//! Promises: everything is looked at anew, in the world and in the lab, not in what was told. A demo that passes
//! while one of these is false has failed. Deliberately not here: how it looks.

use yaoki_lab::Report;

use super::project::{Project, RIGHT, WRONG};
use super::script::FAULTS;

/// One fact, and what was found instead if it is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub what: &'static str,
    pub instead: Option<String>,
}

impl Check {
    pub fn new(what: &'static str, is_so: bool, instead: impl FnOnce() -> String) -> Self {
        Self { what, instead: (!is_so).then(instead) }
    }
}

/// Looks at the world outside of the agent.
pub fn of_the_world(project: &Project) -> Vec<Check> {
    let ledger = project.ledger();
    let smoke = project.smoke_log();
    let sum = project.read("sum.sh");
    let status = project.git(&["status", "--porcelain"]).unwrap_or_else(|error| error.to_string());
    let commits = project.git(&["rev-list", "--count", "HEAD"]).unwrap_or_else(|error| error.to_string());
    vec![
        Check::new("the tests pass, run by ourselves", project.tests_pass(), || "they fail".to_owned()),
        Check::new(
            "one line of sum.sh is changed, nothing else",
            status == " M sum.sh\n" && sum.contains(RIGHT) && !sum.contains(WRONG),
            || format!("git status says {status:?}"),
        ),
        Check::new("nothing was committed or staged", commits.trim() == "1", || {
            format!("there are {} commits", commits.trim())
        }),
        Check::new("the ledger has exactly one deploy", ledger.len() == 1, || format!("it has {ledger:?}")),
        Check::new("the command that outlived its agent ran once", smoke == ["begun", "ended"], || {
            format!("it noted {smoke:?}")
        }),
    ]
}

/// Looks at what the lab saw.
pub fn of_the_lab(report: &Report) -> Vec<Check> {
    let silent: Vec<&str> = FAULTS
        .into_iter()
        .filter(|label| !report.steps.iter().any(|step| step.label == *label && step.fired))
        .collect();
    let unasked: Vec<&str> =
        report.steps.iter().filter(|step| step.asked == 0).map(|step| step.label.as_str()).collect();
    let complaints = report.complaints();
    vec![
        Check::new("each fault of the service happened", silent.is_empty(), || format!("not so: {silent:?}")),
        Check::new("every step of the script was asked for", unasked.is_empty(), || {
            format!("not asked: {unasked:?}")
        }),
        Check::new("the strict lab accepted every request", complaints.is_empty(), || complaints.join("; ")),
    ]
}

/// Reads the session's log with nobody's help: every checksum, and the chain from line to line.
pub fn of_the_log(project: &Project, session: &str) -> Check {
    let found = read_log(project, session);
    let is_so = found == Ok(Vec::new());
    Check::new("the session's log verifies to its last line", is_so, || match found {
        Ok(notices) => notices.join("; "),
        Err(why) => why,
    })
}

/// Returns what a reader of the log would have to be told.
fn read_log(project: &Project, session: &str) -> Result<Vec<String>, String> {
    let slugs = std::fs::read_dir(project.home().join("sessions")).map_err(|error| error.to_string())?;
    let folder = slugs
        .flatten()
        .map(|slug| slug.path().join(session))
        .find(|folder| !session.is_empty() && folder.is_dir())
        .ok_or_else(|| format!("there is no session {session:?}"))?;
    let (lines, findings) = yaoki::store::read_only(&yaoki::store::RealDisk, &folder, session)
        .map_err(|error| yaoki::error_chain(&error))?;
    match lines.len() {
        0 => Err("it is empty".to_owned()),
        _ => Ok(findings.notices()),
    }
}

#[cfg(test)]
mod tests {
    use yaoki_lab::StepReport;

    use super::*;

    fn wrong(checks: &[Check]) -> Vec<&'static str> {
        checks.iter().filter(|check| check.instead.is_some()).map(|check| check.what).collect()
    }

    #[test]
    fn an_untouched_world_fails_what_the_agent_should_have_done() {
        let project = Project::make().unwrap();
        assert_eq!(
            wrong(&of_the_world(&project)),
            [
                "the tests pass, run by ourselves",
                "one line of sum.sh is changed, nothing else",
                "the ledger has exactly one deploy",
                "the command that outlived its agent ran once",
            ]
        );
    }

    #[test]
    fn a_second_deploy_fails() {
        let project = Project::make().unwrap();
        std::fs::write(project.base().join("ledger"), "deployed\ndeployed\n").unwrap();
        assert!(wrong(&of_the_world(&project)).contains(&"the ledger has exactly one deploy"));
    }

    #[test]
    fn a_fault_that_never_fired_fails() {
        let step =
            |label: &str, fired| StepReport { label: label.into(), asked: 1, fired, ..StepReport::default() };
        let report = |cut| Report {
            steps: vec![step("overloaded", true), step("cut", cut), step("key refused", true)],
            ..Report::default()
        };
        assert_eq!(wrong(&of_the_lab(&report(true))), Vec::<&str>::new());
        assert_eq!(wrong(&of_the_lab(&report(false))), ["each fault of the service happened"]);
    }
}
