//! `--fail-on RULE …` of `brewbench compare` and `brewbench run new`: prints the server's decision and exits with it.

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
        picture,
        rule::Rule,
    },
    web::format::{self, plural},
};
use brewbench_io::client::Fault;
use clap::Args;
use reqwest::{Method, StatusCode};

use super::table::{cut, plain, table};
use crate::{common::Common, connection::Connection, run::which::id_of_either};

/// Exit code of a regression.
const REGRESSION: u8 = 1;
/// Exit code if the gate cannot say, or the server does not respond.
const CANNOT_SAY: u8 = 2;
/// Exit code of an invalid command line.
pub const USAGE: u8 = 64;

/// Flags that say on what a gate fails, and where its result goes.
#[derive(Clone, Debug, Args)]
pub struct GateRules {
    /// Fail on a difference significantly beyond a limit, e.g. 'rps<-5%' or 'p99>10%'; repeatable
    #[arg(long, value_name = "RULE")]
    pub fail_on: Vec<Rule>,
    /// Confounders to accept: agents, generators, engines, kinds, durations, warm-ups, limits, origins, setups,
    /// environments or work
    #[arg(long, value_name = "WHAT", value_delimiter = ',', requires = "fail_on")]
    accept: Vec<Circumstance>,
    /// Include suspect runs
    #[arg(long, requires = "fail_on")]
    accept_suspect: bool,
    /// Add repetitions to the experiment that contains both sides until the gate passes or fails
    #[arg(long, requires = "fail_on")]
    until_decided: bool,
    /// Write the result as Markdown for a pull request; `-` is stdout
    #[arg(long, value_name = "FILE", requires = "fail_on")]
    markdown: Option<PathBuf>,
    /// Write the result as JUnit XML; `-` is stdout
    #[arg(long, value_name = "FILE", requires = "fail_on")]
    junit: Option<PathBuf>,
    /// Write the differences and their intervals as SVG; `-` is stdout
    #[arg(long, value_name = "FILE", requires = "fail_on")]
    svg: Option<PathBuf>,
}

/// Query parameters that say what is compared.
pub type Sides = Vec<(&'static str, String)>;

/// Flags of the gate on runs that were measured before.
#[derive(Clone, Debug, Args)]
pub struct Gate {
    /// Candidate to compare with --baseline: a named baseline, an experiment, or run ids separated by commas
    #[arg(long, value_name = "C", conflicts_with_all = ["ids", "experiment", "runs_of", "min_effect", "by", "allow_confounders"], requires_all = ["baseline", "fail_on"])]
    pub candidate: Option<String>,
    /// Target of --baseline, as name or name@version [default: the only one]
    #[arg(long, value_name = "TARGET", requires = "candidate")]
    baseline_target: Option<String>,
    /// Target of --candidate, as name or name@version [default: the only one]
    #[arg(long, value_name = "TARGET", requires = "candidate")]
    candidate_target: Option<String>,
    /// On what it fails.
    #[command(flatten)]
    pub rules: GateRules,
    /// Maximum repetitions with --until-decided
    #[arg(long, value_name = "N", default_value_t = 20, requires = "until_decided")]
    max_repeat: usize,
}

impl Gate {
    /// Prints the decision. An error never exits with the code of a regression.
    pub async fn run(&self, common: &Common, baseline: &str, candidate: &str, primary: Option<&str>) -> ExitCode {
        exit_code(self.decide(common, baseline, candidate, primary).await)
    }

    async fn decide(
        &self,
        common: &Common,
        baseline: &str,
        candidate: &str,
        primary: Option<&str>,
    ) -> anyhow::Result<Outcome> {
        let connection = common.connect()?;
        let mut sides = Vec::new();
        for (role, side) in [("baseline", baseline), ("candidate", candidate)] {
            sides.push((role, with_full_ids(&connection, side).await?));
        }
        sides.extend(self.baseline_target.iter().map(|target| ("baseline_target", target.clone())));
        sides.extend(self.candidate_target.iter().map(|target| ("candidate_target", target.clone())));
        sides.extend(primary.map(|metric| ("primary", metric.to_owned())));
        self.rules.decide(common, &connection, sides, self.max_repeat).await
    }
}

impl GateRules {
    /// Decides, prints and writes the result.
    pub async fn decide(
        &self,
        common: &Common,
        connection: &Connection,
        sides: Sides,
        max_repeat: usize,
    ) -> anyhow::Result<Outcome> {
        let gate = self.ask(connection, sides, max_repeat).await?;
        let files = [
            (&self.markdown, markdown::text(&gate)),
            (&self.junit, junit::text(&gate)),
            (&self.svg, picture::svg(&gate)),
        ];
        // Does not mix a file on stdout with the table.
        let mut is_printed = true;
        for (file, text) in files.iter().filter_map(|(file, text)| Some((file.as_ref()?, text))) {
            write(file, text)?;
            is_printed &= !is_stdout(file);
        }
        if is_printed {
            common.print(&gate, text)?;
        }
        Ok(gate.outcome)
    }

    /// Asks the server, and adds repetitions if the flags say so.
    pub async fn ask(&self, connection: &Connection, sides: Sides, max_repeat: usize) -> anyhow::Result<Answer> {
        let mut query = sides;
        query.extend(self.fail_on.iter().map(|rule| ("fail_on", rule.to_string())));
        query.extend(self.accept.iter().map(|one| ("accept", one.as_str().to_owned())));
        query.extend(self.accept_suspect.then(|| ("accept_suspect", "true".to_owned())));
        query.extend(self.until_decided.then(|| ("max_repeat", max_repeat.to_string())));
        loop {
            let request = connection.client.request(Method::GET, "api/v1/compare/gate").query(&query);
            let gate: Answer = connection.client.json(request).await?;
            match &gate.more {
                Some(more) => extend(connection, more).await?,
                None => return Ok(gate),
            }
        }
    }
}

/// Returns the exit code of a decision, and prints an error. That never exits with the code of a regression.
pub fn exit_code(decided: anyhow::Result<Outcome>) -> ExitCode {
    match decided {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Regression) => ExitCode::from(REGRESSION),
        Ok(Outcome::CannotSay) => ExitCode::from(CANNOT_SAY),
        Err(fault) => failure(&fault),
    }
}

