//! `brewbench bisect`: finds the commit that made a target worse, by measuring commits beside the good end.
//!
//! Each step is an experiment with the label `bisect`, whose note is this command. A search that was interrupted goes on
//! with the experiments that it finds.

mod history;

use std::{fmt::Write, path::PathBuf, process::ExitCode};

use anyhow::bail;
use brewbench::{
    compare::metric::Metric,
    experiments::{
        model::{ExperimentList, ExperimentWithRuns},
        plan::Plan,
    },
    gate::{
        bisection::{Finding, Next, Search},
        model::{Gate, Outcome},
        rule::Rule,
    },
    metrics,
    runs::model::{NoteText, Run},
    web::{command_line::quoted, format::plural},
};
use brewbench_wire::{Phase, manifest::source::revision_fault};
use clap::{Args, builder::PossibleValuesParser};
use reqwest::Method;
use serde::Serialize;

use self::history::Commit;
use crate::{
    common::Common,
    connection::Connection,
    gate::{Unusable, failure},
    progress,
    run::new::{Measured, New, submit},
    table::plain,
};

/// Label of the experiments.
const LABEL: &str = "bisect";

/// Exit code if the bad end is not worse than the good one.
const NOT_WORSE: u8 = 1;
/// Exit code if it can't be decided which commit it is.
const UNDECIDED: u8 = 2;

/// Find the commit that made a target worse.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct Bisect {
    #[command(flatten)]
    common: Common,
    /// A target that an agent builds from the repository
    #[arg(long)]
    target: String,
    /// A commit, tag or branch that is good
    #[arg(long, value_name = "REVISION")]
    good: String,
    /// A later one that is worse
    #[arg(long, value_name = "REVISION")]
    bad: String,
    /// The metric that is worse
    #[arg(long, value_parser = PossibleValuesParser::new(metrics::compared().map(Metric::short_key)))]
    metric: String,
    /// How much worse than the good end the commit is, e.g. 5%; about half of the whole difference
    #[arg(long, value_name = "PERCENT")]
    worse: String,
    /// A clone of the repository, for its history
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    repository: PathBuf,
    /// Flags of `run new` after `--`: sizes, scenario, load and repetitions
    #[arg(last = true, required = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

const AFTER: &str = "\
Example:
  brewbench bisect --target api --good v1.2 --bad main --metric p99 --worse 5% \\
      -- --size 1/1GiB --scenario hash --vus 10 --duration 10s

Repetitions are added to a step until it is decided, up to --max-repeat. The
same command goes on with a search that was interrupted.

Exit codes:
  0   found
  1   the bad end is not worse
  2   undecided, with the commits that are left, or no response
  64  invalid command line, or an unknown commit";

/// The end of a search.
#[derive(Debug, Serialize)]
struct Report {
    /// The commit that was found; null if none was.
    found: Option<Line>,
    /// The commits that are left if none was found.
    left: Vec<Line>,
    /// Why none was found.
    reason: Option<&'static str>,
    /// What was measured, in order.
    steps: Vec<Step>,
}

/// A commit in a report.
#[derive(Clone, Debug, Serialize)]
struct Line {
    commit: String,
    subject: String,
}

/// A comparison of two commits.
#[derive(Debug, Serialize)]
struct Step {
    base: String,
    commit: String,
    outcome: Option<Outcome>,
    reason: String,
    url: String,
}

/// A search in progress.
struct Bisection<'a> {
    connection: &'a Connection,
    settings: &'a Bisect,
    commits: Vec<Commit>,
    rule: Rule,
    /// The command, as the note of its experiments.
    command: String,
    steps: Vec<Step>,
}

impl Bisect {
    /// Runs the command.
    pub async fn run(self) -> ExitCode {
        self.search().await.map_or_else(|fault| failure(&fault), ExitCode::from)
    }

    async fn search(self) -> anyhow::Result<u8> {
        let rule = rule(&self.metric, &self.worse)?;
        if let Some(fault) = revision_fault(&self.target) {
            return Err(Unusable(format!("--target {:?}: {fault}", self.target)).into());
        }
        let commits = history::commits(&self.repository, &self.good, &self.bad).await;
        let commits = commits.map_err(|fault| Unusable(format!("{fault:#}")))?;
        let connection = self.common.connect()?;
        let command = self.command(&commits);
        let settings = &self;
        let mut bisection = Bisection { connection: &connection, settings, commits, rule, command, steps: Vec::new() };
        let end = bisection.search().await?;
        let (report, code) = bisection.report(&end);
        self.common.print(&report, |report| text(report, &self))?;
        Ok(code)
    }

    /// Returns the command with the commits that the revisions mean now.
    fn command(&self, commits: &[Commit]) -> String {
        let Self { target, metric, worse, flags, .. } = self;
        let [good, bad] =
            [commits.first(), commits.last()].map(|commit| commit.map_or("", |commit| commit.id.as_str()));
        let flags: Vec<String> = flags.iter().map(|flag| quoted(flag)).collect();
        format!(
            "brewbench bisect --target {} --good {good} --bad {bad} --metric {metric} --worse {} -- {}",
            quoted(target),
            quoted(worse),
            flags.join(" ")
        )
    }
}

