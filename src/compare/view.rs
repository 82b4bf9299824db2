//! A complete comparison for pages and the API, built from runs and their context without I/O.

use serde::{Deserialize, Serialize};
use url::form_urlencoded;
use utoipa::ToSchema;

use super::{
    address::Address,
    answer::{Answer, Headline},
    cell::{Cell, Row, rows},
    charts,
    commits::{self, Commits},
    differences, equal_work, headline,
    knee::TargetKnee,
    matrix::Matrix,
    metric::Metric,
    notes, past,
    scatter::Scatter,
    selection::{By, Selection, Subject, select, with_versions},
    sweep::Sweep,
    trust::Trust,
};
use crate::{
    app::ids::{RunId, joined},
    compare::{
        chosen::Options,
        comparability,
        comparison_context::ComparisonContext,
        excluded::{ExcludedRun, excluded_runs},
        note::{Level, Note},
        setting::Setting,
        significance::{self, Base, Questions},
    },
    runs::model::Run,
    web::{chart::Chart, format::plural, series_style::Marks},
};

/// Maximum number of runs listed on a page; the JSON has all.
const MAX_LISTED: usize = 500;

/// Maximum number of cells for which the scatter is shown.
const MAX_SCATTERED: usize = 60;

/// A comparison of runs. Template: `compare/_comparison.html`, variable `comparison`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Comparison {
    /// Title, e.g. `servy against gosherve`.
    pub title: String,
    /// What all runs share, in one line.
    pub shared: String,
    /// The compared subjects, by name.
    pub subjects: Vec<Subject>,
    /// The commits of targets that were built from a repository; null if none was.
    #[serde(default)]
    pub commits: Option<Commits>,
    /// Key of the subject that differences are relative to.
    pub baseline: Option<String>,
    /// What distinguishes the subjects.
    #[serde(default)]
    pub by: By,
    /// The number of questions, and the repetitions needed to answer them.
    pub asked: Questions,
    /// The result in sentences.
    pub answer: Answer,
    /// URL that compares rows despite their confounders; null if there are none.
    pub with_confounders: Option<String>,
    /// URL of a form that measures targets again in one experiment, if they were not measured in turn.
    #[serde(default)]
    pub measure_again: Option<String>,
    /// Notes on the result.
    pub notes: Vec<Note>,
    /// The figures; cells of one row may be compared.
    pub rows: Vec<Row>,
    /// Runs that ended but do not count, and why.
    pub excluded: Vec<ExcludedRun>,
    /// Where the throughput of each target stops rising, if the settings are a sweep of loads.
    #[serde(default)]
    pub knees: Vec<TargetKnee>,
    /// Chart of the differences, only for pages.
    #[serde(skip)]
    pub differences: Option<Chart>,
    /// Further charts, only for pages.
    #[serde(skip)]
    pub charts: Vec<Chart>,
    /// Time-series charts of one setting, only for pages.
    #[serde(skip)]
    pub timeseries: Option<TimeseriesCharts>,
    /// The minimum effect, if not the default: `rps:2,p99_ms:5`.
    #[serde(default)]
    pub min_effect: String,
    /// The metric that is tested first, if not the default.
    #[serde(default)]
    pub primary: Option<Metric>,
    /// Its page on the site.
    #[serde(skip)]
    pub address: Address,
    /// Its options.
    #[serde(skip)]
    pub options: Options,
    /// Where the comparison is shown.
    #[serde(skip)]
    pub place: Surface,
}

/// Where a comparison is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Surface {
    /// On a page of the site, which can link to runs.
    #[default]
    Inside,
    /// Outside a login: in a report or behind a share link.
    Outside,
}

/// Time-series charts of one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeseriesCharts {
    /// The charts.
    pub charts: Vec<Chart>,
    /// Index of the setting among the rows.
    pub setting: usize,
    /// Runs that are not included.
    pub missing: Missing,
}

/// Returns the measurements; if there are none, the profiled runs, to show why they are not compared.
fn without_profiled(runs: Vec<Run>) -> Vec<Run> {
    let (profiled, measured): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|run| run.spec.profiled);
    if measured.is_empty() { profiled } else { measured }
}

impl Comparison {
    /// Compares runs. `baseline` is a key or a target; the default is the first subject with figures.
    pub fn new(runs: Vec<Run>, marks: &Marks, baseline: Option<&str>) -> Self {
        let options = Options { baseline: baseline.map(str::to_owned), ..Options::default() };
        Self::by(runs, marks, &options, &ComparisonContext::default())
    }

