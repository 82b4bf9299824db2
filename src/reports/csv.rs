//! A comparison as CSV: a line for each metric of each target in each setting. Pure.

use crate::{
    compare::{stat::Stat, view::Comparison},
    runs::csv::line,
};

const HEAD: [&str; 28] = [
    "setting",
    "scenario",
    "load",
    "size",
    "vcpus",
    "memory_bytes",
    "replicas",
    "target",
    "version",
    "metric",
    "runs",
    "repetitions",
    "suspect",
    "value",
    "median",
    "mean",
    "deviation",
    "median_low",
    "median_high",
    "min",
    "max",
    "baseline",
    "change",
    "low",
    "high",
    "p",
    "availability",
    "best",
];

/// Renders the file. Unknown values are empty.
pub fn text(comparison: &Comparison) -> String {
    let mut text = line(HEAD);
    for row in &comparison.rows {
        let setting = &row.setting;
        let size = setting.size.as_ref();
        for cell in &row.cells {
            let Some(subject) = comparison.subjects.get(cell.subject) else { continue };
            for stat in &cell.stats {
                let before = [
                    setting.label.clone(),
                    word(setting.scenario.as_ref()),
                    word(setting.load.as_ref()),
                    word(size.map(|size| &size.name)),
                    word(size.map(|size| &size.vcpus)),
                    word(size.map(|size| &size.memory_bytes)),
                    word(size.map(|size| &size.replicas)),
                    subject.target.clone(),
                    word(subject.version.as_ref()),
                ];
                let after = figures(stat, cell.runs.len(), comparison.baseline.as_deref().unwrap_or_default());
                text.push_str(&line(before.iter().chain(&after).map(String::as_str)));
            }
        }
    }
    text
}

fn figures(stat: &Stat, runs: usize, baseline: &str) -> [String; 19] {
    let (spread, effect) = (stat.spread.as_ref(), stat.effect);
    let interval = effect.and_then(|effect| effect.interval());
    let decision = stat.decision.and_then(|decision| serde_json::to_value(decision).ok());
    [
        stat.metric.key().to_owned(),
        runs.to_string(),
        spread.map_or(0, |spread| spread.count).to_string(),
        stat.suspect.to_string(),
        word(stat.value.as_ref()),
        word(spread.map(|spread| &spread.median)),
        word(spread.map(|spread| &spread.mean).filter(|_| stat.metric.has_mean())),
        word(spread.and_then(|spread| spread.deviation.as_ref())),
        word(spread.and_then(|spread| spread.low.as_ref())),
        word(spread.and_then(|spread| spread.high.as_ref())),
        word(spread.map(|spread| &spread.min)),
        word(spread.map(|spread| &spread.max)),
        stat.by().map_or_else(String::new, |_| baseline.to_owned()),
        word(stat.by().as_ref()),
        word(interval.map(|(low, _)| low).as_ref()),
        word(interval.map(|(_, high)| high).as_ref()),
        word(stat.p.as_ref()),
        decision.and_then(|decision| decision.as_str().map(str::to_owned)).unwrap_or_default(),
        stat.best.to_string(),
    ]
}

fn word<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(String::new, T::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::testing::{failed, faster, run},
        web::series_style::Marks,
    };

    #[test]
    fn every_metric_is_a_line_with_a_value_for_every_header() {
        let mut runs = vec![run("a", 1), faster(run("b", 1), 2.0)];
        runs.push(failed(run("c", 1), "no"));
        let text = text(&Comparison::new(runs, &Marks::default(), None));
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), 1 + 3 * crate::metrics::compared().count());
        assert!(lines.iter().all(|line| line.len() == HEAD.len()), "{text}");
        let place = |head: &str| HEAD.iter().position(|known| *known == head).expect("a head");
        let rps = |target: &str| {
            let of = |line: &&Vec<&str>| line[place("target")] == target && line[place("metric")] == "rps";
            lines.iter().find(of).expect("a line")
        };
        assert_eq!((rps("b")[place("median")], rps("b")[place("change")]), ("20000", "1"));
        assert_eq!((rps("c")[place("median")], rps("c")[place("repetitions")]), ("", "0"));
    }
}
