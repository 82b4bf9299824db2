//! Writes a plan as the command that submits it. Pure.

use std::fmt::Write;

use brewbench_wire::{
    load::{Form, Load, Open, Shape},
    variables::is_secret,
};

use crate::{
    experiments::{
        knee::model::{DEFAULT_PRECISION, Knee},
        plan::{Plan, default_retries, share_text},
        plan_fields::{self, seconds_text},
        sweep::{self, Sweep, Unit},
    },
    runs::{load::stages_text, store::secrets::is_reference},
    web::command_line::quoted,
};

/// Returns a plan without the values of its secrets, to be shown.
#[must_use]
pub fn without_secrets(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    let secrets = plan.parameters.iter_mut().filter(|(name, value)| is_secret(name) && !is_reference(value));
    secrets.for_each(|(_, value)| "…".clone_into(value));
    plan
}

/// Returns `brewbench run new …`, to be pasted into a shell.
pub fn command(plan: &Plan) -> String {
    let Plan { name, targets, against, sizes, scenario, parameters, loads, knee, .. } = plan;
    let Plan {
        repetitions,
        profiled_repetitions,
        stopping_rule: until,
        retries,
        seed,
        agent,
        agent_label,
        spread,
        generators,
        cluster_generators,
        ..
    } = plan;
    let mut flags: Vec<(&str, String)> = Vec::new();
    flags.extend(targets.iter().map(|target| ("target", target.clone())));
    flags.extend(against.clone().map(|name| ("against", name)));
    flags.extend(sizes.iter().map(|size| ("size", size.clone())));
    flags.push(("scenario", scenario.clone()));
    flags.extend(parameters.iter().map(|(name, value)| ("set", format!("{name}={value}"))));
    flags.extend(knee.as_ref().map_or_else(|| load_flags(loads), knee_flags));
    flags.extend(plan_fields::texts(plan));
    flags.push(("repeat", repetitions.to_string()));
    if *profiled_repetitions > 0 {
        flags.push(("profile", profiled_repetitions.to_string()));
    }
    if let Some(until) = until {
        flags.push(("until-ci", share_text(until.narrower_than)));
        flags.push(("max-repeat", until.at_most.to_string()));
    }
    if *retries != default_retries() {
        flags.push(("retries", retries.to_string()));
    }
    flags.extend(seed.map(|seed| ("seed", seed.to_string())));
    flags.extend(agent.clone().map(|agent| ("agent", agent)));
    flags.extend(agent_label.clone().map(|label| ("agent-label", label)));
    flags.extend(generators.iter().map(|name| ("load-from", name.clone())));
    if *cluster_generators > 0 {
        flags.extend([("load-on", "kubernetes".to_owned()), ("generators", cluster_generators.to_string())]);
    }
    flags.extend(name.clone().map(|name| ("name", name)));
    let start = if *spread { "brewbench run new --spread" } else { "brewbench run new" };
    flags.iter().fold(start.to_owned(), |mut line, (flag, value)| {
        // A value that starts with a dash would be parsed as a flag.
        let between = if value.starts_with('-') { '=' } else { ' ' };
        let _ = write!(line, " --{flag}{between}{}", quoted(value));
        line
    })
}

fn knee_flags(knee: &Knee) -> Vec<(&'static str, String)> {
    let Knee { objective, from, to, duration_s, precision, max_vus } = knee;
    let mut flags = vec![
        ("knee", format!("{from}..{to}")),
        ("objective", objective.to_string()),
        ("duration", seconds_text(*duration_s)),
    ];
    if (precision - DEFAULT_PRECISION).abs() > f64::EPSILON {
        flags.push(("precision", share_text(*precision)));
    }
    flags.extend(max_vus.map(|count| ("max-vus", count.to_string())));
    flags
}

