//! One line of a list of runs. Templates: `runs/_lines.html`, `runs/_figures.html`, variable `line`. Pure.

use brewbench_agent::wire::Phase;

use crate::{
    live::feed::Rate,
    runs::{
        load as loads,
        model::{Origin, Run},
        progress,
    },
    web::{
        badge::{self, Pill},
        format::{self, Figure},
        markdown,
        series_style::{Mark, Marks},
    },
};

/// So many characters of a note stand in a list.
const NOTE: usize = 80;

/// A run with what a list says of it in other words.
#[derive(Clone, Debug)]
pub struct Line {
    /// The run.
    pub run: Run,
    /// Its target's colour.
    pub mark: Mark,
    /// Scenario, parameters and load: `hash · 10 VUs · 10 s`.
    pub load: String,
}

impl Line {
    /// The line of a run.
    pub fn new(run: Run, marks: &Marks) -> Self {
        Self { mark: marks.of(&run.target), load: load(&run), run }
    }

    /// What it is worth, or how far it is.
    pub fn state(&self) -> Pill {
        state(&self.run)
    }

    /// Who did it.
    pub fn agent(&self) -> &str {
        match (&self.run.agent, self.run.origin) {
            (Some(agent), _) => agent,
            (None, Origin::Import) => "imported",
            (None, Origin::Agent) => "–",
        }
    }

    /// How hard it was loaded, with everything that is known.
    pub fn how_hard(&self) -> Option<String> {
        self.run.load.as_ref().map(loads::whole).or_else(|| how_hard(&self.run))
    }

    /// The beginning of its note.
    pub fn note(&self) -> Option<String> {
        let first = markdown::beginning(self.run.note.as_deref()?);
        let short: String = first.chars().take(NOTE).collect();
        Some(if short.len() < first.len() { format!("{short}…") } else { short })
    }

    /// Whether its figures may be used.
    pub fn counts(&self) -> bool {
        self.run.counts()
    }
}

/// A run that has not ended, with what is left of it.
#[derive(Clone, Debug)]
pub struct Doing {
    /// The run.
    pub line: Line,
    /// The share of its time that has passed; none while it waits, or if it can't be told.
    pub share: Option<f64>,
    /// In words: `12 s left`, `takes 15 s`.
    pub left: String,
    /// How fast it is; none until its first second has ended.
    pub rate: Option<Rate>,
}

impl Doing {
    /// What a run is at, judged by others of the same plan.
    pub fn new(run: Run, marks: &Marks, others: &[&Run], now_ms: i64) -> Self {
        let mut doing = Self { share: None, left: String::new(), rate: None, line: Line::new(run, marks) };
        doing.look_again(others, None, now_ms);
        doing
    }

    /// The same run later on.
    pub fn look_again(&mut self, others: &[&Run], rate: Option<Rate>, now_ms: i64) {
        let run = &self.line.run;
        let begun = run.phase != Phase::Queued;
        self.left = left_text(progress::left_s(run, others, now_ms), begun);
        self.share = progress::share(run, others, now_ms).filter(|_| begun);
        self.rate = rate;
    }

    /// How fast it is, in words: `1,200 requests/s`.
    pub fn speed(&self) -> Option<String> {
        let Rate { rps, failed_rps } = self.rate?;
        let failed = if failed_rps > 0.0 { format!(", {} failed/s", whole(failed_rps)) } else { String::new() };
        Some(format!("{}\u{a0}requests/s{failed}", whole(rps)))
    }

    /// What is being done.
    pub fn sentence(&self) -> &'static str {
        match self.line.run.phase {
            Phase::Queued => "It waits for an agent.",
            Phase::Leased => "An agent was told to do it.",
            Phase::Preparing => "The agent starts the target in its sandbox and waits until the machine is quiet.",
            Phase::WarmingUp => "k6 warms the target up; these figures are thrown away.",
            Phase::Measuring => "k6 measures.",
            _ => "The agent gathers the results.",
        }
    }
}

/// Without the digits that change with every second.
fn whole(value: f64) -> String {
    format::number(Some(if value >= 10.0 { value.round() } else { value })).text().to_owned()
}

fn left_text(left: Option<f64>, begun: bool) -> String {
    let text = |seconds: f64| format::duration(Some(seconds.ceil())).text().to_owned();
    match (left, begun) {
        (None, _) => "as long as its script takes".to_owned(),
        (Some(seconds), true) if seconds < 0.5 => "any moment".to_owned(),
        (Some(seconds), true) => format!("{} left", text(seconds)),
        (Some(seconds), false) => format!("takes {}", text(seconds)),
    }
}

