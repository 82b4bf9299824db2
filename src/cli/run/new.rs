//! `brewbench run new`

use std::{collections::BTreeMap, process::ExitCode};

use clap::{Args, ValueEnum};

use crate::{
    cli::{
        common::{Common, pair},
        duration,
        exit_code::judge,
        experiment,
        load::LoadFlags,
        preset, progress, table,
    },
    experiments::{
        model::ExperimentWithRuns,
        new::draft::AUTO,
        plan::{Plan, default_repetitions, default_retries, default_warm_up_s, share},
        presets::model::Preset,
        stopping_rule::StoppingRule,
    },
    web::format::plural,
};

const DEFAULT_SCENARIO: &str = "hash";

/// [`crate::experiments::plan::PROFILED_REPETITIONS`] as the value of a flag.
const PROFILED: &str = "4";

/// Submit runs.
#[derive(Debug, Args)]
pub struct New {
    #[command(flatten)]
    common: Common,
    /// Start from a saved preset; other flags replace its settings
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    #[command(flatten)]
    plan: PlanFlags,
    /// Wait until all runs have ended; exit with 3 if one failed, was lost or is invalid
    #[arg(long)]
    wait: bool,
}

/// The settings of new runs. Commands that flatten them have an argument `preset`.
#[derive(Debug, Args)]
pub struct PlanFlags {
    /// Name of a target; repeatable
    #[arg(long = "target", value_name = "TARGET", required_unless_present = "preset")]
    targets: Vec<String>,
    /// Measure this baseline again, interleaved with the targets: a baseline, or the id of an experiment or run. Its
    /// sizes, scenario, parameters and load are the defaults
    #[arg(long, value_name = "BASELINE", conflicts_with = "knee")]
    against: Option<String>,
    /// Name of a machine size, or its short form, like 2/4GiB or 3x2/4GiB; repeatable
    #[arg(long = "size", value_name = "SIZE", required_unless_present_any = ["against", "preset"])]
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
    /// [default: auto if a target compiles while it runs, as Java does; else 2s]
    #[arg(long, value_name = "TIME|auto", value_parser = warm_up)]
    warm_up: Option<WarmUp>,
    /// Repetitions of each cell; with --knee: half of the runs near the knee [default: 5]
    #[arg(long, value_name = "N")]
    repeat: Option<u32>,
    /// Profile each cell in N more repetitions after the measured ones; N is 4 if omitted
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = PROFILED, conflicts_with = "knee")]
    profile: Option<u32>,
    /// Add repetitions until each 95 % interval of throughput relative to the first target is narrower, e.g. 2%
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "knee")]
    until_ci: Option<f64>,
    /// Maximum repetitions with --until-ci
    #[arg(long, value_name = "N", default_value_t = 20, requires = "until_ci")]
    max_repeat: u32,
    /// Retries of a repetition whose run failed, was lost or is invalid [default: 1]
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
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
    /// Generate the load in Pods of the agent's cluster: kubernetes
    #[arg(long, value_name = "WHERE", requires = "cluster_generators", conflicts_with = "generators")]
    load_on: Option<LoadOn>,
    /// Number of these Pods, for equal shares of the load
    #[arg(long = "generators", value_name = "N", requires = "load_on")]
    cluster_generators: Option<u32>,
    /// Name of the experiment
    #[arg(long)]
    name: Option<String>,
}

/// Where the load is generated, if not by an agent.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LoadOn {
    Kubernetes,
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

impl PlanFlags {
    /// Returns the plan of the flags.
    fn plan(self) -> anyhow::Result<Plan> {
        // Without load flags, the baseline's load applies, else the script's own.
        let uses_baseline_load = self.against.is_some() && !self.load.is_given();
        let default_scenario = || if self.against.is_some() { String::new() } else { DEFAULT_SCENARIO.to_owned() };
        let scenario = self.scenario.clone().unwrap_or_else(default_scenario);
        let (loads, knee) = if uses_baseline_load { (Vec::new(), None) } else { self.load.clone().how_hard()? };
        let plan = Plan {
            name: None,
            targets: Vec::new(),
            against: None,
            sizes: Vec::new(),
            scenario,
            parameters: BTreeMap::new(),
            loads,
            knee,
            warm_up_s: None,
            warm_up_auto: false,
            repetitions: default_repetitions(),
            profiled_repetitions: 0,
            stopping_rule: None,
            retries: default_retries(),
            seed: None,
            agent: None,
            agent_label: None,
            spread: false,
            generators: Vec::new(),
            cluster_generators: 0,
        };
        self.plan_from(plan)
    }

