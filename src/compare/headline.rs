//! Title of a comparison, and the line about what its runs share. Pure.

use super::{
    cell::Row,
    selection::{By, Subject},
};
use crate::{
    compare::setting::{Setting, only_sizes_differ, shared},
    web::format,
};

/// Returns the title of the comparison.
pub fn title(subjects: &[Subject], base: usize, by: By) -> String {
    match subjects {
        [] => "Nothing to compare".to_owned(),
        [one] => one.label.clone(),
        [one, other] if base == 1 => format!("{} against {}", one.label, other.label),
        [one, other] => format!("{} against {}", other.label, one.label),
        many if by == By::Target => format!("{} targets compared", many.len()),
        many => format!("{} compared", format::plural(many.len(), by.name())),
    }
}

/// Returns what all runs share, in one line.
pub fn in_common(rows: &[Row]) -> String {
    let runs = || rows.iter().flat_map(|row| &row.cells).flat_map(|cell| &cell.runs);
    let settings: Vec<&Setting> = rows.iter().map(|row| &row.setting).collect();
    let mut parts = shared(&settings);
    if settings.len() > 1 {
        let noun = if only_sizes_differ(&settings) { "machine size" } else { "setting" };
        parts.push(format::plural(settings.len(), noun));
    }
    if let Some(seconds) = common_value(runs().map(|run| run.spec.duration_s)) {
        parts.push(format!("{} measured", format::duration(Some(seconds)).text()));
    }
    if let Some(agent) = common_value(runs().map(|run| run.agent.clone())) {
        parts.push(format!("on {agent}"));
    }
    let repetitions: Vec<usize> = rows.iter().flat_map(|row| &row.cells).map(|cell| cell.runs.len()).collect();
    let (least, most) = (repetitions.iter().min(), repetitions.iter().max());
    if let (Some(least), Some(most)) = (least, most) {
        let text = format::plural(most, "repetition");
        parts.push(match repetitions.len() {
            1 => text,
            _ if least == most => format!("{text} each"),
            _ => format!("{least} to {text}"),
        });
    }
    parts.join(" · ")
}

/// Returns the value that all share, if there is one.
fn common_value<T: PartialEq>(mut values: impl Iterator<Item = Option<T>>) -> Option<T> {
    let first = values.next()??;
    values.all(|value| value.as_ref() == Some(&first)).then_some(first)
}
