//! Several levels of one load, written as `1,2,4`, `1..256x2` or `1000..20000+1000`. Pure.

use brewbench_wire::load::{Closed, Fault, Form, Load, Open};

use crate::web::format;

/// The most levels of a sweep.
pub const MAX_LEVELS: usize = 50;

/// A smaller factor would need thousands of steps.
const MIN_FACTOR: f64 = 1.01;

/// Parses levels: numbers and ranges, separated by commas.
///
/// A range has a first level, an upper limit and a step: `x2` doubles, `+100` adds. Errors name the invalid part.
pub fn levels(text: &str) -> Result<Vec<u32>, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let mut levels: Vec<u32> = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        let fault = |why: String| match parts.len() {
            1 => why,
            _ => format!("part {} ({part:?}): {why}", place + 1),
        };
        for level in range(part).map_err(fault)? {
            if levels.contains(&level) {
                return Err(fault(format!("{level} is repeated")));
            }
            levels.push(level);
        }
        if levels.len() > MAX_LEVELS {
            return Err(fault(too_many()));
        }
    }
    Ok(levels)
}

/// Formats levels so that [`levels`] can parse them.
pub fn text(levels: &[u32]) -> String {
    levels.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Parses a range without a step, e.g. `1000..20000`.
pub fn bounds(text: &str) -> Result<(u32, u32), String> {
    let (from, to) = text.split_once("..").ok_or("write a range, such as 1000..20000")?;
    let (from, to) = (number(from)?, number(to)?);
    if from < to { Ok((from, to)) } else { Err(format!("{from}..{to} is not a range: write the lower level first")) }
}

fn too_many() -> String {
    format!("this makes more than {MAX_LEVELS} levels")
}

fn number(text: &str) -> Result<u32, String> {
    let text = text.trim();
    let is_whole = !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit());
    text.parse()
        .map_err(|_| if is_whole { format!("{text} is too large") } else { format!("{text:?} is not a whole number") })
}

fn range(part: &str) -> Result<Vec<u32>, String> {
    let Some((from, rest)) = part.split_once("..") else {
        let usage = "write a whole number, such as 10, or several, such as 1,2,4 or 1..256x2";
        return Ok(vec![part.parse().map_err(|_| usage.to_owned())?]);
    };
    let Some(at) = rest.find(['x', '×', '+']) else {
        return Err(format!("a range needs a step: {part}x2 doubles, {part}+10 adds 10"));
    };
    let (to, step) = rest.split_at(at);
    let (first, last) = bounds(&format!("{from}..{to}"))?;
    match step.strip_prefix('+') {
        Some(step) => sums(first, last, number(step)?),
        None => products(first, last, step.trim_start_matches(['x', '×']).trim()),
    }
}

fn sums(first: u32, last: u32, step: u32) -> Result<Vec<u32>, String> {
    if step == 0 {
        return Err("the step must be at least +1".to_owned());
    }
    let levels = (first..=last).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    let levels: Vec<u32> = levels.take(MAX_LEVELS + 1).collect();
    if levels.len() > MAX_LEVELS { Err(too_many()) } else { Ok(levels) }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and a u32")]
fn products(first: u32, last: u32, step: &str) -> Result<Vec<u32>, String> {
    let factor: f64 =
        step.parse().map_err(|_| format!("the x must be followed by a number, such as 2, not {step:?}"))?;
    if !factor.is_finite() || factor < MIN_FACTOR {
        return Err(format!("the step must be at least x{MIN_FACTOR}, not x{step}"));
    }
    if first == 0 {
        return Err("a range with a factor can't start at 0".to_owned());
    }
    let mut levels = vec![first];
    let mut exact = f64::from(first);
    loop {
        exact *= factor;
        let level = exact.round();
        if level > f64::from(last) {
            return Ok(levels);
        }
        let level = level as u32;
        // A small factor may round to the same level again.
        if levels.last() != Some(&level) {
            levels.push(level);
        }
        if levels.len() > MAX_LEVELS {
            return Err(too_many());
        }
    }
}

/// Loads that differ only in their level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// What the levels count.
    pub unit: Unit,
    /// Levels in the order of the plan.
    pub levels: Vec<u32>,
    /// Duration of each load.
    pub duration_ms: u64,
    /// Maximum number of virtual users, unless each rate has its default.
    pub max_vus: Option<u32>,
}

