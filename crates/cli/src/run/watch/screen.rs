//! A run in progress in a terminal: a bar, and sparklines of throughput and p99 below it. Without a terminal: a line
//! per second.

use std::{collections::VecDeque, time::Instant};

use brewbench::{
    live::status::RunNow,
    results::series::model::{SecondBody, UsageBody},
};
use brewbench_wire::Phase;
use indicatif::{ProgressBar, ProgressStyle};

use crate::{
    duration,
    sparkline::sparkline,
    table::{figure, plain, thousands},
};

const STEPS: u64 = 1_000;
/// The most seconds that a sparkline shows.
const MAX_SECONDS: usize = 50;
/// Columns beside a sparkline: the name of the metric and its last value.
const BESIDE: usize = 26;

/// The display.
pub struct Screen {
    bar: ProgressBar,
    /// The last known state of the run and when it was received.
    now: Option<(RunNow, Instant)>,
    /// CPU cores used by target and k6.
    cores: (Option<f64>, Option<f64>),
    /// Throughput and p99 of the last seconds.
    past: VecDeque<(Option<f64>, Option<f64>)>,
}

impl Screen {
    /// Creates an empty display.
    pub fn new() -> anyhow::Result<Self> {
        let bar = ProgressBar::new(STEPS);
        bar.set_style(ProgressStyle::with_template("{bar:40} {prefix}\n{msg}")?.progress_chars("━╸─"));
        Ok(Self { bar, now: None, cores: (None, None), past: VecDeque::new() })
    }

    /// Shows a new phase or state of the run.
    pub fn phase(&mut self, now: RunNow) {
        let is_new = self.now.as_ref().is_none_or(|(before, _)| (before.phase, &before.step) != (now.phase, &now.step));
        self.now = Some((now, Instant::now()));
        if self.bar.is_hidden() && is_new {
            eprintln!("{}", self.status());
        }
        self.tick();
    }

    /// Updates the remaining time.
    pub fn tick(&mut self) {
        let share = self.now.as_ref().and_then(|(now, _)| now.share);
        let total = self.now.as_ref().and_then(|(now, _)| Some(now.remaining_s? / (1.0 - now.share?)));
        let share = match (total, self.remaining_s()) {
            (Some(total), Some(left)) if total.is_finite() && total > 0.0 => 1.0 - left / total,
            _ => share.unwrap_or(0.0),
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of 0 to 1")]
        self.bar.set_position((share.clamp(0.0, 1.0) * STEPS as f64) as u64);
        self.bar.set_prefix(self.status());
    }

    /// Updates the CPU usage.
    pub fn usage(&mut self, usage: &UsageBody) {
        self.cores = (usage.target.cores, usage.generator.cores);
    }

    /// Shows one second of load.
    pub fn second(&mut self, second: &SecondBody) {
        if self.bar.is_hidden() {
            eprintln!("{}", self.line(second));
            return;
        }
        self.past.push_back((second.rps, second.succeeded.p99_ms));
        if self.past.len() > MAX_SECONDS {
            self.past.pop_front();
        }
        self.bar.set_message(self.panel(second, textwrap::termwidth()));
    }

    /// Shows a connection error.
    pub fn error(&mut self, message: &str) {
        if self.bar.is_hidden() && self.bar.message() != message {
            eprintln!("{message}");
        }
        self.bar.set_message(message.to_owned());
    }

    fn remaining_s(&self) -> Option<f64> {
        let (now, since) = self.now.as_ref()?;
        let passed = if now.phase == Phase::Queued { 0.0 } else { since.elapsed().as_secs_f64() };
        now.remaining_s.map(|left| (left - passed).max(0.0))
    }

    fn status(&self) -> String {
        let words = |now: &RunNow| now.step.as_deref().map_or_else(|| now.phase.describe(), plain);
        let phase = self.now.as_ref().map_or(String::new(), |(now, _)| words(now));
        let left = self.remaining_s().filter(|left| *left > 0.0);
        left.map_or(phase.clone(), |left| format!("{phase} · {} left", duration::text(left)))
    }

    /// Formats the sparklines and the last second.
    fn panel(&self, second: &SecondBody, columns: usize) -> String {
        let width = MAX_SECONDS.min(columns.saturating_sub(BESIDE)).max(1);
        let [rates, latencies]: [Vec<_>; 2] =
            [self.past.iter().map(|(rps, _)| *rps).collect(), self.past.iter().map(|(_, p99)| *p99).collect()];
        let line = |name: &str, values: &[Option<f64>]| {
            format!("{name:<10} {:<width$} {:>9}", sparkline(values, width), figure(values.last().copied().flatten()))
        };
        let (target, generator) = self.cores;
        format!(
            "{}\n{}\n{} s · {} failed · p50 {} ms · CPU cores: target {}, k6 {}",
            line("requests/s", &rates),
            line("p99 ms", &latencies),
            second.at_s.round(),
            thousands(second.failed.count as f64),
            figure(second.succeeded.p50_ms),
            cores(target),
            cores(generator),
        )
    }

    /// Formats a second in at most 80 columns.
    fn line(&self, second: &SecondBody) -> String {
        let latency = &second.succeeded;
        let (target, generator) = self.cores;
        format!(
            "{:>4.0} s {:>7} req/s {:>4} failed · p50 {} p99 {} ms · CPU {} k6 {}",
            second.at_s,
            figure(second.rps),
            thousands(second.failed.count as f64),
            figure(latency.p50_ms),
            figure(latency.p99_ms),
            cores(target),
            cores(generator),
        )
    }
}

fn cores(used: Option<f64>) -> String {
    used.map_or("–".to_owned(), |used| format!("{used:.2}"))
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use brewbench::results::series::model::LatencyBody;

    use super::*;

    #[test]
    fn the_panel_fits_the_terminal_and_shows_the_last_seconds() {
        let mut screen = Screen::new().expect("a screen");
        let second = |at_s: f64, rps: f64| SecondBody {
            at_s,
            length_s: 1.0,
            requests: 1,
            rps: Some(rps),
            failed_rps: None,
            iterations: 1,
            dropped_iterations: 0,
            received_bytes: 0,
            sent_bytes: 0,
            vus: None,
            succeeded: LatencyBody { p99_ms: Some(4.5), ..LatencyBody::default() },
            failed: LatencyBody::default(),
        };
        for at in 1..=90 {
            screen.past.push_back((Some(f64::from(at)), Some(4.5)));
            if screen.past.len() > MAX_SECONDS {
                screen.past.pop_front();
            }
        }
        for columns in [60, 80, 200] {
            let panel = screen.panel(&second(90.0, 90.0), columns);
            let lines: Vec<&str> = panel.lines().collect();
            assert_eq!(lines.len(), 3, "{panel}");
            assert!(lines.iter().all(|line| line.chars().count() <= columns), "{panel}");
            assert!(lines[0].starts_with("requests/s ") && lines[0].ends_with("█     90.00"), "{panel}");
            assert!(lines[1].ends_with("█     4.500"), "{panel}");
            assert!(lines[2].starts_with("90 s · 0 failed · p50 – ms"), "{panel}");
        }
    }
}
