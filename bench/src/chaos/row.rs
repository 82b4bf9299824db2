//! What one kind of failure did.

use std::time::Duration;

use super::ledger::Audit;

/// A row of the table.
#[derive(Debug, Default)]
pub struct Row {
    pub what: String,
    pub times: u32,
    pub runs: usize,
    pub lost: usize,
    pub doubled: usize,
    pub unmeasured: usize,
    pub left: usize,
    pub slowest: Duration,
}

impl Row {
    pub fn new(what: String) -> Self {
        Self { what, ..Self::default() }
    }

    pub fn add(&mut self, audit: Audit, took: Duration) {
        let Audit { runs, lost, doubled, unmeasured } = audit;
        self.times += 1;
        self.runs += runs;
        self.lost += lost;
        self.doubled += doubled;
        self.unmeasured += unmeasured;
        self.slowest = self.slowest.max(took);
    }

    pub fn print(&self) {
        let Self { what, times, runs, lost, doubled, unmeasured, left, slowest } = self;
        let slowest = slowest.as_secs_f64();
        println!("| {what} | {times} | {runs} | {lost} | {doubled} | {left} | {unmeasured} | {slowest:.1} |");
    }

    pub fn is_good(&self) -> bool {
        self.lost == 0 && self.doubled == 0 && self.left == 0
    }
}
