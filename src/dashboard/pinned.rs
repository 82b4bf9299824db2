//! The trends on the dashboard, each with its history as a sparkline: those that the user has pinned, or else those that
//! changed most.

use std::sync::Arc;

use crate::{
    app::{error::Result, state::AppState},
    auth::caller::Caller,
    trends::{
        cell::TrendCell,
        largest::LargestChanges,
        model::{Change, MIN_USEFUL, Trend},
        pins::{self, TrendCache},
    },
    web::{
        address::segment,
        card::Tone,
        format,
        series_style::Mark,
        sparkline::{ChangePoint, Sparkline},
        time_ago,
    },
};

/// How many trends are shown if none is pinned.
const MOST: usize = 3;

/// What dashboards have shown; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Caches {
    pinned: TrendCache,
    largest: LargestChanges,
}

/// The trends of the page.
#[derive(Debug)]
pub struct Trends {
    /// Whether the user has pinned them.
    pub are_pinned: bool,
    /// The trends.
    pub list: Vec<ShownTrend>,
}

/// A trend of the page.
#[derive(Debug)]
pub struct ShownTrend {
    /// Name of the target.
    pub target: String,
    /// The id of the cell.
    cell: String,
    /// Describes the cell.
    pub setting: String,
    /// The colour of its target.
    pub mark: Mark,
    /// None if the cell has no more runs that count.
    pub trend: Option<Arc<Trend>>,
}

/// Loads the trends that a caller has pinned, or those that changed most; a token without a user has no pins.
pub async fn load(state: &AppState, caches: &Caches, caller: &Caller) -> Result<Trends> {
    let pins = if caller.user_id.is_some() { pins::list(state, caller).await? } else { Vec::new() };
    let mut list = Vec::with_capacity(pins.len());
    for pin in &pins {
        let trend = caches.pinned.trend(state, &pin.target, &pin.cell).await?;
        list.push(ShownTrend::new(pin.target.clone(), pin.cell.clone(), pin.setting.clone(), trend));
    }
    if pins.is_empty() {
        let largest = caches.largest.load(state, MOST).await?;
        list.extend(largest.into_iter().map(|trend| {
            let cell = &trend.cell;
            ShownTrend::new(cell.target.clone(), cell.id.clone(), cell.setting(), Some(trend))
        }));
    }
    let targets: Vec<&str> = list.iter().map(|one| one.target.as_str()).collect();
    let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
    for one in &mut list {
        one.mark = marks.of(&one.target);
    }
    Ok(Trends { are_pinned: !pins.is_empty(), list })
}

impl ShownTrend {
    fn new(target: String, cell: String, setting: String, trend: Option<Arc<Trend>>) -> Self {
        Self { target, cell, setting, mark: Mark(0), trend }
    }

    /// Returns the path of the trend.
    pub fn path(&self) -> String {
        format!("/trends/{}/{}", segment(&self.target), segment(&self.cell))
    }

    /// Describes the cell without the script's revision and the load generator.
    pub fn summary(&self) -> String {
        let Some(trend) = &self.trend else { return self.setting.clone() };
        let TrendCell { size, scenario, parameters, load, agent, .. } = &trend.cell;
        let parameters = parameters.iter().map(|(name, value)| format!("{name}={value}"));
        let agent = agent.as_ref().map_or_else(|| "imported".to_owned(), |agent| format!("on {agent}"));
        let size = size.iter().map(|size| size.name.clone());
        let parts = scenario.iter().cloned().chain(parameters).chain(load.iter().cloned()).chain(size);
        parts.chain([agent]).collect::<Vec<_>>().join(" · ")
    }

    /// Returns the history.
    pub fn spark(&self) -> Sparkline {
        let points = self.trend.iter().flat_map(|trend| &trend.points).map(|point| point.value).collect();
        let changes =
            self.trend.iter().flat_map(|trend| trend.changes_not_dismissed()).filter_map(|change| {
                Some(ChangePoint { at: change.at?, change: change.ratio - 1.0, tone: tone(change) })
            });
        Sparkline::with_changes(points, "requests/s", self.mark, changes.collect())
    }

    /// Returns the last value with its unit.
    pub fn last(&self) -> String {
        let last = self.trend.as_ref().and_then(|trend| trend.points.last());
        format!("{}\u{a0}requests/s", format::number(last.map(|point| point.value)).text())
    }

    /// Returns the interval of the newest version's median, if it has enough points.
    pub fn interval(&self) -> Option<String> {
        let span = self.trend.as_ref()?.spans.last()?;
        let figure = |value: f64| format::number(Some(value)).text().to_owned();
        let version = span.version.as_deref().unwrap_or("unknown version");
        let [median, low, high] = [span.median, span.low?, span.high?].map(figure);
        Some(format!("{version}: median {median}, 95 % interval {low} to {high}"))
    }

    fn lasting(&self) -> Option<&Change> {
        self.trend.as_ref()?.lasting_change()
    }

    /// Describes the last change, or that there is none: `+14.0 % since 0.5.0`.
    pub fn change(&self) -> String {
        let points = self.trend.as_ref().map_or(0, |trend| trend.points.len());
        match self.lasting() {
            Some(change) => {
                let day = || time_ago::exact(Some(change.at_ms)).chars().take(10).collect();
                let version =
                    change.version.clone().filter(|version| Some(version) != change.previous_version.as_ref());
                let since = version.unwrap_or_else(day);
                let word = if change.is_new() { ", new" } else { "" };
                format!("{} since {since}{word}", format::change(Some(change.ratio - 1.0)).text())
            }
            None if points < MIN_USEFUL => {
                format!("{}; too few to detect a change", format::plural(points, "point"))
            }
            None => format!("no change in {}", format::plural(points, "point")),
        }
    }

    /// Returns the class of the last change.
    pub fn class(&self) -> &'static str {
        self.lasting().map_or("soft", |change| tone(change).class())
    }

    /// Whether the last change is not new, and nobody has confirmed or dismissed it.
    pub fn is_open(&self) -> bool {
        self.lasting().is_some_and(Change::is_open)
    }
}

fn tone(change: &Change) -> Tone {
    match change.improved {
        Some(true) => Tone::Good,
        Some(false) => Tone::Bad,
        None => Tone::Plain,
    }
}