/// Prints an error. Returns its exit code, which is never that of a regression.
pub fn failure(fault: &anyhow::Error) -> ExitCode {
    eprintln!("brewbench: {fault:#}");
    ExitCode::from(if is_usage(fault) { USAGE } else { CANNOT_SAY })
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
        None => fault.is::<Unusable>() || fault.is::<clap::Error>(),
    }
}

/// An error of the command line, in a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub String);

/// Replaces shortened ids of runs and experiments with full ones, and `last`.
pub async fn with_full_ids(connection: &Connection, side: &str) -> anyhow::Result<String> {
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
            full.push(id_of(connection, part).await?);
        }
    }
    Ok(full.join(","))
}

/// Returns the full id of the experiment or run that ends with a text, or of the newest experiment for `last`.
async fn id_of(connection: &Connection, part: &str) -> anyhow::Result<String> {
    id_of_either(connection, part).await.map_err(|fault| {
        if fault.downcast_ref::<Fault>().is_some() {
            return fault;
        }
        Unusable(format!("no baseline, experiment or run matches {part:?}: {fault}")).into()
    })
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
    for note in gate.imported.iter().chain(&gate.notes) {
        let _ = writeln!(text, "! {}", plain(note));
    }
    let took = format::duration(Some(gate.measured_s()));
    let _ = writeln!(text, "runs took {}\n{}", plain(took.text()), plain(&gate.url));
    text
}

/// Returns the exit code of an invalid command line: 64 for a gate, so that a mistyped rule is not mistaken for a
/// regression.
pub fn usage_code(arguments: impl Iterator<Item = String>, otherwise: u8) -> u8 {
    let arguments: Vec<String> = arguments.skip(1).collect();
    let gates = |argument: &String| argument.starts_with("--candidate") || argument.starts_with("--fail-on");
    let is_gate = match arguments.first().map(String::as_str) {
        Some("bisect") => true,
        Some("compare") => arguments.iter().any(gates),
        Some("run") => arguments.get(1).is_some_and(|second| second == "new") && arguments.iter().any(gates),
        _ => false,
    };
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
        assert_eq!(code("brewbench bisect --good x"), USAGE);
        assert_eq!(code("brewbench compare"), 2);
        assert_eq!(code("brewbench run --candidate"), 2);
        assert_eq!(code("brewbench run new --target a --fail-on rps"), USAGE);
    }
}
