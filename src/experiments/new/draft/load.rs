//! The load of a [`Draft`]. Pure.

use brewbench_agent::wire::load::{Closed, Fault, Form, Load, Open, Part};

use super::{Draft, Faults, number, time, written};
use crate::{
    experiments::{
        knee::{model::Knee, objective::Objective},
        plan::{share, share_text},
        sweep::{self, Of, Sweep},
    },
    runs::load::{parse_stages, stages_text},
};

/// By what a load is given.
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
    /// All of them, in the order in which the form offers them.
    pub const ALL: [Self; 6] = [Self::Vus, Self::VusStages, Self::Rate, Self::RateStages, Self::Knee, Self::Script];

    /// Whether it is a rate.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Rate | Self::RateStages | Self::Knee)
    }

    /// The value in forms and addresses.
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

    /// What the form calls it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Vus => "Constant virtual users",
            Self::VusStages => "Virtual users in stages",
            Self::Rate => "Constant rate",
            Self::RateStages => "Rate in stages",
            Self::Knee => "Search for the knee",
            Self::Script => "As the script says",
        }
    }

    /// What it means.
    pub fn detail(self) -> &'static str {
        match self {
            Self::Vus => "each begins its next iteration when its last one has ended",
            Self::VusStages => "from zero, from one level to the next in a straight line",
            Self::Rate => "iterations begin on time, however slow the target answers",
            Self::RateStages => "the same with a rate that changes",
            Self::Knee => "the highest rate at which an objective holds",
            Self::Script => "its own options decide how hard and how long",
        }
    }
}

impl Draft {
    /// The same with another load.
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
            self.duration = written(shape.duration().as_secs_f64());
        }
        if let Load::Open(open) = load
            && open.max_vus() != Open::usual_vus(shape)
        {
            self.max_vus = open.max_vus().to_string();
        }
        self
    }

    /// The same with other loads.
    #[must_use]
    pub fn with_loads(self, loads: &[Load]) -> Self {
        let Some(first) = loads.first() else { return Self { load: LoadBy::Script, ..self } };
        let mut draft = self.with_load(first);
        if let Some(Sweep { of, levels, max_vus, .. }) = Sweep::of(loads).filter(|sweep| sweep.levels.len() > 1) {
            match of {
                Of::Vus => draft.vus = sweep::text(&levels),
                Of::Rate => draft.rate = sweep::text(&levels),
            }
            draft.max_vus = max_vus.map(|count| count.to_string()).unwrap_or_default();
        }
        draft
    }

    /// The same with a search.
    #[must_use]
    pub fn with_knee(self, knee: &Knee) -> Self {
        let Knee { objective, from, to, duration_s, precision, max_vus } = knee;
        Self {
            load: LoadBy::Knee,
            knee: format!("{from}..{to}"),
            objective: objective.to_string(),
            precision: share_text(*precision),
            duration: written(*duration_s),
            max_vus: max_vus.map(|count| count.to_string()).unwrap_or_default(),
            ..self
        }
    }

    /// The loads that it says, or the search; else what is wrong with them.
    pub fn how_hard(&self) -> Result<(Vec<Load>, Option<Knee>), Faults> {
        let mut faults = Faults::default();
        let said = match self.load {
            LoadBy::Script => Some((vec![Load::Script], None)),
            LoadBy::Vus => self.levels(Of::Vus, "vus", &self.vus, &mut faults).map(|loads| (loads, None)),
            LoadBy::Rate => self.levels(Of::Rate, "rate", &self.rate, &mut faults).map(|loads| (loads, None)),
            LoadBy::VusStages => {
                self.stages("vus-stages", &self.vus_stages, &mut faults).map(|load| (vec![load], None))
            }
            LoadBy::RateStages => {
                self.stages("rate-stages", &self.rate_stages, &mut faults).map(|load| (vec![load], None))
            }
            LoadBy::Knee => self.search(&mut faults).map(|knee| (Vec::new(), Some(knee))),
        };
        said.filter(|_| faults.0.is_empty()).ok_or(faults)
    }

    fn levels(&self, of: Of, field: &'static str, text: &str, faults: &mut Faults) -> Option<Vec<Load>> {
        let levels = sweep::levels(text).map_err(|sentence| faults.add(field, &sentence)).ok();
        let (lasts, max_vus) = (time("duration", &self.duration, faults), self.most(faults));
        let loads = sweep::loads(of, &levels?, lasts?, max_vus?);
        loads.map_err(|fault| faults.add(self.field(fault.part), &fault.text)).ok()
    }

    fn stages(&self, field: &'static str, text: &str, faults: &mut Faults) -> Option<Load> {
        let stages = parse_stages(text).map_err(|sentence| faults.add(field, &sentence)).ok();
        let max_vus = self.most(faults)?;
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
        let (lasts, max_vus) = (time("duration", &self.duration, faults), self.most(faults));
        let (from, to) = bounds?;
        let knee =
            Knee { objective: objective?, from, to, duration_s: lasts?, precision: precision?, max_vus: max_vus? };
        if let Err(fault) = knee.load(from).and_then(|_| knee.load(to)) {
            let field = if fault.part == Part::Rate { "knee" } else { self.field(fault.part) };
            let text = if field == "knee" { fault.to_string() } else { fault.text };
            faults.add(field, &text);
            return None;
        }
        Some(knee)
    }

    /// Virtual users that keep a rate up at most; none outside where that can't be read.
    #[expect(clippy::option_option, reason = "none inside: as many as are usual")]
    fn most(&self, faults: &mut Faults) -> Option<Option<u32>> {
        match self.max_vus.as_str() {
            text if self.load.is_open() && !text.is_empty() => number("max-vus", text, faults).map(Some),
            _ => Some(None),
        }
    }

    /// The field that says a part of the load.
    fn field(&self, part: Part) -> &'static str {
        match part {
            Part::Vus => "vus",
            Part::Rate => "rate",
            Part::Duration => "duration",
            Part::Stages => self.load.as_str(),
            Part::MaxVus => "max-vus",
        }
    }
}
