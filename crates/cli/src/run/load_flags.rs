//! The load flags of `run new`.

use anyhow::{anyhow, bail};
use brewbench::{
    experiments::{
        knee::{
            model::{DEFAULT_PRECISION, Knee},
            objective::Objective,
        },
        plan::share,
        sweep::{self, Unit},
    },
    runs::load::parse_stages,
};
use brewbench_wire::load::{Closed, Fault, Form, Load, LoadPart, Open, Stage};
use clap::{ArgGroup, Args};

use crate::duration;

/// The load. Without any of these flags, the script's own options apply.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("level").args(["vus", "rate", "vus_stages", "rate_stages", "knee"]),
    group = ArgGroup::new("steady").args(["vus", "rate", "knee"]).requires("duration"),
    group = ArgGroup::new("open").args(["rate", "rate_stages", "knee"]))]
pub struct LoadFlags {
    /// Constant virtual users; needs --duration. Several levels: 1,2,4 or 1..256x2
    #[arg(long, value_name = "LEVELS", num_args = 1..=2)]
    vus: Vec<String>,
    /// Iterations started per second, independent of response times; needs --duration. Several levels: 500,1000 or
    /// 1000..20000+1000
    #[arg(long, value_name = "LEVELS", num_args = 1..=2)]
    rate: Vec<String>,
    /// Duration of a constant load, e.g. 10s; needs --vus, --rate or --knee
    #[arg(long, requires = "steady", value_parser = duration::seconds)]
    duration: Option<f64>,
    /// Virtual users in stages, starting at zero, each as DURATION:VUS, e.g. 5s:10,10s:50
    #[arg(long, value_name = "STAGES", value_parser = stages)]
    vus_stages: Option<Stages>,
    /// Iterations per second in stages, starting at zero, e.g. 5s:500,10s:2000,5s:0
    #[arg(long, value_name = "STAGES", value_parser = stages)]
    rate_stages: Option<Stages>,
    /// Search for the highest rate in this range that meets the objective, e.g. 1000..20000; needs --objective and
    /// --duration
    #[arg(long, value_name = "FROM..TO", value_parser = sweep::bounds, requires = "objective")]
    knee: Option<(u32, u32)>,
    /// Objective that the knee must meet, e.g. 'p99<50ms, failures<0.1%'
    #[arg(long, value_name = "CONDITIONS", requires = "knee")]
    objective: Option<Objective>,
    /// Precision of the knee: largest distance of the ends of its 95 % interval [default: 5%]
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "knee")]
    precision: Option<f64>,
    /// Maximum virtual users to sustain a rate [default: a tenth of the rate, between 10 and 1,000]
    #[arg(long, value_name = "N", requires = "open")]
    max_vus: Option<u32>,
}

/// Stages of one flag. A newtype, because clap would read a `Vec` as a repeated flag.
#[derive(Clone, Debug)]
struct Stages(Vec<Stage>);

fn stages(text: &str) -> Result<Stages, String> {
    parse_stages(text).map(Stages)
}

impl LoadFlags {
    /// Whether any of them says how hard.
    pub fn is_given(&self) -> bool {
        let Self { vus, rate, vus_stages, rate_stages, knee, .. } = self;
        !vus.is_empty() || !rate.is_empty() || vus_stages.is_some() || rate_stages.is_some() || knee.is_some()
    }

    /// The loads that they say, or the search. Fails with a sentence that names the flag.
    pub fn how_hard(self) -> anyhow::Result<(Vec<Load>, Option<Knee>)> {
        let Self { vus, rate, duration, vus_stages, rate_stages, knee, objective, precision, max_vus } = self;
        let lasts = duration.unwrap_or_default();
        if let (Some((from, to)), Some(objective)) = (knee, objective) {
            let precision = precision.unwrap_or(DEFAULT_PRECISION);
            let knee = Knee { objective, from, to, duration_s: lasts, precision, max_vus };
            return match knee.fault() {
                Some(fault) => bail!("--knee: {fault}"),
                None => Ok((Vec::new(), Some(knee))),
            };
        }
        let one = |load: Result<Load, Fault>| load.map(|load| vec![load]);
        let (loads, stages_flag) = match (vus.as_slice(), rate.as_slice(), vus_stages, rate_stages) {
            ([], [], None, None) => return Ok((vec![Load::Script], None)),
            ([], [], Some(Stages(stages)), _) => {
                (one(Closed::new(Form::Stages(stages)).map(Load::Closed)), "--vus-stages")
            }
            ([], [], None, Some(Stages(stages))) => {
                (one(Open::new(Form::Stages(stages), max_vus).map(Load::Open)), "--rate-stages")
            }
            ([], rates, ..) => (sweep::loads(Unit::Rate, &levels("--rate", rates)?, lasts, max_vus), ""),
            (vus, ..) => (sweep::loads(Unit::Vus, &levels("--vus", vus)?, lasts, None), ""),
        };
        match loads {
            Ok(loads) => Ok((loads, None)),
            Err(fault) => {
                let flag = match fault.part {
                    LoadPart::Vus => "--vus",
                    LoadPart::Rate => "--rate",
                    LoadPart::Duration => "--duration",
                    LoadPart::Stages => stages_flag,
                    LoadPart::MaxVus => "--max-vus",
                };
                bail!("{flag}: {}", fault.text)
            }
        }
    }
}

