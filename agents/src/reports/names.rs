//! Which names and texts are accepted. HTML is: a check may well be called `has <title>`.

use crate::reports::validate::{Fault, Place};

/// Characters of a metric's name, its tags left out. k6 1.8.1 takes one letter or underscore and up to 128 more.
const METRIC_MAX: usize = 129;

/// Bytes between a sub-metric's braces.
const TAGS_MAX: usize = 1024;

/// Bytes of the name of a check or group and of a threshold.
const TEXT_MAX: usize = 4096;

/// Bytes of the path of a check or group: as long as 32 nested groups can make it.
const PATH_MAX: usize = 33 * (TEXT_MAX + "::".len());

/// A metric's name without its tags.
pub(super) fn base(name: &str) -> &str {
    name.split_once('{').map_or(name, |(base, _)| base)
}

/// Judges the name of a metric or sub-metric.
pub(super) fn metric(name: &str, place: &Place<'_>) -> Result<(), Fault> {
    no_control(name, place)?;
    let (base, tags) = match name.split_once('{') {
        None => (name, ""),
        Some((base, rest)) => match rest.strip_suffix('}') {
            Some(tags) => (base, tags),
            None => return Err(place.fault("the name's tags do not end with }")),
        },
    };
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if base.is_empty()
        || base.len() > METRIC_MAX
        || base.starts_with(|c: char| c.is_ascii_digit())
        || !base.chars().all(word)
    {
        return Err(place.fault("is no name that k6 allows: up to 128 ASCII letters, digits and _, no digit first"));
    }
    if tags.len() > TAGS_MAX {
        return Err(place.fault(format_args!("the name's tags have {} bytes, more than {TAGS_MAX}", tags.len())));
    }
    Ok(())
}

/// Judges the name of a check, group or value, and the text of a threshold.
pub(super) fn text(text: &str, place: &Place<'_>) -> Result<(), Fault> {
    no_longer_than(TEXT_MAX, text, place)
}

/// Judges the path of a check or group.
pub(super) fn path(path: &str, place: &Place<'_>) -> Result<(), Fault> {
    no_longer_than(PATH_MAX, path, place)
}

fn no_longer_than(max: usize, text: &str, place: &Place<'_>) -> Result<(), Fault> {
    no_control(text, place)?;
    if text.len() > max {
        return Err(place.fault(format_args!("has {} bytes, more than {max}", text.len())));
    }
    Ok(())
}

fn no_control(text: &str, place: &Place<'_>) -> Result<(), Fault> {
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(place.fault(format_args!("holds the control character {}", c.escape_unicode()))),
        None => Ok(()),
    }
}
