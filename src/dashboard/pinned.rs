//! The trends that the user has pinned, each with its history as a sparkline.

use std::sync::Arc;

use crate::{
    app::{error::Result, state::AppState},
    auth::caller::Caller,
    trends::{
        cell::TrendCell,
        model::{Change, ChangeStatus, MIN_USEFUL, Pin, Trend},
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

/// A pinned trend.
#[derive(Debug)]
pub struct Pinned {
    /// The pin.
    pub pin: Pin,
    /// The colour of its target.
    pub mark: Mark,
    /// None if the cell has no more runs that count.
    pub trend: Option<Arc<Trend>>,
}

/// Loads the pinned trends of a caller; none for a token without a user.
pub async fn load(state: &AppState, cache: &TrendCache, caller: &Caller) -> Result<Vec<Pinned>> {
    if caller.user_id.is_none() {
        return Ok(Vec::new());
    }
    let pins = pins::list(state, caller).await?;
    let targets: Vec<&str> = pins.iter().map(|pin| pin.target.as_str()).collect();
    let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
    let mut all = Vec::with_capacity(pins.len());
    for pin in pins {
        let trend = cache.trend(state, &pin.target, &pin.cell).await?;
        all.push(Pinned { mark: marks.of(&pin.target), trend, pin });
    }
    Ok(all)
}

impl Pinned {
    /// Returns the path of the trend.
    pub fn path(&self) -> String {
        format!("/trends/{}/{}", segment(&self.pin.target), segment(&self.pin.cell))
    }

    /// Describes the cell without the script's revision and the load generator.
    pub fn summary(&self) -> String {
        let Some(trend) = &self.trend else { return self.pin.setting.clone() };
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
        let changes = self
            .changes()
            .filter_map(|change| Some(ChangePoint { at: change.at?, change: change.ratio - 1.0, tone: tone(change) }));
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

    /// Returns the changes that were not dismissed.
    fn changes(&self) -> impl DoubleEndedIterator<Item = &Change> {
        let is_dismissed = |change: &Change| {
            change.annotation.as_ref().is_some_and(|annotated| annotated.status == ChangeStatus::Dismissed)
        };
        self.trend.iter().flat_map(|trend| &trend.changes).filter(move |change| !is_dismissed(change))
    }

    /// Returns the last change that lasts.
    fn lasting(&self) -> Option<&Change> {
        self.changes().rev().find(|change| change.returned.is_none())
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
                format!("{} since {since}", format::change(Some(change.ratio - 1.0)).text())
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

    /// Whether nobody has confirmed or dismissed the last change.
    pub fn is_open(&self) -> bool {
        self.lasting().is_some_and(|change| change.annotation.is_none())
    }
}

fn tone(change: &Change) -> Tone {
    match change.improved {
        Some(true) => Tone::Good,
        Some(false) => Tone::Bad,
        None => Tone::Plain,
    }
}
