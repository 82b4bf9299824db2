//! One row of a list of runs. Templates: `runs/_recent.html`, `runs/_figures.html`, variable `line`. Pure.

use brewbench_wire::Phase;

use crate::{
    live::feed::Rate,
    runs::{
        load as loads,
        model::{Origin, Run},
        progress,
    },
    web::{
        badge::{self, Badge},
        format::{self, Figure},
        markdown,
        series_style::{Mark, Marks},
    },
};

/// Maximum number of characters of a note in a list.
const NOTE: usize = 80;

/// A run with the texts of a list.
#[derive(Clone, Debug)]
pub struct ListedRun {
    /// The run.
    pub run: Run,
    /// The target's colour.
    pub mark: Mark,
    /// Scenario, parameters and load: `hash · 10 VUs · 10 s`.
    pub load: String,
}

impl ListedRun {
    /// Creates the row of a run.
    pub fn new(run: Run, marks: &Marks) -> Self {
        Self { mark: marks.of(&run.spec.target), load: load(&run), run }
    }

    /// The badge of its verdict or phase.
    pub fn state(&self) -> Badge {
        state(&self.run)
    }

    /// The agent.
    pub fn agent(&self) -> &str {
        match (&self.run.agent, self.run.origin) {
            (Some(agent), _) => agent,
            (None, Origin::Import) => "imported",
            (None, Origin::Agent) => "–",
        }
    }

    /// The load with all details.
    pub fn how_hard(&self) -> Option<String> {
        loads::describe_with(&self.run.spec, loads::with_max_vus).or_else(|| how_hard(&self.run))
    }

    /// The beginning of its note.
    pub fn note(&self) -> Option<String> {
        let first = markdown::beginning(self.run.note.as_deref()?);
        let short: String = first.chars().take(NOTE).collect();
        Some(if short.len() < first.len() { format!("{short}…") } else { short })
    }

    /// Whether the run has a result.
    pub fn counts(&self) -> bool {
        self.run.has_result()
    }
}

/// An unfinished run with its progress.
#[derive(Clone, Debug)]
pub struct RunProgress {
    /// The run.
    pub line: ListedRun,
    /// Completed share of its time; none while queued or if unknown.
    pub share: Option<f64>,
    /// Remaining time in words: `12 s left`, `takes 15 s`.
    pub left: String,
    /// Current throughput; none until the first second has ended.
    pub rate: Option<Rate>,
    /// What takes long in its preparation.
    pub step: Option<String>,
}

impl RunProgress {
    /// Estimates the progress of a run from others of the same plan.
    pub fn new(run: Run, marks: &Marks, others: &[&Run], now_ms: i64) -> Self {
        let mut progress =
            Self { share: None, left: String::new(), rate: None, step: None, line: ListedRun::new(run, marks) };
        progress.refresh(others, None, now_ms);
        progress
    }

    /// Updates the progress.
    pub fn refresh(&mut self, others: &[&Run], rate: Option<Rate>, now_ms: i64) {
        let run = &self.line.run;
        let started = run.phase != Phase::Queued;
        self.left = left_text(progress::remaining_s(run, others, now_ms), started);
        self.share = progress::share(run, others, now_ms).filter(|_| started);
        self.rate = rate;
    }

    /// Current throughput in words: `1,200 requests/s`.
    pub fn speed(&self) -> Option<String> {
        let Rate { rps, failed_rps } = self.rate?;
        let failed = if failed_rps > 0.0 { format!(", {} failed/s", rounded(failed_rps)) } else { String::new() };
        Some(format!("{}\u{a0}requests/s{failed}", rounded(rps)))
    }

    /// The current activity.
    pub fn activity(&self) -> String {
        let sentence = match self.line.run.phase {
            Phase::Queued => "Waiting for an agent.",
            Phase::Leased => "Assigned to an agent.",
            Phase::Preparing => "The agent starts the target in its sandbox and waits until the machine is idle.",
            Phase::WarmingUp => "The target is warmed up; these results are discarded.",
            Phase::Measuring => "The load is measured.",
            _ => "The agent collects the results.",
        };
        match &self.step {
            Some(step) if self.line.run.phase == Phase::Preparing => format!("{step}."),
            _ => sentence.to_owned(),
        }
    }
}

/// Drops digits that would change every second.
fn rounded(value: f64) -> String {
    format::number(Some(if value >= 10.0 { value.round() } else { value })).text().to_owned()
}

fn left_text(left: Option<f64>, started: bool) -> String {
    let text = |seconds: f64| format::duration(Some(seconds.ceil())).text().to_owned();
    match (left, started) {
        (None, _) => "until its script ends".to_owned(),
        (Some(seconds), true) if seconds < 0.5 => "any moment".to_owned(),
        (Some(seconds), true) => format!("{} left", text(seconds)),
        (Some(seconds), false) => format!("takes {}", text(seconds)),
    }
}