fn load_flags(loads: &[Load]) -> Vec<(&'static str, String)> {
    if let Some(Sweep { unit, levels, duration_ms, max_vus }) = Sweep::from_loads(loads) {
        let flag = match unit {
            Unit::Vus => "vus",
            Unit::Rate => "rate",
        };
        let mut flags = vec![(flag, sweep::text(&levels)), ("duration", seconds_text(duration_ms as f64 / 1_000.0))];
        flags.extend(max_vus.map(|count| ("max-vus", count.to_string())));
        return flags;
    }
    let Some(load) = loads.first() else { return Vec::new() };
    let Some(Form::Stages(stages)) = load.shape().map(Shape::form) else {
        return Vec::new();
    };
    match load {
        Load::Open(open) => {
            let mut flags = vec![("rate-stages", stages_text(stages))];
            if open.max_vus() != Open::default_vus(open.rate()) {
                flags.push(("max-vus", open.max_vus().to_string()));
            }
            flags
        }
        Load::Closed(_) | Load::Script => vec![("vus-stages", stages_text(stages))],
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::{
        experiments::{describe::tests::plan, knee::model::tests::knee, stopping_rule::StoppingRule},
        runs::load::{
            LoadBody,
            tests::{rate, vus_stages},
        },
    };

    #[test]
    fn the_command_has_all_settings_of_the_plan() {
        assert_eq!(
            command(&plan()),
            "brewbench run new --target gosherve --target servy --size 2/4GiB --scenario hash --vus 10 --duration 10s \
             --warm-up 2s --repeat 3"
        );
        let script = Plan { loads: vec![Load::Script], agent: Some("-x".to_owned()), ..plan() };
        assert!(command(&script).ends_with("--warm-up 2s --repeat 3 --agent=-x"), "{}", command(&script));
        let against = Plan { against: Some("main".to_owned()), ..plan() };
        assert!(command(&against).contains(" --target servy --against main --size 2/4GiB"), "{}", command(&against));
        let apart = Plan { generators: vec!["one".to_owned(), "two".to_owned()], ..plan() };
        assert!(command(&apart).ends_with(" --load-from one --load-from two"), "{}", command(&apart));
        let spread = Plan { agent_label: Some("rack 2".to_owned()), spread: true, ..plan() };
        assert!(command(&spread).starts_with("brewbench run new --spread --target"), "{}", command(&spread));
        assert!(command(&spread).ends_with(" --agent-label 'rack 2'"), "{}", command(&spread));
    }

    #[test]
    fn each_kind_of_load_has_its_flags() {
        let line = |load| command(&Plan { loads: vec![load], ..plan() });
        assert!(
            line(rate(2_000, 1.5)).contains(" --rate 2000 --duration 1.5s --warm-up"),
            "{}",
            line(rate(2_000, 1.5))
        );
        let stages = line(vus_stages("5s:10,500ms:0"));
        assert!(stages.contains(" --vus-stages 5s:10,500ms:0 --warm-up"), "{stages}");
        let open = LoadBody::Rate { rate: 20, duration_s: 1.0, max_vus: Some(7) }.try_into().expect("a load");
        assert!(line(open).contains(" --rate 20 --duration 1s --max-vus 7 --warm-up"));
    }

    #[test]
    fn sweeps_searches_and_adaptive_repetitions_have_their_flags() {
        let sweep = Plan { loads: vec![rate(500, 2.0), rate(1_000, 2.0)], seed: Some(7), retries: 0, ..plan() };
        let line = command(&sweep);
        assert!(line.contains(" --rate 500,1000 --duration 2s --warm-up 2s --repeat 3 --retries 0 --seed 7"), "{line}");
        let profiled = command(&Plan { profiled_repetitions: 6, ..plan() });
        assert!(profiled.ends_with("--repeat 3 --profile 6"), "{profiled}");
        let until = Some(StoppingRule { narrower_than: 0.02, at_most: 20 });
        let line = command(&Plan { stopping_rule: until, ..plan() });
        assert!(line.ends_with("--repeat 3 --until-ci 2% --max-repeat 20"), "{line}");
        let line = command(&Plan { loads: Vec::new(), knee: Some(knee()), ..plan() });
        let expected = " --knee 1000..20000 --objective 'p99<50ms, failures<0.1%' --duration 10s --warm-up";
        assert!(line.contains(expected), "{line}");
    }

    #[test]
    fn a_quoted_word_passes_through_a_shell_unchanged() {
        for word in ["", "a b", "it's", "$(reboot)", "`x`", "a\\b", "\"", "*", "~", "a;b", "é", "#", "!", "two\nlines"]
        {
            let line = format!("printf %s {}", quoted(word));
            let output = Command::new("bash").args(["-c", &line]).output().expect("bash").stdout;
            assert_eq!(String::from_utf8_lossy(&output), word, "{line}");
        }
        assert!(!quoted("\u{1b}[2J").contains('\u{1b}'));
    }
}