    /// Returns a plan with the settings that the flags name replaced.
    fn plan_from(self, plan: Plan) -> anyhow::Result<Plan> {
        let Self { targets, against, sizes, scenario, parameters, load, warm_up, repeat, until_ci, .. } = self;
        let Self { max_repeat, retries, seed, agent, agent_label, spread, name, profile, .. } = self;
        let Self { generators, cluster_generators, .. } = self;
        let or = |given: Vec<String>, preset: Vec<String>| if given.is_empty() { preset } else { given };
        // Parameters belong to their scenario.
        let is_other_scenario = scenario.as_ref().is_some_and(|scenario| *scenario != plan.scenario);
        let mut all = if is_other_scenario { BTreeMap::new() } else { plan.parameters };
        all.extend(parameters);
        let until = until_ci.map(|narrower_than| StoppingRule { narrower_than, at_most: max_repeat });
        let (loads, knee) = if load.is_given() { load.how_hard()? } else { (plan.loads, plan.knee) };
        let until = until.or(plan.stopping_rule.filter(|_| knee.is_none()));
        // An agent, a label and several agents exclude each other.
        let names_place = agent.is_some() || agent_label.is_some() || spread;
        Ok(Plan {
            name: name.or(plan.name),
            targets: or(targets, plan.targets),
            against: against.or(plan.against),
            sizes: or(sizes, plan.sizes),
            scenario: scenario.unwrap_or(plan.scenario),
            parameters: all,
            loads,
            knee,
            warm_up_s: warm_up.map(|warm_up| warm_up.seconds).or(plan.warm_up_s),
            warm_up_auto: warm_up.map_or(plan.warm_up_auto, |warm_up| warm_up.is_auto),
            repetitions: repeat.unwrap_or(plan.repetitions),
            profiled_repetitions: profile.unwrap_or(plan.profiled_repetitions),
            stopping_rule: until,
            retries: retries.unwrap_or(plan.retries),
            seed,
            agent: if names_place { agent } else { plan.agent },
            agent_label: if names_place { agent_label } else { plan.agent_label },
            spread: if names_place { spread } else { plan.spread },
            cluster_generators: cluster_generators.unwrap_or(if generators.is_empty() {
                plan.cluster_generators
            } else {
                0
            }),
            generators: if cluster_generators.is_some() { generators } else { or(generators, plan.generators) },
        })
    }

    /// Returns the plan of a preset: like that of new runs, but the scenario may be chosen later.
    pub fn preset(self) -> anyhow::Result<Plan> {
        let scenario = self.scenario.clone().unwrap_or_default();
        Ok(Plan { scenario, ..self.plan()? })
    }
}

impl New {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let Self { common, preset, plan, wait } = self;
        let connection = common.connect()?;
        let plan = match preset {
            Some(name) => {
                let preset: Preset = connection.client.get(&preset::path(&name)).await?;
                let plan = plan.plan_from(preset.plan)?;
                let is_open = plan.scenario.is_empty() && plan.against.is_none();
                Plan { scenario: if is_open { DEFAULT_SCENARIO.to_owned() } else { plan.scenario.clone() }, ..plan }
            }
            None => plan.plan()?,
        };
        let created: ExperimentWithRuns = connection.client.post("api/v1/experiments", &plan).await?;
        let seed = created.experiment.plan.seed.map_or(String::new(), |seed| format!(" (seed {seed})"));
        eprintln!("queued {}{seed}: {}", plural(created.runs.len(), "run"), created.url);
        if let Some(power) = created.power.filter(|power| !power.is_enough()) {
            eprintln!("{}", table::hanging(&power.sentence(), 0));
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::experiments::{describe::tests::plan, plan::PROFILED_REPETITIONS};

    #[derive(Debug, Parser)]
    struct Line {
        #[arg(long)]
        preset: Option<String>,
        #[command(flatten)]
        plan: PlanFlags,
    }

    fn flags(line: &str) -> PlanFlags {
        Line::try_parse_from(std::iter::once("new").chain(line.split(' '))).expect("valid flags").plan
    }

    #[test]
    fn flags_replace_the_settings_of_a_preset() {
        let saved = Plan {
            parameters: BTreeMap::from([("A".to_owned(), "1".to_owned())]),
            stopping_rule: Some(StoppingRule { narrower_than: 0.02, at_most: 20 }),
            agent: Some("rack".to_owned()),
            ..plan()
        };
        let of = |line: &str| flags(line).plan_from(saved.clone()).expect("a plan");
        assert_eq!(of("--preset nightly"), saved);
        assert_eq!(
            of("--preset x --target one --repeat 9"),
            Plan { targets: vec!["one".to_owned()], repetitions: 9, ..saved.clone() }
        );
        assert_eq!(of("--preset x --set B=2").parameters.len(), 2);
        assert_eq!(of("--preset x --scenario get").parameters.len(), 0, "parameters of another scenario");
        let labelled = of("--preset x --agent-label arm");
        assert_eq!((labelled.agent, labelled.agent_label.as_deref()), (None, Some("arm")));
        let search = of("--preset x --knee 1..9 --objective p99<1s --duration 3s");
        assert!(search.knee.is_some() && search.loads.is_empty() && search.stopping_rule.is_none(), "{search:?}");
        assert!(Line::try_parse_from(["new", "--size", "x"]).is_err(), "without a preset, targets are needed");
    }

    #[test]
    fn profile_without_a_number_means_the_fewest_repetitions_that_show_a_difference() {
        let repetitions = |line: &str| flags(line).plan_from(plan()).expect("a plan").profiled_repetitions;
        assert_eq!(repetitions("--preset x"), 0);
        assert_eq!(repetitions("--preset x --profile"), PROFILED_REPETITIONS);
        assert_eq!(repetitions("--preset x --profile 7"), 7);
    }

    #[test]
    fn a_preset_may_leave_targets_sizes_and_scenario_open() {
        let open = flags("--preset x --vus 3 --duration 5s").preset().expect("a plan");
        assert_eq!((open.targets.len(), open.sizes.len(), open.scenario.as_str()), (0, 0, ""));
        assert_eq!((open.loads.len(), open.repetitions), (1, default_repetitions()));
    }
}
