//! `brewbench run new`

use std::process::ExitCode;

use anyhow::bail;
use brewbench::{
    app::ids::ExperimentId,
    experiments::{
        model::ExperimentWithRuns,
        plan::{DUET_REPETITIONS, Plan, default_repetitions, default_retries, share},
        stopping_rule::StoppingRule,
    },
    gate::{
        model::{Gate, Outcome},
        rule::Rule,
    },
    web::format::plural,
};
use brewbench_io::client::Client;
use clap::{ArgGroup, Args, Parser, ValueEnum};
use tokio::signal::{
    ctrl_c,
    unix::{SignalKind, signal},
};

use crate::{
    common::{Common, pair},
    connection::Connection,
    duration,
    exit_code::judge,
    experiment,
    gate::{GateRules, Sides, Unusable, exit_code, with_full_ids},
    progress,
    run::{field_flags::FieldFlags, load_flags::LoadFlags},
    table,
};

const DEFAULT_SCENARIO: &str = "hash";

/// [`brewbench::experiments::plan::PROFILED_REPETITIONS`] as the value of a flag.
const PROFILED: &str = "4";

/// Submit runs; with --fail-on, measure a candidate beside its baseline and pass or fail it.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, group = ArgGroup::new("until").args(["until_ci", "until_decided"]))]
pub struct New {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    plan: PlanFlags,
    #[command(flatten, next_help_heading = "Gate: waits, and judges the second of two targets")]
    gate: GateRules,
    /// Wait until all runs have ended; exit with 3 if one failed, was lost or is invalid
    #[arg(long)]
    wait: bool,
}

const EXIT_CODES: &str = "\
Exit codes with --fail-on:
  0   passed: every confidence interval lies within its rule's limit
  1   regression: a difference significantly beyond a rule's limit
  2   cannot say: wide intervals, failed runs, or no response
  64  invalid command line or plan";

/// The settings of new runs.
#[derive(Debug, Args)]
pub struct PlanFlags {
    /// Name of a target; repeatable
    #[arg(long = "target", value_name = "TARGET", required = true)]
    targets: Vec<String>,
    /// Measure this baseline again, interleaved with the targets: a baseline, or the id of an experiment or run. Its
    /// sizes, scenario, parameters and load are the defaults
    #[arg(long, value_name = "BASELINE", conflicts_with = "knee")]
    against: Option<String>,
    /// Name of a machine size, or its short form, like 2/4GiB or 3x2/4GiB; repeatable
    #[arg(long = "size", value_name = "SIZE", required_unless_present = "against")]
    sizes: Vec<String>,
    /// Name of a scenario [default: hash, or the baseline's scenario]
    #[arg(long)]
    scenario: Option<String>,
    /// A parameter of the scenario; repeatable
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = pair)]
    parameters: Vec<(String, String)>,
    #[command(flatten, next_help_heading = "Load")]
    load: LoadFlags,
    #[command(flatten, next_help_heading = "Load")]
    fields: FieldFlags,
    /// Repetitions of each cell; with --knee: half of the runs near the knee [default: 5; with --duet: 12]
    #[arg(long, value_name = "N", help_heading = "Repetitions")]
    repeat: Option<u32>,
    /// Profile each cell in N more repetitions after the measured ones; N is 4 if omitted
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = PROFILED, conflicts_with = "knee", help_heading = "Repetitions")]
    profile: Option<u32>,
    /// Add repetitions until each 95 % interval of throughput relative to the first target is narrower, e.g. 2%
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with_all = ["knee", "until_decided"], help_heading = "Repetitions")]
    until_ci: Option<f64>,
    /// Maximum repetitions with --until-ci and --until-decided
    #[arg(long, value_name = "N", default_value_t = 20, requires = "until", help_heading = "Repetitions")]
    max_repeat: u32,
    /// Retries of a repetition whose run failed, was lost or is invalid [default: 1]
    #[arg(long, value_name = "N", help_heading = "Repetitions")]
    retries: Option<u32>,
    /// Seed that shuffles the order of the runs [default: random, shown with the experiment]
    #[arg(long, value_name = "N", help_heading = "Repetitions")]
    seed: Option<u32>,
    /// Run on this agent only [default: any capable agent]
    #[arg(long, help_heading = "Where")]
    agent: Option<String>,
    /// Run on agents with this label only [default: any capable agent]
    #[arg(long, value_name = "LABEL", conflicts_with = "agent", help_heading = "Where")]
    agent_label: Option<String>,
    /// Spread complete repetitions over several agents [default: all runs on one agent]
    #[arg(long, conflicts_with_all = ["agent", "generators", "until_ci", "knee"], help_heading = "Where")]
    spread: bool,
    /// Generate the load on this agent instead of the target's; repeatable, for equal shares of the load
    #[arg(long = "load-from", value_name = "AGENT", help_heading = "Where")]
    generators: Vec<String>,
    /// Generate the load in Pods of the agent's cluster: kubernetes
    #[arg(
        long,
        value_name = "WHERE",
        requires = "cluster_generators",
        conflicts_with = "generators",
        help_heading = "Where"
    )]
    load_on: Option<GeneratorPlace>,
    /// Number of these Pods, for equal shares of the load
    #[arg(long = "generators", value_name = "N", requires = "load_on", help_heading = "Where")]
    cluster_generators: Option<u32>,
    /// Name of the experiment
    #[arg(long)]
    name: Option<String>,
}

