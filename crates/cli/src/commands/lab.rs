//! `yaoki lab`: the scripted model server, for one's own tests.

use yaoki_lab::Lab;
use yaoki_lab::serve::Server;

use super::block_on;
use crate::args::{Cli, Command, LabCommand};
use crate::exit::{CliError, ENDED_BADLY, GOOD};
use crate::launch::load_script;
use crate::out;
use crate::signals::Signals;

pub fn run(cli: Cli) -> Result<u8, CliError> {
    let Some(Command::Lab(args)) = cli.command else { unreachable!("the row is chosen by the command") };
    match args.command {
        LabCommand::Schema => {
            out::print(&format!("{:#}\n", yaoki_lab::script_schema()))?;
            Ok(GOOD)
        }
        LabCommand::Serve { script, port } => {
            let script = load_script(&script)?;
            block_on(serve(Lab::new(script), port))
        }
    }
}

/// Serves until a signal, then reports. 1 if the script has something to complain about.
async fn serve(lab: Lab, port: u16) -> Result<u8, CliError> {
    let mut signals = Signals::new()?;
    let server = Server::start(lab, &format!("127.0.0.1:{port}")).await.map_err(|error| {
        CliError::environment(
            format_args!("cannot listen on port {port}: {error}"),
            "leave --port out to take a free one",
        )
    })?;
    out::print(&format!("ANTHROPIC_BASE_URL={}\n", server.url()))?;
    signals.next().await;
    let report = server.report();
    let complaints = report.complaints();
    let json = serde_json::to_string_pretty(&report).expect("a report is plain data");
    out::print(&format!("{json}\n"))?;
    complaints.iter().for_each(|complaint| out::stderr(&format!("! {complaint}")));
    server.shutdown().await;
    Ok(if complaints.is_empty() { GOOD } else { ENDED_BADLY })
}