    /// Compares runs with options and with the context of the runs.
    pub fn by(runs: Vec<Run>, marks: &Marks, options: &Options, known: &ComparisonContext) -> Self {
        let ids: Vec<_> = runs.iter().map(|run| run.id.clone()).collect();
        let runs = with_versions(without_profiled(runs));
        // More than two single runs would be too many subjects.
        let by = if options.by == By::Run && runs.len() != 2 { By::default() } else { options.by };
        let Selection { subjects, settings, groups } = select(runs, marks, by);
        let named = |name: &str| subjects.iter().position(|subject| subject.key == name || subject.target == name);
        let has_figures = groups.iter().filter(|group| group.runs.iter().any(Run::counts));
        let first = has_figures.map(|group| group.subject).min().unwrap_or(0);
        let chosen = options.baseline.as_deref().and_then(named);
        let base = chosen.unwrap_or(first);
        let mut rows = rows(settings, groups);
        for row in &mut rows {
            add_context(row, by, &subjects, known);
        }
        let compared = Base { subject: base, is_chosen: chosen.is_some() };
        let questions = significance::answer(&mut rows, compared, options, known);
        let address = options.address.clone().unwrap_or_else(|| Address::of_runs(&ids));
        let has_confounders = !options.allow_confounders
            && rows.iter().any(|row| row.compared_cells().count() > 1 && !row.confounders.is_empty());
        let excluded = excluded_runs(&subjects, &rows);
        let sweep = Sweep::new(&subjects, &rows, known);
        let knees = sweep.as_ref().map(Sweep::knees).unwrap_or_default();
        let notes: Vec<Note> = equal_work::notes(&subjects, &rows)
            .into_iter()
            .chain(equal_work::headers(&subjects, &rows, &known.environments))
            .chain(notes::notes(&subjects, &rows, questions, &excluded))
            .chain(sweep.as_ref().and_then(notes::knees))
            .collect();
        let charts = sweep.as_ref().map_or_else(|| charts::charts(&subjects, &rows), Sweep::charts);
        let trust = Trust::new(&rows, &notes);
        let mut answer = Answer::new((&subjects, base), &rows, &excluded, options, trust);
        // A knee search decides itself how often it measures.
        answer.more = answer.more.filter(|_| !known.is_knee_search);
        Self {
            title: headline::title(&subjects, base, by),
            shared: headline::in_common(&rows),
            commits: commits::commits(&rows, base, &known.environments),
            baseline: subjects.get(base).map(|subject| subject.key.clone()),
            answer,
            notes,
            measure_again: measure_again(&subjects, base, &rows),
            excluded,
            knees,
            by,
            asked: questions,
            with_confounders: has_confounders.then(|| options.despite_confounders(&address)),
            differences: differences::chart(&subjects, base, &rows),
            charts,
            subjects,
            rows,
            timeseries: None,
            min_effect: options.min_effect.text(),
            primary: options.primary,
            address,
            options: options.clone(),
            place: Surface::default(),
        }
    }

    /// Scatter of the repetitions by setting; empty above the maximum number of cells.
    pub fn scatters(&self) -> Vec<(&Setting, Vec<Scatter<'_>>)> {
        let cells: usize = self.rows.iter().map(|row| row.compared_cells().count()).sum();
        let all = |row| Scatter::of_cells(&self.subjects, row);
        if cells > MAX_SCATTERED { Vec::new() } else { self.rows.iter().map(|row| (&row.setting, all(row))).collect() }
    }

    /// Returns the comparison for readers without access to the site.
    #[must_use]
    pub fn outside(self) -> Self {
        Self { place: Surface::Outside, ..self }
    }

    /// Whether it is shown on the site.
    pub fn is_inside(&self) -> bool {
        self.place == Surface::Inside
    }

