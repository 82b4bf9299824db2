//! The sections of a run's page.

use crate::results::pages::run::show::RunView;
use crate::web::contents::Contents;

impl RunView {
    /// Returns the sections of the page.
    pub(super) fn contents(&self) -> Contents {
        let figures = self.figures.as_ref();
        let all = [
            (self.progress.is_some(), "doing", "Progress"),
            (!self.cards.is_empty(), "results", "Results"),
            (!self.charts.is_empty(), "charts", "Charts"),
            (self.time_series.is_some(), "seconds-of-run", "Time series"),
            (self.generators.is_some(), "generators", "Generators"),
            (true, "configuration", "Configuration"),
            (!self.is_import(), "stages", "Phases"),
            (figures.is_some_and(|figures| !figures.metrics.trends.is_empty()), "distributions", "Distributions"),
            (figures.is_some(), "counters", "Counters and checks"),
            (self.evidence.is_some(), "machine", "Machine"),
            (self.evidence.as_ref().is_some_and(|seen| !seen.groups.is_empty()), "environment", "Environment"),
            (self.logs.is_some(), "logs", "Logs"),
        ];
        Contents::new(all.into_iter().filter(|(is_shown, ..)| *is_shown).map(|(_, id, title)| (id, title)))
    }
}
