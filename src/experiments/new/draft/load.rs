//! The load of a [`Draft`]. Pure.

use brewbench_wire::load::{Closed, Fault, Form, Load, LoadPart, Open};

use super::{Draft, Faults, number, time};
use crate::experiments::plan_fields::seconds_text;
use crate::{
    experiments::{
        knee::{model::Knee, objective::Objective},
        plan::{share, share_text},
        sweep::{self, Sweep, Unit},
    },
    runs::load::{parse_stages, stages_text},
};

/// The kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadBy {
    /// A number of virtual users.
    Vus,
    /// Virtual users in stages.
    VusStages,
    /// A number of iterations per second.
    Rate,
    /// Iterations per second in stages.
    RateStages,
    /// A search for the knee.
    Knee,
    /// The script's own options.
    Script,
}

impl LoadBy {
    /// All kinds in the order of the form.
    pub const ALL: [Self; 6] = [Self::Vus, Self::VusStages, Self::Rate, Self::RateStages, Self::Knee, Self::Script];

    /// Whether it is an arrival rate.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Rate | Self::RateStages | Self::Knee)
    }

    /// Returns the value in forms and URLs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vus => "vus",
            Self::VusStages => "vus-stages",
            Self::Rate => "rate",
            Self::RateStages => "rate-stages",
            Self::Knee => "knee",
            Self::Script => "script",
        }
    }

    /// Returns the label in the form.
    pub fn label(self) -> &'static str {
        match self {
            Self::Vus => "Constant virtual users",
            Self::VusStages => "Virtual users in stages",
            Self::Rate => "Constant rate",
            Self::RateStages => "Rate in stages",
            Self::Knee => "Knee search",
            Self::Script => "Defined by the script",
        }
    }

    /// Returns the explanation in the form.
    pub fn detail(self) -> &'static str {
        match self {
            Self::Vus => "each starts its next iteration when the previous one has ended",
            Self::VusStages => "starts at zero and changes linearly from level to level",
            Self::Rate => "iterations start on schedule, even if the target is slow",
            Self::RateStages => "starts at zero and changes linearly from rate to rate",
            Self::Knee => "finds the highest rate at which an objective holds",
            Self::Script => "the options of the script set load and duration",
        }
    }
}

impl Draft {
    /// Replaces the load.
    #[must_use]
    pub fn with_load(mut self, load: &Load) -> Self {
        let (Some(shape), is_open) = (load.shape(), matches!(load, Load::Open(_))) else {
            return Self { load: LoadBy::Script, ..self };
        };
        match (shape.form(), is_open) {
            (Form::Constant { level, .. }, false) => (self.load, self.vus) = (LoadBy::Vus, level.to_string()),
            (Form::Constant { level, .. }, true) => (self.load, self.rate) = (LoadBy::Rate, level.to_string()),
            (Form::Stages(stages), false) => (self.load, self.vus_stages) = (LoadBy::VusStages, stages_text(stages)),
            (Form::Stages(stages), true) => (self.load, self.rate_stages) = (LoadBy::RateStages, stages_text(stages)),
        }
        if let Form::Constant { .. } = shape.form() {
            self.duration = seconds_text(shape.duration().as_secs_f64());
        }
        if let Load::Open(open) = load
            && open.max_vus() != Open::default_vus(shape)
        {
            self.max_vus = open.max_vus().to_string();
        }
        self
    }

    /// Replaces the loads.
    #[must_use]
    pub fn with_loads(self, loads: &[Load]) -> Self {
        let Some(first) = loads.first() else { return Self { load: LoadBy::Script, ..self } };
        let mut draft = self.with_load(first);
        let sweep = Sweep::from_loads(loads).filter(|sweep| sweep.levels.len() > 1);
        if let Some(Sweep { unit, levels, max_vus, .. }) = sweep {
            match unit {
                Unit::Vus => draft.vus = sweep::text(&levels),
                Unit::Rate => draft.rate = sweep::text(&levels),
            }
            draft.max_vus = max_vus.map(|count| count.to_string()).unwrap_or_default();
        }
        draft
    }

