//! `brewbench run new`

use std::{collections::BTreeMap, process::ExitCode};

use clap::Args;

use crate::{
    cli::{
        common::{Common, pair},
        duration,
        exit_code::judge,
        experiment,
        load::LoadFlags,
        progress, table,
    },
    experiments::{
        model::ExperimentWithRuns,
        new::draft::AUTO,
        plan::{Plan, default_repetitions, default_retries, default_warm_up_s, share},
        stopping_rule::Until,
    },
    web::format::plural,
};

/// Submit runs.
#[derive(Debug, Args)]
pub struct New {
    #[command(flatten)]
    common: Common,
    /// Name of a target; repeatable
    #[arg(long = "target", value_name = "TARGET", required = true)]
    targets: Vec<String>,
    /// Measure this baseline again, interleaved with the targets: a baseline, or the id of an experiment or run. Its
    /// sizes, scenario, parameters and load are the defaults
    #[arg(long, value_name = "BASELINE", conflicts_with = "knee")]
    against: Option<String>,
    /// Name of a machine size, or short like 2/4GiB; repeatable
    #[arg(long = "size", value_name = "SIZE", required_unless_present = "against")]
    sizes: Vec<String>,
    /// Name of a scenario [default: hash, or the baseline's scenario]
    #[arg(long)]
    scenario: Option<String>,
    /// A parameter of the scenario; repeatable
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = pair)]
    parameters: Vec<(String, String)>,
    #[command(flatten)]
    load: LoadFlags,
    /// Warm-up before each run, at the load's highest level. `auto` ends once the target is steady, after at most 20s
    #[arg(long, default_value = "2s", value_name = "TIME|auto", value_parser = warm_up)]
    warm_up: WarmUp,
    /// Repetitions of each cell; with --knee: runs that confirm a rate
    #[arg(long, default_value_t = default_repetitions())]
    repeat: u32,
    /// Add repetitions until each 95 % interval of throughput relative to the first target is narrower, e.g. 2%
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "knee")]
    until_ci: Option<f64>,
    /// Maximum repetitions with --until-ci
    #[arg(long, value_name = "N", default_value_t = 20, requires = "until_ci")]
    max_repeat: u32,
    /// Retries of a repetition whose run failed, was lost or is invalid
    #[arg(long, value_name = "N", default_value_t = default_retries())]
    retries: u32,
    /// Seed that shuffles the order of the runs [default: random, shown with the experiment]
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
    /// Run on this agent only [default: any capable agent]
    #[arg(long)]
    agent: Option<String>,
    /// Run on agents with this label only [default: any capable agent]
    #[arg(long, value_name = "LABEL", conflicts_with = "agent")]
    agent_label: Option<String>,
    /// Spread complete repetitions over several agents [default: all runs on one agent]
    #[arg(long, conflicts_with_all = ["agent", "generators", "until_ci", "knee"])]
    spread: bool,
    /// Generate the load on this agent instead of the target's; repeatable, for equal shares of the load
    #[arg(long = "load-from", value_name = "AGENT")]
    generators: Vec<String>,
    /// Name of the experiment
    #[arg(long)]
    name: Option<String>,
    /// Wait until all runs have ended; exit with 3 if one failed, was lost or is invalid
    #[arg(long)]
    wait: bool,
}

/// A parsed `--warm-up`.
#[derive(Clone, Copy, Debug)]
struct WarmUp {
    seconds: f64,
    /// Whether it lasts until the target is steady.
    is_auto: bool,
}

fn warm_up(text: &str) -> Result<WarmUp, String> {
    if text == AUTO {
        return Ok(WarmUp { seconds: default_warm_up_s(), is_auto: true });
    }
    let seconds = duration::seconds(text).map_err(|_| "write it as 10s, 500ms or 1m30s, or auto".to_owned())?;
    Ok(WarmUp { seconds, is_auto: false })
}

impl New {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let Self { common, targets, sizes, scenario, parameters, load, warm_up, repeat, agent, name, wait, .. } = self;
        // Without load flags, the baseline's load applies, else the script's own.
        let uses_baseline_load = self.against.is_some() && !load.is_given();
        let (loads, knee) = if uses_baseline_load { (Vec::new(), None) } else { load.how_hard()? };
        let default_scenario = || if self.against.is_some() { String::new() } else { "hash".to_owned() };
        let plan = Plan {
            name,
            targets,
            scenario: scenario.unwrap_or_else(default_scenario),
            against: self.against,
            sizes,
            parameters: parameters.into_iter().collect::<BTreeMap<_, _>>(),
            loads,
            knee,
            warm_up_s: warm_up.seconds,
            warm_up_auto: warm_up.is_auto,
            repetitions: repeat,
            until: self.until_ci.map(|narrower_than| Until { narrower_than, at_most: self.max_repeat }),
            retries: self.retries,
            seed: self.seed,
            agent,
            agent_label: self.agent_label,
            spread: self.spread,
            generators: self.generators,
        };
        let connection = common.connect()?;
        let created: ExperimentWithRuns = connection.client.post("api/v1/experiments", &plan).await?;
        let seed = created.experiment.plan.seed.map_or(String::new(), |seed| format!(" (seed {seed})"));
        eprintln!("queued {}{seed}: {}", plural(created.runs.len(), "run"), created.url);
        if let Some(power) = created.power.filter(|power| !power.is_enough()) {
            eprintln!("{}", power.sentence());
        }
        if !wait {
            common.print(&created, |created| table::runs(&created.runs))?;
            return Ok(ExitCode::SUCCESS);
        }
        let ended = progress::wait(&connection.client, &created.experiment.id).await?;
        common.print(&ended, |ended| experiment::decisions(ended) + &table::runs(&ended.runs))?;
        Ok(judge(&ended))
    }
}