/// The unit of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Virtual users.
    Vus,
    /// Iterations per second.
    Rate,
}

impl Sweep {
    /// Returns the sweep of these loads, if they are constant and differ only in their level.
    pub fn from_loads(loads: &[Load]) -> Option<Self> {
        let mut parts = loads.iter().map(level);
        let (unit, first, duration_ms) = parts.next()??;
        let mut levels = vec![first];
        for part in parts {
            let (other_unit, level, other_duration_ms) = part?;
            if (other_unit, other_duration_ms) != (unit, duration_ms) {
                return None;
            }
            levels.push(level);
        }
        Some(Self { unit, levels, duration_ms, max_vus: max_vus(loads)? })
    }

    /// Describes the sweep, e.g. `1, 2, 4 VUs` or `1 to 256 VUs in 9 levels`.
    pub fn describe(&self) -> String {
        let count = |level: &u32| format::count(Some(u64::from(*level))).text().to_owned();
        let unit = match self.unit {
            Unit::Vus => "VUs",
            Unit::Rate => "iterations/s",
        };
        match self.levels.as_slice() {
            few if few.len() <= 4 => {
                format!("{}\u{a0}{unit}", few.iter().map(count).collect::<Vec<_>>().join(", "))
            }
            many => {
                let (least, most) = (many.iter().min(), many.iter().max());
                let [least, most] = [least, most].map(|level| level.map(count).unwrap_or_default());
                format!("{least} to {most}\u{a0}{unit} in {}", format::plural(many.len(), "level"))
            }
        }
    }
}

/// Creates the loads of a sweep, or returns the fault of the first invalid one.
pub fn loads(unit: Unit, levels: &[u32], duration_s: f64, max_vus: Option<u32>) -> Result<Vec<Load>, Fault> {
    let load = |level: &u32| {
        let form = Form::constant(*level, duration_s)?;
        match unit {
            Unit::Vus => Closed::new(form).map(Load::Closed),
            Unit::Rate => Open::new(form, max_vus).map(Load::Open),
        }
    };
    levels.iter().map(load).collect()
}

fn level(load: &Load) -> Option<(Unit, u32, u64)> {
    let unit = if matches!(load, Load::Open(_)) { Unit::Rate } else { Unit::Vus };
    match load.shape()?.form() {
        Form::Constant { level, duration_ms } => Some((unit, *level, *duration_ms)),
        Form::Stages(_) => None,
    }
}

