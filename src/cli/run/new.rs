//! `brewbench run new`

use std::{collections::BTreeMap, process::ExitCode};

use clap::Args;

use super::judge;
use crate::{
    cli::{Common, duration, load::LoadFlags, progress, table},
    experiments::{ExperimentWithRuns, Plan, default_repetitions},
};

/// `run new`
#[derive(Debug, Args)]
pub struct New {
    #[command(flatten)]
    common: Common,
    /// Name of a target; repeat for several
    #[arg(long = "target", value_name = "TARGET", required = true)]
    targets: Vec<String>,
    /// Name of a machine size, or short as 2/4GiB; repeat for several
    #[arg(long = "size", value_name = "SIZE", required = true)]
    sizes: Vec<String>,
    /// Name of a scenario
    #[arg(long, default_value = "hash")]
    scenario: String,
    /// A parameter of the scenario; repeat for several
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = pair)]
    parameters: Vec<(String, String)>,
    #[command(flatten)]
    load: LoadFlags,
    /// Warm-up before each run: the load's highest level all the time
    #[arg(long, default_value = "2s", value_parser = duration::seconds)]
    warm_up: f64,
    /// Runs of each target at each size
    #[arg(long, default_value_t = default_repetitions())]
    repeat: u32,
    /// Only this agent [default: any that can]
    #[arg(long)]
    agent: Option<String>,
    /// What to call it
    #[arg(long)]
    name: Option<String>,
    /// Wait until all runs have ended; exit with 3 unless all have figures that count
    #[arg(long)]
    wait: bool,
}

/// A name and a value from `NAME=VALUE`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl New {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let Self { common, targets, sizes, scenario, parameters, load, warm_up, repeat, agent, name, wait } = self;
        let plan = Plan {
            name,
            targets,
            sizes,
            scenario,
            parameters: parameters.into_iter().collect::<BTreeMap<_, _>>(),
            load: load.load()?,
            warm_up_s: warm_up,
            repetitions: repeat,
            agent,
        };
        let connection = common.connect()?;
        let made: ExperimentWithRuns = connection.client.post("api/v1/experiments", &plan).await?;
        eprintln!("{} runs queued: {}", made.runs.len(), made.url);
        if !wait {
            common.print(&made, |made| table::runs(&made.runs))?;
            return Ok(ExitCode::SUCCESS);
        }
        let ended = progress::wait(&connection.client, &made.experiment.id).await?;
        common.print(&ended, |ended| table::runs(&ended.runs))?;
        Ok(judge(&ended.runs))
    }
}
