//! The load of a [`Draft`]. Pure.

use brewbench_agent::wire::load::{Closed, Fault, Form, Load, Open, Part};

use super::{Draft, Faults, number, time, written};
use crate::runs::load::{constant, parse_stages, stages_text};

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
    /// The script's own options.
    Script,
}

impl LoadBy {
    /// All of them, in the order in which the form offers them.
    pub const ALL: [Self; 5] = [Self::Vus, Self::VusStages, Self::Rate, Self::RateStages, Self::Script];

    /// The value in forms and addresses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vus => "vus",
            Self::VusStages => "vus-stages",
            Self::Rate => "rate",
            Self::RateStages => "rate-stages",
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

    /// The load that it says; else what is wrong with it.
    pub fn load(&self) -> Result<Load, Faults> {
        let mut faults = Faults::default();
        let is_open = matches!(self.load, LoadBy::Rate | LoadBy::RateStages);
        let form = match self.load {
            LoadBy::Script => return Ok(Load::Script),
            LoadBy::Vus => self.constant("vus", &self.vus, &mut faults),
            LoadBy::Rate => self.constant("rate", &self.rate, &mut faults),
            LoadBy::VusStages => stages("vus-stages", &self.vus_stages, &mut faults),
            LoadBy::RateStages => stages("rate-stages", &self.rate_stages, &mut faults),
        };
        let max_vus = match self.max_vus.as_str() {
            text if is_open && !text.is_empty() => number("max-vus", text, &mut faults),
            _ => None,
        };
        let Some(form) = form.filter(|_| faults.0.is_empty()) else { return Err(faults) };
        let load = if is_open { Open::new(form, max_vus).map(Load::Open) } else { Closed::new(form).map(Load::Closed) };
        load.map_err(|Fault { part, text }| {
            faults.add(self.field(part), &text);
            faults
        })
    }

    fn constant(&self, field: &'static str, level: &str, faults: &mut Faults) -> Option<Form> {
        let (level, lasts) = (number(field, level, faults), time("duration", &self.duration, faults));
        match constant(level?, lasts?) {
            Ok(form) => Some(form),
            Err(fault) => {
                faults.add(self.field(fault.part), &fault.text);
                None
            }
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

fn stages(field: &'static str, text: &str, faults: &mut Faults) -> Option<Form> {
    match parse_stages(text) {
        Ok(stages) => Some(Form::Stages(stages)),
        Err(sentence) => {
            faults.add(field, &sentence);
            None
        }
    }
}