/// Returns the badge of a run's verdict or phase.
pub fn state(run: &Run) -> Badge {
    let pill = match run.verdict.filter(|_| run.phase == Phase::Finished) {
        Some(verdict) => badge::state(verdict.as_str()).with_tooltip(reasons(run)),
        None => badge::state(run.phase.as_str()),
    };
    if run.spec.profiled { pill.and("profiled") } else { pill }
}

/// All reasons in one line.
fn reasons(run: &Run) -> String {
    run.reasons.iter().map(|reason| reason.text.as_str()).collect::<Vec<_>>().join("; ")
}

/// Describes scenario, parameters and load of a run.
pub fn load(run: &Run) -> String {
    let mut parts: Vec<String> = run.spec.scenario.iter().cloned().collect();
    parts.extend(run.spec.parameters.iter().map(|(name, value)| format!("{name}={value}")));
    parts.extend(how_hard(run));
    if let Some(seconds) = run.spec.duration_s.or(run.figures.measured_s) {
        parts.push(seconds_text(seconds).text().to_owned());
    }
    if parts.is_empty() { "–".to_owned() } else { parts.join(" · ") }
}

fn how_hard(run: &Run) -> Option<String> {
    // An import has only the maximum number of VUs.
    loads::describe_with(&run.spec, loads::describe).or_else(|| run.spec.vus.map(vus_text))
}

fn vus_text(vus: u32) -> String {
    let count = format::count(Some(u64::from(vus)));
    format!("{}\u{a0}VU{}", count.text(), if vus == 1 { "" } else { "s" })
}

/// Rounds to whole seconds, because measured durations are never exact.
fn seconds_text(seconds: f64) -> Figure {
    format::duration(Some(if seconds >= 3.0 { seconds.round() } else { seconds }))
}

#[cfg(test)]
mod tests {
    use brewbench_wire::load::Load;

    use super::*;
    use crate::runs::{
        load::tests::rate,
        model::RunSpec,
        testing::{failed, finished, judged, measuring},
        verdict::Verdict,
    };

    fn plain(text: &str) -> String {
        text.replace('\u{a0}', " ")
    }

    #[test]
    fn the_load_lists_known_values_only() {
        let mut run = finished("servy", 1);
        run.spec.parameters.insert("size".to_owned(), "10k".to_owned());
        assert_eq!(plain(&load(&run)), "hash · size=10k · 10 VUs · 10 s");
        run.spec.parameters.clear();
        (run.spec.load, run.spec.vus, run.spec.duration_s, run.figures.measured_s) = (None, Some(1), None, Some(10.02));
        assert_eq!(plain(&load(&run)), "hash · 1 VU · 10 s");
        (run.spec.load, run.figures.measured_s) = (Some(Load::Script), None);
        assert_eq!(load(&run), "hash · load of the script");
        run.spec.load = Some(rate(2_000, 10.0));
        assert_eq!(plain(&load(&run)), "hash · 2,000 iterations/s");
        (run.spec.load, run.spec.vus) = (None, None);
        (run.origin, run.spec.scenario) = (Origin::Import, None);
        assert_eq!(load(&run), "–");
    }

    #[test]
    fn a_finished_run_shows_its_verdict_and_any_other_its_phase() {
        assert!(state(&judged(finished("servy", 1), Verdict::Suspect, "why")).to_string().contains("suspect"));
        assert!(state(&failed("servy", "lost", "silence")).to_string().contains("lost"));
        assert!(state(&measuring("servy")).to_string().contains("measuring"));
    }

    #[test]
    fn a_running_run_shows_its_time_left_and_a_queued_one_its_duration() {
        let run = measuring("servy");
        let started = run.started_at_ms.expect("it has started");
        let progress = |run: Run, at| RunProgress::new(run, &Marks::default(), &[], started + at);
        assert_eq!(plain(&progress(run.clone(), 3_500).left), "10 s left");
        assert_eq!(progress(run.clone(), 60_000).left, "any moment");
        let mut fast = progress(run.clone(), 3_500);
        assert_eq!(fast.speed(), None);
        fast.refresh(&[], Some(Rate { rps: 1_234.5, failed_rps: 0.5 }), started + 4_500);
        let speed = fast.speed().map(|speed| plain(&speed));
        assert_eq!(
            (plain(&fast.left), speed.as_deref()),
            ("9 s left".to_owned(), Some("1,235 requests/s, 0.500 failed/s"))
        );
        let waiting = Run { phase: Phase::Queued, started_at_ms: None, ..run.clone() };
        let waiting = progress(waiting, 0);
        assert_eq!((plain(&waiting.left), waiting.share), ("takes 14 s".to_owned(), None));
        assert_eq!(progress(Run { spec: RunSpec { duration_s: None, ..run.spec.clone() }, ..run }, 0).share, None);
    }
}
