//! Checks whether the script ended its load before its time: then the run measured another load. Pure.

use crate::{
    results::verdict::{model::Context, records::records},
    runs::verdict::{Reason, Unit, Verdict},
};

/// The code of the reason.
pub(super) const CODE: &str = "cut_short";

pub(super) fn judge(context: &Context<'_>) -> Option<Reason> {
    let record = records(context).find(|record| record.cut_short.is_some())?;
    let why = record.cut_short.as_deref()?;
    let planned = context.load.and_then(|load| Some(load.duration()?.as_secs_f64()));
    let Some(lasted) = record.load_ms.map(|ms| ms as f64 / 1_000.0) else {
        return Some(Reason::new(CODE, Verdict::Invalid, format!("the load ended before its start: {why}")));
    };
    let seconds = |seconds: f64| format!("{seconds:.1}");
    let Some(planned) = planned else {
        let text = format!("the load ended after {} s, before its time: {why}", seconds(lasted));
        return Some(Reason::new(CODE, Verdict::Invalid, text));
    };
    let text = format!("the load ended after {} of {} s: {why}", seconds(lasted), seconds(planned));
    Some(Reason::new(CODE, Verdict::Invalid, text).with(lasted, planned, Unit::Seconds))
}