/// Returns the rule that a worse commit breaks.
fn rule(metric: &str, worse: &str) -> anyhow::Result<Rule> {
    let fault = |fault: String| Unusable(format!("--worse: {fault}"));
    // One of the two directions is that of a worse figure.
    let [more, less] = [format!("{metric}>{worse}"), format!("{metric}<-{worse}")].map(|text| text.parse::<Rule>());
    Ok(more.or_else(|first| less.map_err(|_| first)).map_err(fault)?)
}

impl Bisection<'_> {
    /// Measures until the search ends.
    async fn search(&mut self) -> anyhow::Result<Next> {
        let mut search = Search::new(self.commits.len());
        let last = self.commits.len() - 1;
        loop {
            let next = search.next();
            if matches!(next, Next::Measure(_) | Next::Confirm(_)) {
                eprintln!("{}", self.forecast(&search)?);
            }
            match next {
                Next::Measure(commit) if self.steps.is_empty() && commit != last => {
                    // A duet has two targets.
                    let is_duet = self.plan(0, last)?.duet;
                    let commits = if is_duet { vec![0, last] } else { vec![0, commit, last] };
                    let measured = self.measure(&commits).await?;
                    search.note(last, self.judge(&measured, 0, last).await?);
                    if !is_duet {
                        search.note(commit, self.judge(&measured, 0, commit).await?);
                    }
                }
                Next::Measure(commit) => {
                    let measured = self.measure(&[0, commit]).await?;
                    search.note(commit, self.judge(&measured, 0, commit).await?);
                }
                Next::Confirm(commit) => {
                    let measured = self.measure(&[commit - 1, commit]).await?;
                    search.confirm(match self.judge(&measured, commit - 1, commit).await? {
                        Finding::Judged(outcome) => outcome,
                        Finding::NoResult => Outcome::CannotSay,
                    });
                }
                end => return Ok(end),
            }
        }
    }

    /// Says what is left: commits, steps and runs.
    fn forecast(&self, search: &Search) -> anyhow::Result<String> {
        let ((low, high), steps) = (search.range(), search.steps());
        let plan = self.plan(low, high)?;
        let settings = plan.sizes.len().max(1) * plan.loads.len().max(1) * usize::try_from(plan.repetitions)?;
        // The bad end is measured, too: with the first step, or before it.
        let more = if self.steps.is_empty() && high > 1 { 1 + usize::from(plan.duet) } else { 0 };
        let runs = settings * (2 * steps + more);
        let [left, steps] = [plural(high - low, "commit"), plural(steps, "step")];
        Ok(format!("{left} to choose from: at most {steps} and {}, more where it is close", plural(runs, "run")))
    }

    /// Returns the plan that compares two commits.
    fn plan(&self, base: usize, commit: usize) -> anyhow::Result<Plan> {
        New::of(&[self.target(base), self.target(commit)], &self.rule, &self.settings.flags)?.plan()
    }

    fn target(&self, commit: usize) -> String {
        format!("{}@{}", self.settings.target, self.commits[commit].id)
    }

    /// Measures commits in one experiment, or finds the one that did.
    async fn measure(&self, commits: &[usize]) -> anyhow::Result<Measured> {
        let targets: Vec<String> = commits.iter().map(|commit| self.target(*commit)).collect();
        let new = New::of(&targets, &self.rule, &self.settings.flags)?;
        let (plan, rules) = new.planned(self.connection).await?;
        let client = &self.connection.client;
        let earlier = self.earlier(&targets).await?;
        let created = if let Some(earlier) = earlier { earlier } else { self.submit(plan).await? };
        let ended = progress::wait(client, &created.experiment.id).await?;
        Ok(Measured { ended, rules })
    }

    /// Submits a step, so that it can be found again.
    async fn submit(&self, plan: Plan) -> anyhow::Result<ExperimentWithRuns> {
        let client = &self.connection.client;
        let created = submit(self.connection, plan).await?;
        let path = format!("api/v1/experiments/{}", created.experiment.id);
        let label = client.request(Method::PUT, &format!("{path}/labels/{LABEL}"));
        let _: ExperimentWithRuns = client.json(label).await?;
        let note = NoteText { note: self.command.clone() };
        Ok(client.json(client.request(Method::PUT, &format!("{path}/note")).json(&note)).await?)
    }

    /// Finds the experiment of an interrupted search that measured these targets.
    async fn earlier(&self, targets: &[String]) -> anyhow::Result<Option<ExperimentWithRuns>> {
        let client = &self.connection.client;
        let request = client.request(Method::GET, "api/v1/experiments").query(&[("label", LABEL), ("limit", "200")]);
        let list: ExperimentList = client.json(request).await?;
        let is_it =
            |note: &Option<String>, planned: &[String]| note.as_ref() == Some(&self.command) && planned == targets;
        let found =
            list.experiments.into_iter().find(|info| is_it(&info.experiment.note, &info.experiment.plan.targets));
        let Some(found) = found else { return Ok(None) };
        let experiment: ExperimentWithRuns = client.get(&format!("api/v1/experiments/{}", found.experiment.id)).await?;
        // What was interrupted is measured again.
        let is_whole = experiment.runs.iter().all(|run| !matches!(run.phase, Phase::Cancelled | Phase::Lost));
        Ok(is_whole.then_some(experiment))
    }

    /// Judges a commit by another one of an experiment.
    async fn judge(&mut self, measured: &Measured, base: usize, commit: usize) -> anyhow::Result<Finding> {
        let [of_base, of_commit] = [self.target(base), self.target(commit)];
        let gate: Gate = measured.gate(self.connection, &of_base, &of_commit).await?;
        let runs = |target: &str| -> Vec<&Run> {
            measured.ended.runs.iter().filter(|run| run.spec.target == target).collect()
        };
        let (base_runs, runs) = (runs(&of_base), runs(&of_commit));
        let of_another = |runs: &[&Run], commit: usize| {
            let id = Some(self.commits[commit].id.as_str());
            runs.iter().any(|run| run.has_result() && run.version.as_deref() != id)
        };
        if of_another(&base_runs, base) || of_another(&runs, commit) {
            bail!("{of_base} or {of_commit} is another commit for the agent: a branch or tag is named like its id");
        }
        let failure = |runs: &[&Run]| runs.iter().find_map(|run| run.error.clone()).unwrap_or_default();
        if !base_runs.iter().any(|run| run.has_result()) {
            bail!("{of_base} has no result to compare with: {}", failure(&base_runs));
        }
        let has_result = runs.iter().any(|run| run.has_result());
        if !has_result && runs.iter().any(|run| matches!(run.phase, Phase::Cancelled | Phase::Lost)) {
            bail!("the measurement of {of_commit} was interrupted; the same command goes on");
        }
        let decisive = gate.checks.iter().find(|check| check.outcome == gate.outcome);
        let judged = || decisive.map_or_else(|| gate.headline.clone(), |check| check.reason.clone());
        let reason = if has_result { judged() } else { failure(&runs) };
        let sign = if has_result { gate.outcome.sign() } else { "no result" };
        let Commit { id, subject } = &self.commits[commit];
        eprintln!("{sign}: {id} {}\n  {}", plain(subject), plain(&reason));
        let outcome = has_result.then_some(gate.outcome);
        let [base, commit] = [base, commit].map(|at| self.commits[at].id.clone());
        self.steps.push(Step { base, commit, outcome, reason, url: gate.url });
        Ok(outcome.map_or(Finding::NoResult, Finding::Judged))
    }

    fn line(&self, commit: usize) -> Line {
        let Commit { id, subject } = self.commits[commit].clone();
        Line { commit: id, subject }
    }

    /// Returns what to print, and the exit code.
    fn report(&mut self, end: &Next) -> (Report, u8) {
        let steps = std::mem::take(&mut self.steps);
        let none = Report { found: None, left: Vec::new(), reason: None, steps };
        match end {
            Next::Found(commit) => (Report { found: Some(self.line(*commit)), ..none }, 0),
            Next::Undecided(left, reason) => {
                let left = left.iter().map(|commit| self.line(*commit)).collect();
                (Report { left, reason: Some(reason.text()), ..none }, UNDECIDED)
            }
            Next::NotWorse | Next::Measure(_) | Next::Confirm(_) => (none, NOT_WORSE),
        }
    }
}