    /// Replaces the load with a knee search.
    #[must_use]
    pub fn with_knee(self, knee: &Knee) -> Self {
        let Knee { objective, from, to, duration_s, precision, max_vus } = knee;
        Self {
            load: LoadBy::Knee,
            knee: format!("{from}..{to}"),
            objective: objective.to_string(),
            precision: share_text(*precision),
            duration: seconds_text(*duration_s),
            max_vus: max_vus.map(|count| count.to_string()).unwrap_or_default(),
            ..self
        }
    }

    /// Returns the loads or the knee search, or all faults.
    pub fn loads(&self) -> Result<(Vec<Load>, Option<Knee>), Faults> {
        let mut faults = Faults::default();
        let parsed = match self.load {
            LoadBy::Script => Some((vec![Load::Script], None)),
            LoadBy::Vus => self.levels(Unit::Vus, "vus", &self.vus, &mut faults).map(|loads| (loads, None)),
            LoadBy::Rate => self.levels(Unit::Rate, "rate", &self.rate, &mut faults).map(|loads| (loads, None)),
            LoadBy::VusStages => {
                self.stages("vus-stages", &self.vus_stages, &mut faults).map(|load| (vec![load], None))
            }
            LoadBy::RateStages => {
                self.stages("rate-stages", &self.rate_stages, &mut faults).map(|load| (vec![load], None))
            }
            LoadBy::Knee => self.search(&mut faults).map(|knee| (Vec::new(), Some(knee))),
        };
        parsed.filter(|_| faults.is_empty()).ok_or(faults)
    }

    fn levels(&self, unit: Unit, field: &'static str, text: &str, faults: &mut Faults) -> Option<Vec<Load>> {
        let levels = sweep::levels(text).map_err(|sentence| faults.add(field, &sentence)).ok();
        let (duration_s, max_vus) = (time("duration", &self.duration, faults), self.max_vus(faults));
        let loads = sweep::loads(unit, &levels?, duration_s?, max_vus?);
        loads.map_err(|fault| faults.add(self.field(fault.part), &fault.text)).ok()
    }

    fn stages(&self, field: &'static str, text: &str, faults: &mut Faults) -> Option<Load> {
        let stages = parse_stages(text).map_err(|sentence| faults.add(field, &sentence)).ok();
        let max_vus = self.max_vus(faults)?;
        let form = Form::Stages(stages?);
        let load = if self.load.is_open() {
            Open::new(form, max_vus).map(Load::Open)
        } else {
            Closed::new(form).map(Load::Closed)
        };
        load.map_err(|Fault { part, text }| faults.add(self.field(part), &text)).ok()
    }

    fn search(&self, faults: &mut Faults) -> Option<Knee> {
        let bounds = sweep::bounds(&self.knee).map_err(|sentence| faults.add("knee", &sentence)).ok();
        let objective = self.objective.parse::<Objective>().map_err(|sentence| faults.add("objective", &sentence)).ok();
        let precision = share(&self.precision).map_err(|sentence| faults.add("precision", &sentence)).ok();
        let (duration_s, max_vus) = (time("duration", &self.duration, faults), self.max_vus(faults));
        let (from, to) = bounds?;
        let knee =
            Knee { objective: objective?, from, to, duration_s: duration_s?, precision: precision?, max_vus: max_vus? };
        if let Err(fault) = knee.load(from).and_then(|_| knee.load(to)) {
            let field = if fault.part == LoadPart::Rate { "knee" } else { self.field(fault.part) };
            let text = if field == "knee" { fault.to_string() } else { fault.text };
            faults.add(field, &text);
            return None;
        }
        Some(knee)
    }

    /// Returns the maximum number of virtual users; the outer `None` if it is invalid.
    #[expect(clippy::option_option, reason = "inner `None`: the default")]
    fn max_vus(&self, faults: &mut Faults) -> Option<Option<u32>> {
        match self.max_vus.as_str() {
            text if self.load.is_open() && !text.is_empty() => number("max-vus", text, faults).map(Some),
            _ => Some(None),
        }
    }

    /// Returns the field of a part of the load.
    fn field(&self, part: LoadPart) -> &'static str {
        match part {
            LoadPart::Vus => "vus",
            LoadPart::Rate => "rate",
            LoadPart::Duration => "duration",
            LoadPart::Stages => self.load.as_str(),
            LoadPart::MaxVus => "max-vus",
        }
    }
}
