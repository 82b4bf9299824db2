//! `brewbench compare --baseline B --candidate C --fail-on RULE …`: prints what the server decided, and ends by it.

use std::{
    fmt::Write,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use brewbench_agent::connection::client::Fault;
use clap::Args;
use reqwest::{Method, StatusCode};

use super::table::{Align, cut, plain, table};
use crate::{
    baselines::{model::BaselineList, resolve::is_id},
    cli::{common::Common, connection::Connection, run::which::full_id},
    compare::comparability::Circumstance,
    experiments::model::ExperimentWithRuns,
    gate::{
        junit, markdown,
        model::{Check, Gate as Answer, More, Outcome},
        rule::Rule,
    },
    web::format::plural,
};

/// What the gate ends with on a regression.
const REGRESSION: u8 = 1;
/// What it ends with where nothing can be said, also because the server did not answer.
const CANNOT_SAY: u8 = 2;
/// What it ends with where it was not clear what was asked.
pub const USAGE: u8 = 64;

/// What only the gate needs.
#[derive(Clone, Debug, Args)]
pub struct Gate {
    /// What is to be judged against --baseline: a named baseline, an experiment, or runs, separated by commas
    #[arg(long, value_name = "C", conflicts_with_all = ["ids", "experiment", "runs_of", "min_effect", "by", "allow_confounders"], requires_all = ["baseline", "fail_on"])]
    pub candidate: Option<String>,
    /// Fail on a significant difference such as 'rps<-5%' or 'p99>10%'; may be given several times
    #[arg(long, value_name = "RULE", requires = "candidate")]
    fail_on: Vec<Rule>,
    /// The target of --baseline that is meant, name or name@version [default: the only one]
    #[arg(long, value_name = "TARGET", requires = "candidate")]
    baseline_target: Option<String>,
    /// The target of --candidate that is meant, name or name@version [default: the only one]
    #[arg(long, value_name = "TARGET", requires = "candidate")]
    candidate_target: Option<String>,
    /// Confounders to accept: agents, generators, engines, durations, warm-ups, limits, origins, environments or work
    #[arg(long, value_name = "WHAT", value_delimiter = ',', requires = "candidate")]
    accept: Vec<Circumstance>,
    /// Count suspect runs, too
    #[arg(long, requires = "candidate")]
    accept_suspect: bool,
    /// Add repetitions to the experiment of both sides until the gate passes or fails
    #[arg(long, requires = "candidate")]
    until_decided: bool,
    /// Most repetitions with --until-decided
    #[arg(long, value_name = "N", default_value_t = 20, requires = "until_decided")]
    max_repeat: usize,
    /// Write the answer as Markdown for a pull request; `-` is stdout
    #[arg(long, value_name = "FILE", requires = "candidate")]
    markdown: Option<PathBuf>,
    /// Write the answer as JUnit's XML; `-` is stdout
    #[arg(long, value_name = "FILE", requires = "candidate")]
    junit: Option<PathBuf>,
}

impl Gate {
    /// Decides and prints the answer. An error never exits as a regression does.
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
        let baseline = whole(&connection, baseline).await?;
        let candidate = whole(&connection, candidate).await?;
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
        // What goes to stdout as a file is not mixed with the table.
        let taken = [&self.markdown, &self.junit].into_iter().flatten().any(|file| is_stdout(file));
        if !taken {
            common.print(&gate, text)?;
        }
        Ok(gate.outcome)
    }
}

/// Adds repetitions to an experiment and waits until they have ended.
async fn extend(connection: &Connection, More { experiment, repetitions }: &More) -> anyhow::Result<()> {
    let path = format!("api/v1/experiments/{experiment}");
    eprintln!("brewbench: cannot say yet; measuring {} more", plural(*repetitions, "repetition"));
    let more = crate::experiments::model::More { repetitions: u32::try_from(*repetitions)? };
    let _: ExperimentWithRuns = connection.client.post(&format!("{path}/repetitions"), &more).await?;
    // The stream of its events ends with the experiment.
    let events = connection.client.request(Method::GET, &format!("{path}/events"));
    connection.client.send(events).await?.text().await?;
    Ok(())
}

/// Whether it was asked for what is not there or makes no sense.
fn is_usage(fault: &anyhow::Error) -> bool {
    match fault.downcast_ref::<Fault>() {
        Some(Fault::Refused { status, .. }) => {
            matches!(*status, StatusCode::NOT_FOUND | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::BAD_REQUEST)
        }
        Some(_) => false,
        None => fault.downcast_ref::<Unknown>().is_some(),
    }
}

/// A part of a side that is nothing that there is.
#[derive(Debug, thiserror::Error)]
#[error("no baseline is called {0:?}, and it is no experiment and no run: {1}")]
struct Unknown(String, String);

/// The same with full ids in place of the ends of ids.
async fn whole(connection: &Connection, side: &str) -> anyhow::Result<String> {
    let parts: Vec<&str> = side.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.iter().all(|part| is_id(part)) {
        return Ok(parts.join(","));
    }
    let known: BaselineList = connection.client.get("api/v1/baselines").await?;
    let mut whole = Vec::new();
    for part in parts {
        if is_id(part) || known.baselines.iter().any(|baseline| baseline.name == part) {
            whole.push(part.to_owned());
        } else {
            match full_id(connection, part).await {
                Ok(id) => whole.push(id.to_string()),
                Err(fault) if fault.downcast_ref::<Fault>().is_some() => return Err(fault),
                Err(fault) => return Err(Unknown(part.to_owned(), fault.to_string()).into()),
            }
        }
    }
    Ok(whole.join(","))
}

fn is_stdout(file: &Path) -> bool {
    file == Path::new("-")
}

/// Writes a file, or to stdout.
pub fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    if is_stdout(file) {
        return io::stdout().write_all(text.as_bytes()).context("stdout can't be written");
    }
    fs::write(file, text).with_context(|| format!("{} can't be written", file.display()))
}

fn text(gate: &Answer) -> String {
    let head = [
        ("rule", Align::Left),
        ("setting", Align::Left),
        ("baseline", Align::Right),
        ("candidate", Align::Right),
        ("difference", Align::Right),
        ("runs", Align::Right),
        ("", Align::Left),
    ];
    let row = |check: &Check| {
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
    let mut text = format!("{}\n\n", plain(&gate.headline));
    text.push_str(&table(&head, &gate.checks.iter().map(row).collect::<Vec<_>>()));
    for check in gate.checks.iter().filter(|check| check.outcome != Outcome::Fine) {
        let _ = writeln!(text, "! {} at {}: {}", check.rule, plain(&check.setting), plain(&check.reason));
    }
    for note in &gate.notes {
        let _ = writeln!(text, "! {}", plain(note));
    }
    let _ = writeln!(text, "{}", plain(&gate.url));
    text
}

/// What a command line that can't be understood ends with: 64 where it asks for a gate, so that a mistyped rule is
/// taken neither for a regression nor for a doubt.
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
    fn only_a_gate_that_is_not_understood_ends_with_64() {
        let code = |line: &str| usage_code(line.split(' ').map(str::to_owned), 2);
        assert_eq!(code("brewbench compare --baseline a --candidate b --fail-on x"), USAGE);
        assert_eq!(code("brewbench compare --fail-on=x"), USAGE);
        assert_eq!(code("brewbench compare"), 2);
        assert_eq!(code("brewbench run --candidate"), 2);
    }
}
