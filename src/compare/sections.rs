//! The sections of a comparison's page. Pure.

use crate::compare::view::Comparison;

impl Comparison {
    /// Returns the id and the title of each section, in the order of `compare/_comparison.html`.
    pub fn sections(&self) -> Vec<(&'static str, &'static str)> {
        let all = [
            (true, "results", "Results"),
            (!self.charts.is_empty(), "charts", "Charts"),
            (!self.matrices().is_empty(), "by-setting", "By setting"),
            (true, "metrics", "Metrics"),
            (self.timeseries.is_some(), "second-by-second", "Time series"),
            (!self.excluded.is_empty(), "excluded", "Excluded runs"),
            (true, "all-repetitions", "All repetitions"),
            (!self.scatters().is_empty(), "variation", "Variation"),
            (true, "method", "Method"),
        ];
        all.into_iter().filter(|(is_shown, ..)| *is_shown).map(|(_, id, title)| (id, title)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compare::testing::run, web::series_style::Marks};

    #[test]
    fn only_sections_that_are_shown_are_listed() {
        let comparison = Comparison::new(vec![run("gosherve", 1), run("servy", 1)], &Marks::default(), None);
        let ids: Vec<&str> = comparison.sections().into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["results", "charts", "metrics", "all-repetitions", "variation", "method"]);
    }
}