/// Where the load is generated, if not by an agent.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum GeneratorPlace {
    Kubernetes,
}

impl PlanFlags {
    /// Returns the plan of the flags.
    fn plan(self) -> anyhow::Result<Plan> {
        let Self { targets, against, sizes, scenario, parameters, load, fields, repeat, until_ci, .. } = self;
        let Self { max_repeat, retries, seed, agent, agent_label, spread, name, profile, .. } = self;
        let Self { generators, cluster_generators, .. } = self;
        // Without load flags, the baseline's load applies, else the script's own.
        let uses_baseline_load = against.is_some() && !load.is_given();
        let (loads, knee) = if uses_baseline_load { (Vec::new(), None) } else { load.how_hard()? };
        let default_scenario = || if against.is_some() { String::new() } else { DEFAULT_SCENARIO.to_owned() };
        let plan = Plan {
            name,
            targets,
            scenario: scenario.unwrap_or_else(default_scenario),
            against,
            sizes,
            parameters: parameters.into_iter().collect(),
            loads,
            knee,
            repetitions: repeat.unwrap_or_default(),
            profiled_repetitions: profile.unwrap_or_default(),
            stopping_rule: until_ci.map(|narrower_than| StoppingRule { narrower_than, at_most: max_repeat }),
            retries: retries.unwrap_or_else(default_retries),
            seed,
            agent,
            agent_label,
            spread,
            cluster_generators: cluster_generators.unwrap_or_default(),
            generators,
            ..Plan::default()
        };
        let plan = fields.set(plan)?;
        let usual = if plan.duet { DUET_REPETITIONS } else { default_repetitions() };
        Ok(Plan { repetitions: repeat.unwrap_or(usual), ..plan })
    }
}

impl New {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        if !self.gate.fail_on.is_empty() {
            return Ok(exit_code(self.judge().await));
        }
        let Self { common, plan, wait, gate: _ } = self;
        let connection = common.connect()?;
        let created = submit(&connection, with_known(plan.plan()?, &connection).await?).await?;
        if !wait {
            common.print(&created, |created| table::runs(&created.runs))?;
            return Ok(ExitCode::SUCCESS);
        }
        let ended = progress::wait(&connection.client, &created.experiment.id).await?;
        common.print(&ended, |ended| experiment::decisions(ended) + &table::runs(&ended.runs))?;
        Ok(judge(&ended))
    }

    /// Measures two targets in turn, and judges the second by the first.
    async fn judge(self) -> anyhow::Result<Outcome> {
        let common = self.common.clone();
        let connection = common.connect()?;
        let (plan, rules) = self.planned(&connection).await?;
        if plan.knee.is_some() {
            return Err(
                Unusable("--fail-on can't be combined with --knee, which judges each target alone".to_owned()).into()
            );
        }
        if plan.against.is_none() {
            two_targets(&plan)?;
        }
        let created = submit(&connection, plan).await?;
        let id = &created.experiment.id;
        let [baseline, candidate] = match two_targets(&created.experiment.plan) {
            Ok(targets) => targets,
            Err(fault) => {
                let path = format!("api/v1/experiments/{id}/cancel");
                let _: ExperimentWithRuns = connection.client.post(&path, &()).await?;
                return Err(fault.into());
            }
        };
        let sides = sides(id, baseline, candidate);
        or_cancel(&connection.client, id, async {
            progress::wait(&connection.client, id).await?;
            rules.gate.decide(&common, &connection, sides, rules.max_repeat).await
        })
        .await
    }

    /// Returns the command that measures targets with a rule and further flags, and adds repetitions until it is decided.
    pub fn of(targets: &[String], rule: &Rule, flags: &[String]) -> anyhow::Result<Self> {
        #[derive(Parser)]
        #[command(name = "brewbench run new", no_binary_name = true)]
        struct Line {
            #[command(flatten)]
            new: New,
        }
        let mut words: Vec<String> =
            targets.iter().flat_map(|target| ["--target".to_owned(), target.clone()]).collect();
        words.extend(["--fail-on".to_owned(), rule.to_string()]);
        let is_given = flags.iter().any(|flag| flag == "--until-decided");
        words.extend((!is_given).then(|| "--until-decided".to_owned()));
        words.extend_from_slice(flags);
        let new = Line::try_parse_from(words)?.new;
        let PlanFlags { targets: all, against, .. } = &new.plan;
        if all.len() > targets.len() || new.gate.fail_on.len() > 1 || against.is_some() {
            return Err(Unusable("remove --target, --fail-on and --against: they are set already".to_owned()).into());
        }
        Ok(new)
    }

    /// Returns its plan as the flags say.
    pub fn plan(self) -> anyhow::Result<Plan> {
        self.plan.plan()
    }

    /// Returns its plan, and how its result is judged.
    pub async fn planned(self, connection: &Connection) -> anyhow::Result<(Plan, Rules)> {
        let Self { plan, gate, .. } = self;
        let max_repeat = usize::try_from(plan.max_repeat)?;
        let plan = plan.plan().map_err(|fault| Unusable(format!("{fault:#}")))?;
        Ok((with_known(plan, connection).await?, Rules { gate, max_repeat }))
    }
}