/// Returns the maximum number of virtual users that all rates share; the inner `None` if each has its default.
#[expect(clippy::option_option, reason = "outer `None`: the rates share neither")]
fn max_vus(loads: &[Load]) -> Option<Option<u32>> {
    let open = || loads.iter().filter_map(|load| if let Load::Open(open) = load { Some(open) } else { None });
    if open().all(|open| open.max_vus() == Open::default_vus(open.rate())) {
        return Some(None);
    }
    let first = open().next()?.max_vus();
    open().all(|open| open.max_vus() == first).then_some(Some(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::load::{
        LoadBody,
        tests::{rate, vus, vus_stages},
    };

    #[test]
    fn lists_and_ranges_are_parsed() {
        let table: [(&str, &[u32]); 9] = [
            ("10", &[10]),
            ("1,2, 4", &[1, 2, 4]),
            ("1..256x2", &[1, 2, 4, 8, 16, 32, 64, 128, 256]),
            ("1..256 x2", &[1, 2, 4, 8, 16, 32, 64, 128, 256]),
            ("1..100×3", &[1, 3, 9, 27, 81]),
            ("1..10x1.5", &[1, 2, 3, 5, 8]),
            ("1000..4000+1000", &[1000, 2000, 3000, 4000]),
            ("1..10 + 4", &[1, 5, 9]),
            ("1,10..30+10,100", &[1, 10, 20, 30, 100]),
        ];
        for (text, expected) in table {
            assert_eq!(levels(text).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(levels(&text(&[1, 5, 9])), Ok(vec![1, 5, 9]));
    }

    #[test]
    fn invalid_levels_are_refused_with_their_position() {
        for (text, sentence) in [
            ("many", "write a whole number, such as 10, or several, such as 1,2,4 or 1..256x2"),
            ("", "write a whole number, such as 10, or several, such as 1,2,4 or 1..256x2"),
            ("1,,2", "part 2 (\"\"): write a whole number, such as 10, or several, such as 1,2,4 or 1..256x2"),
            ("1,2,-3", "part 3 (\"-3\"): write a whole number, such as 10, or several, such as 1,2,4 or 1..256x2"),
            ("1..256", "a range needs a step: 1..256x2 doubles, 1..256+10 adds 10"),
            ("5,1..8", "part 2 (\"1..8\"): a range needs a step: 1..8x2 doubles, 1..8+10 adds 10"),
            ("8..1x2", "8..1 is not a range: write the lower level first"),
            ("a..9x2", "\"a\" is not a whole number"),
            ("1..x2", "\"\" is not a whole number"),
            ("1..99999999999x2", "99999999999 is too large"),
            ("1..9+0", "the step must be at least +1"),
            ("1..9+x", "\"x\" is not a whole number"),
            ("1..9x1", "the step must be at least x1.01, not x1"),
            ("1..9xNaN", "the step must be at least x1.01, not xNaN"),
            ("1..4000000000x1.0000001", "the step must be at least x1.01, not x1.0000001"),
            ("1..9x", "the x must be followed by a number, such as 2, not \"\""),
            ("0..9x2", "a range with a factor can't start at 0"),
            ("1..1000+1", "this makes more than 50 levels"),
            ("1..4000000000+1", "this makes more than 50 levels"),
            ("4,1..8x2", "part 2 (\"1..8x2\"): 4 is repeated"),
        ] {
            assert_eq!(levels(text), Err(sentence.to_owned()), "{text}");
        }
    }

    #[test]
    fn ranges_without_a_step_are_parsed() {
        assert_eq!(bounds("1000.. 20000"), Ok((1_000, 20_000)));
        for text in ["1000", "5..5", "9..5", "x..5"] {
            assert!(bounds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn loads_that_differ_only_in_level_are_a_sweep() {
        let sweep = Sweep::from_loads(&[vus(1, 10.0), vus(4, 10.0)]).expect("a sweep");
        assert_eq!((sweep.levels.as_slice(), sweep.duration_ms, sweep.unit), (&[1, 4][..], 10_000, Unit::Vus));
        assert_eq!(sweep.describe().replace('\u{a0}', " "), "1, 4 VUs");
        assert_eq!(loads(sweep.unit, &sweep.levels, 10.0, None), Ok(vec![vus(1, 10.0), vus(4, 10.0)]));
        let rates: Vec<Load> = (1..=9).map(|level| rate(level * 1_000, 5.0)).collect();
        let sweep = Sweep::from_loads(&rates).expect("a sweep");
        assert_eq!(sweep.describe().replace('\u{a0}', " "), "1,000 to 9,000 iterations/s in 9 levels");
        assert_eq!(sweep.max_vus, None);
        let open = |rate, max_vus| {
            LoadBody::Rate { rate, duration_s: 1.0, max_vus: Some(max_vus) }.try_into().expect("a load")
        };
        assert_eq!(Sweep::from_loads(&[open(10, 7), open(5_000, 7)]).expect("a sweep").max_vus, Some(7));
        for different in [
            vec![],
            vec![vus(1, 10.0), vus(4, 11.0)],
            vec![vus(1, 10.0), rate(4, 10.0)],
            vec![vus(1, 10.0), vus_stages("5s:10")],
            vec![open(10, 7), open(5_000, 8)],
            vec![Load::Script],
        ] {
            assert_eq!(Sweep::from_loads(&different), None, "{different:?}");
        }
    }
}
