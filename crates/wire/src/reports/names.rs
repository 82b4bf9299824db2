//! Validates names and texts. HTML is allowed: a check may be called `has <title>`.

use crate::reports::validate::{Fault, Place};

/// Maximum characters of a metric's name without tags. k6 1.8.1 allows a letter or underscore and up to 128 more.
const METRIC_MAX: usize = 129;

/// Maximum bytes between the braces of a sub-metric.
const TAGS_MAX: usize = 1024;

/// Maximum bytes of the name of a check or group, and of a threshold.
const TEXT_MAX: usize = 4096;

/// Maximum bytes of the path of a check or group: enough for 32 nested groups.
const PATH_MAX: usize = 33 * (TEXT_MAX + "::".len());

/// Returns the name of a metric without tags.
pub(super) fn base(name: &str) -> &str {
    name.split_once('{').map_or(name, |(base, _)| base)
}

/// Validates the name of a metric or sub-metric.
pub(super) fn metric(name: &str, place: &Place<'_>) -> Result<(), Fault> {
    no_control(name, place)?;
    let (base, tags) = match name.split_once('{') {
        None => (name, ""),
        Some((base, rest)) => match rest.strip_suffix('}') {
            Some(tags) => (base, tags),
            None => return Err(place.fault("tags in the name do not end with }")),
        },
    };
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if base.is_empty()
        || base.len() > METRIC_MAX
        || base.starts_with(|c: char| c.is_ascii_digit())
        || !base.chars().all(word)
    {
        return Err(place.fault("is not a valid k6 name: use up to 128 ASCII letters, digits and _, no digit first"));
    }
    if tags.len() > TAGS_MAX {
        return Err(place.fault(format_args!("tags in the name have {} bytes, more than {TAGS_MAX}", tags.len())));
    }
    Ok(())
}

/// Validates the name of a check, group or value, and the text of a threshold.
pub(super) fn text(text: &str, place: &Place<'_>) -> Result<(), Fault> {
    no_longer_than(TEXT_MAX, text, place)
}

/// Validates the path of a check or group.
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
        Some(c) => Err(place.fault(format_args!("contains the control character {}", c.escape_unicode()))),
        None => Ok(()),
    }
}
