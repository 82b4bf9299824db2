//! A load as flags.

use anyhow::bail;
use brewbench_agent::wire::load::{Closed, Form, Load, Open, Part, Stage};
use clap::{ArgGroup, Args};

use super::duration;
use crate::runs::load::{constant, parse_stages};

/// How hard, and for how long. Without any of them the script's own options decide.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("level").args(["vus", "rate", "vus_stages", "rate_stages"]),
    group = ArgGroup::new("steady").args(["vus", "rate"]).requires("duration"),
    group = ArgGroup::new("open").args(["rate", "rate_stages"]))]
pub struct LoadFlags {
    /// Constant virtual users; with --duration
    #[arg(long, value_name = "N")]
    vus: Option<u32>,
    /// Iterations begun per second, however slow the target answers; with --duration
    #[arg(long, value_name = "N")]
    rate: Option<u32>,
    /// How long a constant load lasts, e.g. 10s; with --vus or --rate
    #[arg(long, requires = "steady", value_parser = duration::seconds)]
    duration: Option<f64>,
    /// Virtual users in stages from zero, each how long it takes and where it leads, e.g. 5s:10,10s:50
    #[arg(long, value_name = "STAGES", value_parser = stages)]
    vus_stages: Option<Stages>,
    /// Iterations per second in stages from zero, e.g. 5s:500,10s:2000,5s:0
    #[arg(long, value_name = "STAGES", value_parser = stages)]
    rate_stages: Option<Stages>,
    /// Virtual users that keep a rate up [default: a tenth of the rate, 10 to 1,000]
    #[arg(long, value_name = "N", requires = "open")]
    max_vus: Option<u32>,
}

/// Behind a name of its own: of a `Vec` clap would take a flag for each.
#[derive(Clone, Debug)]
struct Stages(Vec<Stage>);

fn stages(text: &str) -> Result<Stages, String> {
    parse_stages(text).map(Stages)
}

impl LoadFlags {
    /// The load that they say. Fails with a sentence that names the flag.
    pub fn load(self) -> anyhow::Result<Load> {
        let Self { vus, rate, duration, vus_stages, rate_stages, max_vus } = self;
        let lasts = duration.unwrap_or_default();
        let (load, stages_flag) = match (vus, rate, vus_stages, rate_stages) {
            (Some(vus), ..) => (constant(vus, lasts).and_then(Closed::new).map(Load::Closed), ""),
            (_, Some(rate), ..) => {
                (constant(rate, lasts).and_then(|form| Open::new(form, max_vus)).map(Load::Open), "")
            }
            (_, _, Some(Stages(stages)), _) => (Closed::new(Form::Stages(stages)).map(Load::Closed), "--vus-stages"),
            (_, _, _, Some(Stages(stages))) => {
                (Open::new(Form::Stages(stages), max_vus).map(Load::Open), "--rate-stages")
            }
            (None, None, None, None) => return Ok(Load::Script),
        };
        match load {
            Ok(load) => Ok(load),
            Err(fault) => {
                let flag = match fault.part {
                    Part::Vus => "--vus",
                    Part::Rate => "--rate",
                    Part::Duration => "--duration",
                    Part::Stages => stages_flag,
                    Part::MaxVus => "--max-vus",
                };
                bail!("{flag}: {}", fault.text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::{
        experiments::{command::command, told::tests::plan},
        runs::load::{
            LoadBody,
            tests::{rate, vus, vus_stages},
        },
    };

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadFlags,
    }

    fn said(line: &str) -> Result<Load, String> {
        let line = Line::try_parse_from(["x"].into_iter().chain(line.split_whitespace()));
        line.map_err(|fault| fault.to_string())?.load.load().map_err(|fault| fault.to_string())
    }

    #[test]
    fn the_flags_that_the_site_shows_say_the_load_that_was_meant() {
        let few = LoadBody::Rate { rate: 20, duration_s: 1.0, max_vus: Some(7) }.try_into().expect("a load");
        for load in [Load::Script, vus(10, 90.0), rate(2_000, 1.5), few, vus_stages("5s:10,500ms:0")] {
            let line = command(&crate::experiments::Plan { load: load.clone(), ..plan() });
            let (_, flags) = line.split_once("--scenario hash").expect("a scenario");
            let (flags, _) = flags.split_once("--warm-up").expect("a warm-up");
            assert_eq!(said(flags), Ok(load), "{flags}");
        }
    }

    #[test]
    fn flags_that_do_not_go_together_or_make_no_sense_are_named() {
        for (line, words) in [
            ("--vus 3", "--duration"),
            ("--rate 3", "--duration"),
            ("--duration 3s", "--vus"),
            ("--vus 3 --rate 3 --duration 3s", "--rate"),
            ("--vus 3 --duration 3s --vus-stages 5s:10", "--vus-stages"),
            ("--vus-stages 5s:10 --duration 3s", "--duration"),
            ("--vus 3 --duration 3s --max-vus 9", "--max-vus"),
            ("--vus-stages 5s", "stage 1 is \"5s\": write it as 10s:50"),
            ("--vus 0 --duration 3s", "--vus: between 1 and 100000"),
            ("--rate 5 --duration 100ms", "--duration: between 1 and 86400 seconds"),
            ("--rate-stages 5s:0", "--rate-stages: none of them goes above 0"),
            ("--rate 5 --duration 1s --max-vus 0", "--max-vus: between 1 and 100000"),
        ] {
            let fault = said(line).expect_err(line);
            assert!(fault.contains(words), "{line}: {fault}");
        }
    }
}