    /// URL for accepting differences in work; none if there are none or it is shown outside the site.
    pub fn acceptance(&self) -> Option<&'static str> {
        let is_open = self.rows.iter().any(|row| !row.has_equal_work());
        (self.is_inside() && is_open).then_some("#accept")
    }

    /// Ids of its runs, by setting.
    pub fn run_ids(&self) -> Vec<RunId> {
        self.rows.iter().flat_map(|row| &row.cells).flat_map(|cell| &cell.runs).map(|run| run.id.clone()).collect()
    }

    /// Returns the URL of the scripts' own metrics.
    pub fn script_metrics_url(&self) -> String {
        self.address.script_metrics(self.options.parameters())
    }

    /// Whether a subject is the baseline; a single subject has none.
    pub fn is_baseline(&self, subject: &Subject) -> bool {
        self.subjects.len() > 1 && self.baseline.as_deref() == Some(subject.key.as_str())
    }

    /// Challenger and baseline, if there are two subjects.
    pub fn pair(&self) -> Option<(&Subject, &Subject)> {
        match self.subjects.as_slice() {
            [one, other] if self.is_baseline(one) => Some((other, one)),
            [one, other] => Some((one, other)),
            _ => None,
        }
    }

    /// The result, if there is only one.
    pub fn only(&self) -> Option<&Headline> {
        let [only] = self.answer.headlines.as_slice() else { return None };
        Some(only)
    }

    /// Query of the page with these runs and options, and another baseline.
    pub fn swapped(&self) -> Option<String> {
        let (challenger, _) = self.pair().filter(|_| self.is_inside())?;
        let options = Options { baseline: Some(challenger.key.clone()), ..self.options.clone() };
        Some(self.address.with(options.parameters()))
    }

    /// Query parameters of the page that its form of options keeps.
    pub fn kept(&self) -> impl Iterator<Item = (&'static str, String)> {
        let accepted = self.options.allow_confounders.then(|| ("allow_confounders", "true".to_owned()));
        self.address.selection.iter().cloned().chain(accepted)
    }

    /// Query parameters of the page that the form of its time series keeps.
    pub fn kept_for_series(&self) -> impl Iterator<Item = (&'static str, String)> {
        let options = Options { setting: None, ..self.options.clone() };
        self.address.selection.iter().cloned().chain(options.parameters())
    }

    /// Ids of the runs of the baseline and of the challenger, separated by commas, if there are two subjects.
    pub fn sides(&self) -> Option<[String; 2]> {
        let (challenger, baseline) = self.pair()?;
        let runs = |subject: &Subject| {
            let cells = self.rows.iter().flat_map(|row| &row.cells);
            let own = cells.filter(|cell| self.subjects[cell.subject].key == subject.key);
            joined(&own.flat_map(|cell| &cell.runs).map(|run| run.id.clone()).collect::<Vec<_>>())
        };
        Some([runs(baseline), runs(challenger)])
    }

    /// The metrics that tables show: what only some agents record, only if a run has it.
    pub fn columns(&self) -> Vec<Metric> {
        crate::metrics::compared().filter(|metric| !metric.is_recorded() || self.is_known(*metric)).collect()
    }

    fn is_known(&self, metric: Metric) -> bool {
        self.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.stat(metric).spread.is_some())
    }

    /// Matrices of the requested metric, or of throughput and p99. None for a single row or subject.
    pub fn matrices(&self) -> Vec<Matrix> {
        if self.rows.len() < 2 || self.subjects.len() < 2 {
            return Vec::new();
        }
        let default = || [Metric::Rps, Metric::P99Ms].into_iter().filter(|metric| self.is_known(*metric)).collect();
        let metrics: Vec<Metric> = self.options.matrix.map_or_else(default, |metric| vec![metric]);
        metrics.into_iter().map(|metric| Matrix::new(&self.subjects, &self.rows, metric)).collect()
    }

    /// The notes of one level.
    pub fn notes_of(&self, level: &Level) -> Vec<&Note> {
        self.notes.iter().filter(|note| note.level == *level).collect()
    }

    /// All runs by setting, up to the maximum that is listed.
    pub fn repetitions(&self) -> Vec<(&Setting, Vec<(&Subject, &Run)>)> {
        let mut room = MAX_LISTED;
        let mut all = Vec::new();
        for row in &self.rows {
            let runs =
                row.cells.iter().flat_map(|cell| cell.runs.iter().map(|run| (&self.subjects[cell.subject], run)));
            let listed: Vec<_> = runs.take(room).collect();
            room -= listed.len();
            if !listed.is_empty() {
                all.push((&row.setting, listed));
            }
        }
        all
    }

    /// Returns how many of `count` runs are not listed.
    pub fn unlisted(&self, count: usize) -> usize {
        count.saturating_sub(MAX_LISTED)
    }

    /// The excluded runs that are listed.
    pub fn listed_excluded(&self) -> &[ExcludedRun] {
        &self.excluded[..self.excluded.len().min(MAX_LISTED)]
    }

    /// Number of compared runs.
    pub fn run_count(&self) -> usize {
        self.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.runs.len()).sum()
    }
}

/// Adds to a row what limits its comparison, and the noise of its cells in the past.
fn add_context(row: &mut Row, by: By, subjects: &[Subject], known: &ComparisonContext) {
    if by != By::Run {
        let cells: Vec<Vec<&Run>> = row.cells.iter().map(|cell| cell.counting().collect()).collect();
        row.confounders = comparability::confounders(&cells, by, &known.environments);
        row.work = equal_work::different_work(row, subjects, known);
    }
    for cell in &mut row.cells {
        cell.noise = past::noise_of(cell.counting(), &known.history);
    }
}

/// Returns the URL of a form that measures the baseline and a target not measured in turn again.
///
/// Two versions of one target have none, as agents offer one version of a target.
fn measure_again(subjects: &[Subject], base: usize, rows: &[Row]) -> Option<String> {
    let base = subjects.get(base)?;
    let apart = |cell: &&Cell| {
        subjects[cell.subject].target != base.target && cell.stats.iter().any(|stat| stat.apart.is_some())
    };
    let cell = rows.iter().flat_map(|row| &row.cells).find(apart)?;
    let run = cell.counting().find(|run| run.spec.load.is_some())?;
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("run", run.id.as_str())
        .append_pair("target", &base.target)
        .finish();
    Some(format!("/experiments/new?{query}"))
}

/// Number of runs that count but are not in the time series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Runs without a time series.
    pub without_series: usize,
    /// Runs above the maximum per chart.
    pub too_many: usize,
}

impl Missing {
    /// Describes the missing runs; none if nothing is missing.
    pub fn describe(&self) -> Option<String> {
        let Self { without_series, too_many } = *self;
        let parts = [
            (without_series, format!("{} without a time series excluded", plural(without_series, "run"))),
            (too_many, format!("{} not drawn", plural(too_many, "run"))),
        ];
        let texts: Vec<String> = parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words).collect();
        (!texts.is_empty()).then(|| texts.join("; ") + ".")
    }
}

#[cfg(test)]
mod tests;
