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

/// `run new`
#[derive(Debug, Args)]
pub struct New {
    #[command(flatten)]
    common: Common,
    /// Name of a target; repeat for several
    #[arg(long = "target", value_name = "TARGET", required = true)]
    targets: Vec<String>,
    /// Measure this baseline again next to the targets, all in turn: a baseline, or the id of an experiment or run. Its
    /// sizes, scenario, parameters and load are the defaults
    #[arg(long, value_name = "BASELINE", conflicts_with = "knee")]
    against: Option<String>,
    /// Name of a machine size, or short as 2/4GiB; repeat for several
    #[arg(long = "size", value_name = "SIZE", required_unless_present = "against")]
    sizes: Vec<String>,
    /// Name of a scenario [default: hash, or that of the baseline]
    #[arg(long)]
    scenario: Option<String>,
    /// A parameter of the scenario; repeat for several
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = pair)]
    parameters: Vec<(String, String)>,
    #[command(flatten)]
    load: LoadFlags,
    /// Warm-up before each run: the load's highest level all the time; auto: until the target is steady, at most 20s
    #[arg(long, default_value = "2s", value_name = "TIME|auto", value_parser = warm_up)]
    warm_up: WarmUp,
    /// Runs of each target at each size under each load; with --knee: runs that confirm a rate
    #[arg(long, default_value_t = default_repetitions())]
    repeat: u32,
    /// More repetitions until the 95 % interval of each difference in throughput to the first target is narrower, e.g. 2%
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "knee")]
    until: Option<f64>,
    /// But so many repetitions at most
    #[arg(long, value_name = "N", default_value_t = 20, requires = "until")]
    at_most: u32,
    /// How many times a repetition is done again whose run failed, was lost or is invalid
    #[arg(long, value_name = "N", default_value_t = default_retries())]
    retries: u32,
    /// What the order of the runs is shuffled by, a number [default: by chance; the experiment tells]
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
    /// Only this agent [default: any that can]
    #[arg(long)]
    agent: Option<String>,
    /// Only agents with this label [default: any that can]
    #[arg(long, value_name = "LABEL", conflicts_with = "agent")]
    agent_label: Option<String>,
    /// On several machines at once, each whole repetitions [default: all of it on one]
    #[arg(long, conflicts_with_all = ["agent", "generators", "until", "knee"])]
    spread: bool,
    /// Make the load on this agent, and not on the target's own; repeat for several, each makes an equal part
    #[arg(long = "load-from", value_name = "AGENT")]
    generators: Vec<String>,
    /// What to call it
    #[arg(long)]
    name: Option<String>,
    /// Wait until all runs have ended; exit with 3 unless all have figures that count
    #[arg(long)]
    wait: bool,
}

/// A warm-up as it is typed.
#[derive(Clone, Copy, Debug)]
struct WarmUp {
    seconds: f64,
    /// It goes on until the target is steady.
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
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let Self { common, targets, sizes, scenario, parameters, load, warm_up, repeat, agent, name, wait, .. } = self;
        // Without any flag the baseline's load is meant, else the script's own.
        let is_baselines = self.against.is_some() && !load.is_given();
        let (loads, knee) = if is_baselines { (Vec::new(), None) } else { load.how_hard()? };
        let usual = || if self.against.is_some() { String::new() } else { "hash".to_owned() };
        let plan = Plan {
            name,
            targets,
            scenario: scenario.unwrap_or_else(usual),
            against: self.against,
            sizes,
            parameters: parameters.into_iter().collect::<BTreeMap<_, _>>(),
            loads,
            knee,
            warm_up_s: warm_up.seconds,
            warm_up_auto: warm_up.is_auto,
            repetitions: repeat,
            until: self.until.map(|narrower_than| Until { narrower_than, at_most: self.at_most }),
            retries: self.retries,
            seed: self.seed,
            agent,
            agent_label: self.agent_label,
            spread: self.spread,
            generators: self.generators,
        };
        let connection = common.connect()?;
        let made: ExperimentWithRuns = connection.client.post("api/v1/experiments", &plan).await?;
        let seed = made.experiment.plan.seed.map_or(String::new(), |seed| format!(" (seed {seed})"));
        eprintln!("{} queued{seed}: {}", plural(made.runs.len(), "run"), made.url);
        if let Some(power) = made.power.filter(|power| !power.is_enough()) {
            eprintln!("{}", power.sentence());
        }
        if !wait {
            common.print(&made, |made| table::runs(&made.runs))?;
            return Ok(ExitCode::SUCCESS);
        }
        let ended = progress::wait(&connection.client, &made.experiment.id).await?;
        common.print(&ended, |ended| experiment::told(ended) + &table::runs(&ended.runs))?;
        Ok(judge(&ended))
    }
}