/// What a run is worth, or how far it is.
pub fn state(run: &Run) -> Pill {
    match run.verdict.filter(|_| run.phase == Phase::Finished) {
        Some(verdict) => badge::state(verdict.as_str()).about(because(run)),
        None => badge::state(run.phase.as_str()),
    }
}

/// Why it is not simply valid, in one line.
fn because(run: &Run) -> String {
    run.reasons.iter().map(|reason| reason.text.as_str()).collect::<Vec<_>>().join("; ")
}

/// Scenario, parameters and load of a run.
pub fn load(run: &Run) -> String {
    let mut parts: Vec<String> = run.scenario.iter().cloned().collect();
    parts.extend(run.parameters.iter().map(|(name, value)| format!("{name}={value}")));
    parts.extend(how_hard(run));
    if let Some(seconds) = run.duration_s.or(run.figures.measured_s) {
        parts.push(seconds_text(seconds).text().to_owned());
    }
    if parts.is_empty() { "–".to_owned() } else { parts.join(" · ") }
}

fn how_hard(run: &Run) -> Option<String> {
    // Of an import no more is known than how many there were at most.
    run.load.as_ref().map(loads::words).or_else(|| run.vus.map(vus_text))
}

fn vus_text(vus: u32) -> String {
    let count = format::count(Some(u64::from(vus)));
    format!("{}\u{a0}VU{}", count.text(), if vus == 1 { "" } else { "s" })
}

/// What k6 measured is never quite a whole second; nobody wants to read that in a list.
fn seconds_text(seconds: f64) -> Figure {
    format::duration(Some(if seconds >= 3.0 { seconds.round() } else { seconds }))
}

#[cfg(test)]
mod tests {
    use brewbench_agent::wire::load::Load;

    use super::*;
    use crate::runs::{
        load::tests::rate,
        testing::{failed, finished, judged, measuring},
        verdict::Verdict,
    };

    fn plain(text: &str) -> String {
        text.replace('\u{a0}', " ")
    }

    #[test]
    fn the_load_names_what_is_known_and_nothing_else() {
        let mut run = finished("servy", 1);
        run.parameters.insert("size".to_owned(), "10k".to_owned());
        assert_eq!(plain(&load(&run)), "hash · size=10k · 10 VUs · 10 s");
        run.parameters.clear();
        (run.load, run.vus, run.duration_s, run.figures.measured_s) = (None, Some(1), None, Some(10.02));
        assert_eq!(plain(&load(&run)), "hash · 1 VU · 10 s");
        (run.load, run.figures.measured_s) = (Some(Load::Script), None);
        assert_eq!(load(&run), "hash · load of the script");
        run.load = Some(rate(2_000, 10.0));
        assert_eq!(plain(&load(&run)), "hash · 2,000 iterations/s");
        (run.load, run.vus) = (None, None);
        (run.origin, run.scenario) = (Origin::Import, None);
        assert_eq!(load(&run), "–");
    }

    #[test]
    fn a_finished_run_shows_its_verdict_and_any_other_its_phase() {
        assert!(state(&judged(finished("servy", 1), Verdict::Suspect, "why")).to_string().contains("suspect"));
        assert!(state(&failed("servy", "lost", "silence")).to_string().contains("lost"));
        assert!(state(&measuring("servy")).to_string().contains("measuring"));
    }

    #[test]
    fn what_runs_says_what_is_left_and_what_waits_how_long_it_takes() {
        let run = measuring("servy");
        let began = run.started_at_ms.expect("it was begun");
        let doing = |run: Run, at| Doing::new(run, &Marks::default(), &[], began + at);
        assert_eq!(plain(&doing(run.clone(), 3_500).left), "10 s left");
        assert_eq!(doing(run.clone(), 60_000).left, "any moment");
        let mut fast = doing(run.clone(), 3_500);
        assert_eq!(fast.speed(), None);
        fast.look_again(&[], Some(Rate { rps: 1_234.5, failed_rps: 0.5 }), began + 4_500);
        let speed = fast.speed().map(|speed| plain(&speed));
        assert_eq!(
            (plain(&fast.left), speed.as_deref()),
            ("9 s left".to_owned(), Some("1,235 requests/s, 0.500 failed/s"))
        );
        let waiting = Run { phase: Phase::Queued, started_at_ms: None, ..run.clone() };
        let waiting = doing(waiting, 0);
        assert_eq!((plain(&waiting.left), waiting.share), ("takes 14 s".to_owned(), None));
        assert_eq!(doing(Run { duration_s: None, ..run }, 0).share, None);
    }
}