/// How the result of new runs is judged.
#[derive(Clone, Debug)]
pub struct Rules {
    gate: GateRules,
    max_repeat: usize,
}

/// An experiment that has ended, to be judged.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The experiment.
    pub ended: ExperimentWithRuns,
    /// How it is judged.
    pub rules: Rules,
}

impl Measured {
    /// Judges one of its targets by another one.
    pub async fn gate(&self, connection: &Connection, baseline: &str, candidate: &str) -> anyhow::Result<Gate> {
        let Rules { gate, max_repeat } = &self.rules;
        gate.ask(connection, sides(&self.ended.experiment.id, baseline, candidate), *max_repeat).await
    }
}

fn sides(experiment: &ExperimentId, baseline: &str, candidate: &str) -> Sides {
    vec![
        ("baseline", experiment.to_string()),
        ("candidate", experiment.to_string()),
        ("baseline_target", baseline.to_owned()),
        ("candidate_target", candidate.to_owned()),
    ]
}

/// Replaces a shortened id of what is measured again, and `last`.
async fn with_known(plan: Plan, connection: &Connection) -> anyhow::Result<Plan> {
    let against = match &plan.against {
        Some(against) => Some(with_full_ids(connection, against).await?),
        None => None,
    };
    Ok(Plan { against, ..plan })
}

/// Waits for the result of an experiment. If the program is interrupted, the experiment is cancelled, so that nothing
/// waits for it.
async fn or_cancel<T>(
    client: &Client,
    id: &ExperimentId,
    result: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let mut terminate = signal(SignalKind::terminate())?;
    let interrupted = async {
        tokio::select! {
            _ = ctrl_c() => {}
            _ = terminate.recv() => {}
        }
    };
    tokio::select! {
        result = result => result,
        () = interrupted => {
            let _: ExperimentWithRuns = client.post(&format!("api/v1/experiments/{id}/cancel"), &()).await?;
            bail!("interrupted; the experiment was cancelled")
        }
    }
}

/// Submits a plan, and prints what will be measured.
pub async fn submit(connection: &Connection, plan: Plan) -> anyhow::Result<ExperimentWithRuns> {
    let created: ExperimentWithRuns = connection.client.post("api/v1/experiments", &plan).await?;
    let seed = created.experiment.plan.seed.map_or(String::new(), |seed| format!(" (seed {seed})"));
    let left = created.progress.remaining_s.map_or(String::new(), |left| format!(", about {}", duration::text(left)));
    eprintln!("queued {}{seed}{left}: {}", plural(created.runs.len(), "run"), created.url);
    if let Some(power) = created.power.as_ref().filter(|power| !power.is_enough()) {
        eprintln!("{}", table::hanging(&power.describe(), 0));
    }
    Ok(created)
}

/// Returns baseline and candidate.
fn two_targets(plan: &Plan) -> Result<[&String; 2], Unusable> {
    match plan.targets.as_slice() {
        [baseline, candidate] => Ok([baseline, candidate]),
        all => Err(Unusable(format!("--fail-on judges the second of two targets; there are {}", all.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brewbench::experiments::plan::PROFILED_REPETITIONS;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        new: New,
    }

    fn plan(line: &str) -> Plan {
        let words = ["new", "--target", "a", "--size", "s"].into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).expect("valid flags").new.plan.plan().expect("a plan")
    }

    #[test]
    fn a_baseline_replaces_the_defaults_of_scenario_and_load() {
        let (alone, against) = (plan(""), plan("--against main"));
        assert_eq!((alone.scenario.as_str(), against.scenario.as_str()), (DEFAULT_SCENARIO, ""));
        assert_eq!((alone.loads.len(), against.loads.len()), (1, 0));
        assert_eq!(plan("--against main --vus 3 --duration 5s").loads.len(), 1);
        assert!(Line::try_parse_from(["new", "--size", "x"]).is_err(), "targets are needed");
    }

    #[test]
    fn profile_without_a_number_means_the_fewest_repetitions_that_show_a_difference() {
        let repetitions = |line: &str| plan(line).profiled_repetitions;
        assert_eq!(repetitions(""), 0);
        assert_eq!(repetitions("--profile"), PROFILED_REPETITIONS);
        assert_eq!(repetitions("--profile 7"), 7);
    }
}