/// Parses levels; a range and its step may be two arguments.
fn levels(flag: &str, words: &[String]) -> anyhow::Result<Vec<u32>> {
    sweep::levels(&words.join(" ")).map_err(|sentence| anyhow!("{flag}: {sentence}"))
}

#[cfg(test)]
mod tests {
    use brewbench::experiments::{new::command::command, plan::Plan};
    use brewbench_wire::load::LoadBody;
    use clap::Parser;

    use super::*;
    use crate::testing::{rate, vus, vus_stages};

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadFlags,
    }

    fn parse(line: &str) -> Result<(Vec<Load>, Option<Knee>), String> {
        let line = Line::try_parse_from(["x"].into_iter().chain(line.split_whitespace()));
        line.map_err(|fault| fault.to_string())?.load.how_hard().map_err(|fault| fault.to_string())
    }

    #[test]
    fn flags_shown_on_the_page_parse_to_the_same_load() {
        let few = LoadBody::Rate { rate: 20, duration_s: 1.0, max_vus: Some(7) }.try_into().expect("a load");
        let sweep = vec![vus(1, 5.0), vus(2, 5.0), vus(7, 5.0)];
        let single = [Load::Script, vus(10, 90.0), rate(2_000, 1.5), few, vus_stages("5s:10,500ms:0")];
        for loads in single.into_iter().map(|load| vec![load]).chain([sweep]) {
            let plan = Plan {
                targets: vec!["servy".to_owned()],
                scenario: "hash".to_owned(),
                loads: loads.clone(),
                warm_up_s: Some(2.0),
                repetitions: 3,
                ..Plan::default()
            };
            let line = command(&plan);
            let (_, flags) = line.split_once("--scenario hash").expect("a scenario");
            let (flags, _) = flags.split_once("--warm-up").expect("a warm-up");
            assert_eq!(parse(flags), Ok((loads, None)), "{flags}");
        }
    }

    #[test]
    fn a_range_and_its_step_may_be_two_arguments() {
        let loads = |levels: &[u32]| levels.iter().map(|level| vus(*level, 1.0)).collect::<Vec<_>>();
        for line in ["--vus 1..8x2 --duration 1s", "--vus 1..8 x2 --duration 1s", "--duration 1s --vus 1,2,4,8"] {
            assert_eq!(parse(line), Ok((loads(&[1, 2, 4, 8]), None)), "{line}");
        }
        let (rates, _) = parse("--rate 10..30 +10 --max-vus 5 --duration 1s").expect("rates");
        assert!(rates.iter().all(|load| matches!(load, Load::Open(open) if open.max_vus() == 5)) && rates.len() == 3);
    }

    #[test]
    fn a_knee_search_has_a_range_an_objective_and_a_duration() {
        let line = "--knee 1000..9000 --objective p99<50ms,failures<0.1% --duration 5s --precision 10%";
        let (loads, knee) = parse(line).expect("a search");
        let knee = knee.expect("a search");
        assert_eq!(
            (loads.len(), knee.from, knee.to, knee.objective.to_string().as_str()),
            (0, 1_000, 9_000, "p99<50ms, failures<0.1%")
        );
        assert!((knee.precision - 0.1).abs() < 1e-9);
    }

    #[test]
    fn errors_name_flags_that_conflict_or_are_invalid() {
        for (line, words) in [
            ("--vus 3", "--duration"),
            ("--rate 3", "--duration"),
            ("--duration 3s", "--vus"),
            ("--vus 3 --rate 3 --duration 3s", "--rate"),
            ("--vus 3 --duration 3s --vus-stages 5s:10", "--vus-stages"),
            ("--vus-stages 5s:10 --duration 3s", "--duration"),
            ("--vus 3 --duration 3s --max-vus 9", "--max-vus"),
            ("--vus-stages 5s", "stage 1 (\"5s\"): write it as 10s:50"),
            ("--vus 0 --duration 3s", "--vus: between 1 and 100000"),
            ("--vus 1..8 --duration 3s", "--vus: a range needs a step: 1..8x2 doubles"),
            ("--rate 5 --duration 100ms", "--duration: between 1 and 86400 seconds"),
            ("--rate-stages 5s:0", "--rate-stages: none of them goes above 0"),
            ("--rate 5 --duration 1s --max-vus 0", "--max-vus: between 1 and 100000"),
            ("--knee 5..9 --duration 3s", "--objective"),
            ("--knee 5..9 --objective p99<1s", "--duration"),
            ("--knee 9..5 --objective p99<1s --duration 3s", "write the lower level first"),
            ("--knee 5..9 --objective p9<1s --duration 3s", "unknown metric \"p9\""),
            ("--knee 0..9 --objective p99<1s --duration 3s", "--knee: rate: between 1 and 1000000"),
        ] {
            let fault = parse(line).expect_err(line);
            assert!(fault.contains(words), "{line}: {fault}");
        }
    }
}