/// Formats the end of a search.
fn text(report: &Report, settings: &Bisect) -> String {
    let Report { found, left, reason, steps } = report;
    let Bisect { metric, worse, good, bad, .. } = settings;
    let mut text = match (found, reason) {
        (Some(Line { commit, subject }), _) => {
            format!("found: since {commit}, {metric} is worse by more than {worse}\n  {}\n", plain(subject))
        }
        (None, Some(reason)) => format!("undecided between {}: {reason}\n", plural(left.len(), "commit")),
        (None, None) => format!("{bad} is not worse than {good} by more than {worse}\n"),
    };
    for Line { commit, subject } in left {
        let _ = writeln!(text, "  {commit} {}", plain(subject));
    }
    if let Some(Step { base, commit, reason, url, .. }) = steps.last() {
        let _ = writeln!(text, "{commit} against {base}: {}\n{url}", plain(reason));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worse_is_the_direction_of_the_metric() {
        let rule = |metric: &str, worse: &str| rule(metric, worse).map(|rule| rule.to_string());
        assert_eq!(rule("p99", "5%").expect("a rule"), "p99>5%");
        assert_eq!(rule("rps", "10%").expect("a rule"), "rps<-10%");
        for bad in ["5", "-5%", "much"] {
            let fault = rule("p99", bad).expect_err("no rule").to_string();
            assert!(fault.starts_with("--worse: "), "{bad}: {fault}");
        }
    }
}
