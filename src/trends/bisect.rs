//! The command that finds the commit of a change. Pure.

use brewbench_wire::manifest::source::split_target;

use crate::{
    compare::metric::Metric,
    experiments::{new::command::command as command_of, plan::Plan},
    runs::model::Run,
    trends::model::Change,
    web::command_line::quoted,
};

/// Characters of the id of a commit that a version has.
const SHORT: usize = 12;

/// The smallest limit between good and bad, percent.
const SMALLEST: f64 = 0.1;

/// Returns the command for a change that made a target worse between two commits; none for another change.
///
/// It measures as one of the cell's runs was measured, and looks for half of the difference.
pub fn command(change: &Change, metric: Metric, run: &Run) -> Option<String> {
    let is_commit = |version: &&String| version.len() == SHORT && version.bytes().all(|byte| byte.is_ascii_hexdigit());
    let [good, bad] = [&change.previous_version, &change.version].map(|version| version.as_ref().filter(is_commit));
    let (good, bad) = (good?, bad.filter(|bad| Some(*bad) != good)?);
    if !change.found || change.improved != Some(false) || change.returned.is_some() || !change.ratio.is_finite() {
        return None;
    }
    let flags = command_of(&without_targets(run)?);
    let flags = flags.strip_prefix("brewbench run new ")?.to_owned();
    let (name, worse) = (split_target(&run.spec.target).0, (change.ratio - 1.0).abs() * 100.0 / 2.0);
    if worse < SMALLEST {
        return None;
    }
    Some(format!(
        "brewbench bisect --target {} --good {good} --bad {bad} --metric {} --worse {worse:.1}% -- {flags}",
        quoted(name),
        metric.short_key()
    ))
}

/// Returns a plan that measures as a run was measured; none for imports.
fn without_targets(run: &Run) -> Option<Plan> {
    let spec = &run.spec;
    Some(Plan {
        sizes: vec![spec.size.as_ref()?.name.clone()],
        scenario: spec.scenario.clone()?,
        parameters: spec.parameters.clone(),
        loads: vec![spec.load.clone()?],
        warm_up_s: spec.warm_up_s,
        warm_up_auto: spec.warm_up_auto,
        agent: run.agent.clone(),
        generators: spec.generators.clone(),
        cluster_generators: spec.cluster_generators,
        http_version: spec.http_version,
        engine: spec.requested_engine,
        script_scenario: spec.script_scenario.clone(),
        scale: spec.scale,
        ..Plan::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{runs::testing::finished, trends::model::Support};

    fn change(versions: [&str; 2], ratio: f64) -> Change {
        let [previous_version, version] = versions.map(|version| Some(version.to_owned()));
        Change {
            run: "x".to_owned().into(),
            experiment: None,
            at: Some(10),
            at_ms: 0,
            version,
            previous_version,
            returned: None,
            medians: None,
            ratio,
            improved: Some(false),
            found: true,
            support: Support::New,
            annotation: None,
            bisect: None,
        }
    }

    #[test]
    fn a_worse_commit_is_searched_as_it_was_measured() {
        let mut run = finished("api@main", 1);
        run.agent = Some("rack".to_owned());
        let found = command(&change(["0123456789ab", "ba9876543210"], 0.9), Metric::Rps, &run).expect("a command");
        let start =
            "brewbench bisect --target api --good 0123456789ab --bad ba9876543210 --metric rps --worse 5.0% -- ";
        assert!(found.starts_with(start) && found.contains("--agent rack"), "{found}");
        for other in [["1.0", "2.0"], ["0123456789ab", "0123456789ab"]] {
            assert_eq!(command(&change(other, 0.9), Metric::Rps, &run), None, "{other:?}");
        }
    }
}
