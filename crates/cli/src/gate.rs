//! `brewbench compare --baseline B --candidate C --fail-on RULE …`: prints the server's decision and exits with it.

use std::{
    fmt::Write,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use brewbench::{
    baselines::{model::BaselineList, resolve::is_id},
    compare::comparability::Circumstance,
    experiments::model::ExperimentWithRuns,
    gate::{
        junit, markdown,
        model::{Gate as Answer, MissingRepetitions, Outcome, RuleCheck},
        rule::Rule,
    },
    web::format::plural,
};
use brewbench_io::client::Fault;
use clap::Args;
use reqwest::{Method, StatusCode};

use super::table::{cut, plain, table};
use crate::{common::Common, connection::Connection, run::which::full_id};

/// Exit code of a regression.
const REGRESSION: u8 = 1;
/// Exit code if the gate cannot say, or the server does not respond.
const CANNOT_SAY: u8 = 2;
/// Exit code of an invalid command line.
pub const USAGE: u8 = 64;

/// Flags of the gate.
#[derive(Clone, Debug, Args)]
pub struct Gate {
    /// Candidate to compare with --baseline: a named baseline, an experiment, or run ids separated by commas
    #[arg(long, value_name = "C", conflicts_with_all = ["ids", "experiment", "runs_of", "min_effect", "by", "allow_confounders"], requires_all = ["baseline", "fail_on"])]
    pub candidate: Option<String>,
    /// Fail on a difference significantly beyond a limit, e.g. 'rps<-5%' or 'p99>10%'; repeatable
    #[arg(long, value_name = "RULE", requires = "candidate")]
    fail_on: Vec<Rule>,
    /// Target of --baseline, as name or name@version [default: the only one]
    #[arg(long, value_name = "TARGET", requires = "candidate")]
    baseline_target: Option<String>,
    /// Target of --candidate, as name or name@version [default: the only one]
    #[arg(long, value_name = "TARGET", requires = "candidate")]
    candidate_target: Option<String>,
    /// Confounders to accept: agents, generators, engines, kinds, durations, warm-ups, limits, origins, setups,
    /// environments or work
    #[arg(long, value_name = "WHAT", value_delimiter = ',', requires = "candidate")]
    accept: Vec<Circumstance>,
    /// Include suspect runs
    #[arg(long, requires = "candidate")]
    accept_suspect: bool,
    /// Add repetitions to the experiment that contains both sides until the gate passes or fails
    #[arg(long, requires = "candidate")]
    until_decided: bool,
    /// Maximum repetitions with --until-decided
    #[arg(long, value_name = "N", default_value_t = 20, requires = "until_decided")]
    max_repeat: usize,
    /// Write the result as Markdown for a pull request; `-` is stdout
    #[arg(long, value_name = "FILE", requires = "candidate")]
    markdown: Option<PathBuf>,
    /// Write the result as JUnit XML; `-` is stdout
    #[arg(long, value_name = "FILE", requires = "candidate")]
    junit: Option<PathBuf>,
}

impl Gate {
    /// Prints the decision. An error never exits with the code of a regression.
    pub async fn run(&self, common: &Common, baseline: &str, candidate: &str, primary: Option<&str>) -> ExitCode {
        match self.decide(common, baseline, candidate, primary).await {
            Ok(Outcome::Fine) => ExitCode::SUCCESS,
            Ok(Outcome::Regression) => ExitCode::from(REGRESSION),
            Ok(Outcome::CannotSay) => ExitCode::from(CANNOT_SAY),
            Err(fault) => {
                eprintln!("brewbench: {fault:#}");
                ExitCode::from(if is_usage(&fault) { USAGE } else { CANNOT_SAY })
            }
        }
    }

    async fn decide(
        &self,
        common: &Common,
        baseline: &str,
        candidate: &str,
        primary: Option<&str>,
    ) -> anyhow::Result<Outcome> {
        let connection = common.connect()?;
        let baseline = with_full_ids(&connection, baseline).await?;
        let candidate = with_full_ids(&connection, candidate).await?;
        let mut query = vec![("baseline", baseline), ("candidate", candidate)];
        query.extend(self.fail_on.iter().map(|rule| ("fail_on", rule.to_string())));
        query.extend(self.baseline_target.iter().map(|target| ("baseline_target", target.clone())));
        query.extend(self.candidate_target.iter().map(|target| ("candidate_target", target.clone())));
        query.extend(self.accept.iter().map(|one| ("accept", one.as_str().to_owned())));
        query.extend(self.accept_suspect.then(|| ("accept_suspect", "true".to_owned())));
        query.extend(primary.map(|metric| ("primary", metric.to_owned())));
        query.extend(self.until_decided.then(|| ("max_repeat", self.max_repeat.to_string())));
        let gate = loop {
            let request = connection.client.request(Method::GET, "api/v1/compare/gate").query(&query);
            let gate: Answer = connection.client.json(request).await?;
            match &gate.more {
                Some(more) => extend(&connection, more).await?,
                None => break gate,
            }
        };
        if let Some(file) = &self.markdown {
            write(file, &markdown::text(&gate))?;
        }
        if let Some(file) = &self.junit {
            write(file, &junit::text(&gate))?;
        }
        // Does not mix a file on stdout with the table.
        let stdout_is_taken = [&self.markdown, &self.junit].into_iter().flatten().any(|file| is_stdout(file));
        if !stdout_is_taken {
            common.print(&gate, text)?;
        }
        Ok(gate.outcome)
    }
}

/// Adds repetitions to an experiment and waits until they have ended.
async fn extend(
    connection: &Connection,
    MissingRepetitions { experiment, repetitions }: &MissingRepetitions,
) -> anyhow::Result<()> {
    let path = format!("api/v1/experiments/{experiment}");
    eprintln!("brewbench: cannot say yet; measuring {} more", plural(*repetitions, "repetition"));
    let more = brewbench::experiments::model::AddRepetitions { repetitions: u32::try_from(*repetitions)? };
    let _: ExperimentWithRuns = connection.client.post(&format!("{path}/repetitions"), &more).await?;
    // The stream of its events ends with the experiment.
    let events = connection.client.request(Method::GET, &format!("{path}/events"));
    connection.client.send(events).await?.text().await?;
    Ok(())
}

/// Whether the error is one of the command line: unknown or invalid arguments.
fn is_usage(fault: &anyhow::Error) -> bool {
    match fault.downcast_ref::<Fault>() {
        Some(Fault::Refused { status, .. }) => {
            matches!(*status, StatusCode::NOT_FOUND | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::BAD_REQUEST)
        }
        Some(_) => false,
        None => fault.downcast_ref::<Unknown>().is_some(),
    }
}

/// A side that names nothing on the server.
#[derive(Debug, thiserror::Error)]
#[error("no baseline, experiment or run matches {0:?}: {1}")]
struct Unknown(String, String);

/// Replaces shortened run ids with full ones.
async fn with_full_ids(connection: &Connection, side: &str) -> anyhow::Result<String> {
    let parts: Vec<&str> = side.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.iter().all(|part| is_id(part)) {
        return Ok(parts.join(","));
    }
    let known: BaselineList = connection.client.get("api/v1/baselines").await?;
    let mut full = Vec::new();
    for part in parts {
        if is_id(part) || known.baselines.iter().any(|baseline| baseline.name == part) {
            full.push(part.to_owned());
        } else {
            match full_id(connection, part).await {
                Ok(id) => full.push(id.to_string()),
                Err(fault) if fault.downcast_ref::<Fault>().is_some() => return Err(fault),
                Err(fault) => return Err(Unknown(part.to_owned(), fault.to_string()).into()),
            }
        }
    }
    Ok(full.join(","))
}

fn is_stdout(file: &Path) -> bool {
    file == Path::new("-")
}

/// Writes to a file, or to stdout for `-`.
pub fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    if is_stdout(file) {
        return io::stdout().write_all(text.as_bytes()).context("cannot write to stdout");
    }
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn text(gate: &Answer) -> String {
    let head = ["rule", "setting", ">baseline", ">candidate", ">difference", ">runs", ""];
    let row = |check: &RuleCheck| {
        let [base, new] = check.repetitions;
        vec![
            check.rule.clone(),
            cut(&check.setting, 30),
            check.figure(check.baseline),
            check.figure(check.candidate),
            check.difference(),
            format!("{base}/{new}"),
            check.outcome.sign().to_owned(),
        ]
    };
    let mut text = format!("{}\n{}\n\n", plain(&gate.headline), plain(&gate.title));
    text.push_str(&table(&head, &gate.checks, row));
    for check in gate.checks.iter().filter(|check| check.outcome != Outcome::Fine) {
        let _ = writeln!(text, "! {} at {}: {}", check.rule, plain(&check.setting), plain(&check.reason));
    }
    for note in &gate.notes {
        let _ = writeln!(text, "! {}", plain(note));
    }
    let _ = writeln!(text, "{}", plain(&gate.url));
    text
}

/// Returns the exit code of an invalid command line: 64 for a gate, so that a mistyped rule is not mistaken for a
/// regression.
pub fn usage_code(arguments: impl Iterator<Item = String>, otherwise: u8) -> u8 {
    let arguments: Vec<String> = arguments.skip(1).collect();
    let gates = |argument: &String| argument.starts_with("--candidate") || argument.starts_with("--fail-on");
    let is_gate = arguments.first().is_some_and(|command| command == "compare") && arguments.iter().any(gates);
    if is_gate { USAGE } else { otherwise }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_invalid_gate_command_exits_with_64() {
        let code = |line: &str| usage_code(line.split(' ').map(str::to_owned), 2);
        assert_eq!(code("brewbench compare --baseline a --candidate b --fail-on x"), USAGE);
        assert_eq!(code("brewbench compare --fail-on=x"), USAGE);
        assert_eq!(code("brewbench compare"), 2);
        assert_eq!(code("brewbench run --candidate"), 2);
    }
}
