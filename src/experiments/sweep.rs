//! Several levels of one load, as people type them: `1,2,4`, `1..256x2`, `1000..20000+1000`. Pure.

use brewbench_agent::wire::load::{Closed, Fault, Form, Load, Open};

use crate::{runs::load::constant, web::format};

/// The most levels of a sweep.
pub const MOST_LEVELS: usize = 50;

/// A smaller factor takes thousands of steps to lead anywhere.
const LEAST_FACTOR: f64 = 1.01;

/// Levels from text: numbers and ranges, separated by commas. A range has its first level, the last that it may have, and
/// a step: `x2` doubles, `+100` adds. A refusal names the part that is wrong.
pub fn levels(text: &str) -> Result<Vec<u32>, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let mut levels: Vec<u32> = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        let told = |why: String| match parts.len() {
            1 => why,
            _ => format!("part {} is {part:?}: {why}", place + 1),
        };
        for level in range(part).map_err(told)? {
            if levels.contains(&level) {
                return Err(told(format!("{level} comes twice")));
            }
            levels.push(level);
        }
        if levels.len() > MOST_LEVELS {
            return Err(told(too_many()));
        }
    }
    Ok(levels)
}

/// What [`levels`] reads.
pub fn text(levels: &[u32]) -> String {
    levels.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// First and last of a range without a step, e.g. `1000..20000`.
pub fn bounds(text: &str) -> Result<(u32, u32), String> {
    let (from, to) = text.split_once("..").ok_or("two levels, such as 1000..20000")?;
    let (from, to) = (number(from)?, number(to)?);
    if from < to { Ok((from, to)) } else { Err(format!("it leads from {from} to {to}: write the lower one first")) }
}

fn too_many() -> String {
    format!("this makes more than {MOST_LEVELS} levels")
}

fn number(text: &str) -> Result<u32, String> {
    let text = text.trim();
    let is_whole = !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit());
    text.parse().map_err(|_| {
        if is_whole { format!("{text} is too large a number") } else { format!("{text:?} is not a whole number") }
    })
}

fn range(part: &str) -> Result<Vec<u32>, String> {
    let Some((from, rest)) = part.split_once("..") else {
        let usage = "a whole number, such as 10; several are 1,2,4 or 1..256x2";
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
        return Err("a step of +0 leads nowhere".to_owned());
    }
    let levels = (first..=last).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    let levels: Vec<u32> = levels.take(MOST_LEVELS + 1).collect();
    if levels.len() > MOST_LEVELS { Err(too_many()) } else { Ok(levels) }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and a u32")]
fn products(first: u32, last: u32, step: &str) -> Result<Vec<u32>, String> {
    let factor: f64 = step.parse().map_err(|_| format!("what follows the x is a number, such as 2, not {step:?}"))?;
    if !factor.is_finite() || factor < LEAST_FACTOR {
        return Err(format!("a step of x{step} leads nowhere: x{LEAST_FACTOR} at least"));
    }
    if first == 0 {
        return Err("it begins at 0, and no factor leads on from there".to_owned());
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
        // A small factor of a small number is rounded to the same again.
        if levels.last() != Some(&level) {
            levels.push(level);
        }
        if levels.len() > MOST_LEVELS {
            return Err(too_many());
        }
    }
}

/// What several loads have in common that differ in their level only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Of what.
    pub of: Of,
    /// In the order of the plan.
    pub levels: Vec<u32>,
    /// How long each lasts.
    pub duration_ms: u64,
    /// Virtual users that keep a rate up; none where each rate has as many as are usual.
    pub max_vus: Option<u32>,
}

/// What a load has so many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Virtual users.
    Vus,
    /// Iterations per second.
    Rate,
}

impl Sweep {
    /// Of these loads; none where they differ in more than their level, or are not constant.
    pub fn of(loads: &[Load]) -> Option<Self> {
        let mut parts = loads.iter().map(level);
        let (of, first, duration_ms) = parts.next()??;
        let mut levels = vec![first];
        for part in parts {
            let (other, level, lasts) = part?;
            if (other, lasts) != (of, duration_ms) {
                return None;
            }
            levels.push(level);
        }
        Some(Self { of, levels, duration_ms, max_vus: max_vus(loads)? })
    }

    /// E.g. `1, 2, 4 VUs`, or `1 to 256 VUs in 9 levels`.
    pub fn words(&self) -> String {
        let count = |level: &u32| format::count(Some(u64::from(*level))).text().to_owned();
        let unit = match self.of {
            Of::Vus => "VUs",
            Of::Rate => "iterations/s",
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

/// The loads of a sweep; the fault of the first that makes no sense.
pub fn loads(of: Of, levels: &[u32], duration_s: f64, max_vus: Option<u32>) -> Result<Vec<Load>, Fault> {
    let load = |level: &u32| {
        let form = constant(*level, duration_s)?;
        match of {
            Of::Vus => Closed::new(form).map(Load::Closed),
            Of::Rate => Open::new(form, max_vus).map(Load::Open),
        }
    };
    levels.iter().map(load).collect()
}

fn level(load: &Load) -> Option<(Of, u32, u64)> {
    let of = if matches!(load, Load::Open(_)) { Of::Rate } else { Of::Vus };
    match load.shape()?.form() {
        Form::Constant { level, duration_ms } => Some((of, *level, *duration_ms)),
        Form::Stages(_) => None,
    }
}

/// The virtual users that all rates have in common; none inside where they are the usual ones of each.
#[expect(clippy::option_option, reason = "none outside: they have neither in common")]
fn max_vus(loads: &[Load]) -> Option<Option<u32>> {
    let open = || loads.iter().filter_map(|load| if let Load::Open(open) = load { Some(open) } else { None });
    if open().all(|open| open.max_vus() == Open::usual_vus(open.rate())) {
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
    fn lists_and_ranges_are_read() {
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
    fn what_makes_no_sense_is_refused_with_its_place() {
        for (text, sentence) in [
            ("many", "a whole number, such as 10; several are 1,2,4 or 1..256x2"),
            ("", "a whole number, such as 10; several are 1,2,4 or 1..256x2"),
            ("1,,2", "part 2 is \"\": a whole number, such as 10; several are 1,2,4 or 1..256x2"),
            ("1,2,-3", "part 3 is \"-3\": a whole number, such as 10; several are 1,2,4 or 1..256x2"),
            ("1..256", "a range needs a step: 1..256x2 doubles, 1..256+10 adds 10"),
            ("5,1..8", "part 2 is \"1..8\": a range needs a step: 1..8x2 doubles, 1..8+10 adds 10"),
            ("8..1x2", "it leads from 8 to 1: write the lower one first"),
            ("a..9x2", "\"a\" is not a whole number"),
            ("1..x2", "\"\" is not a whole number"),
            ("1..99999999999x2", "99999999999 is too large a number"),
            ("1..9+0", "a step of +0 leads nowhere"),
            ("1..9+x", "\"x\" is not a whole number"),
            ("1..9x1", "a step of x1 leads nowhere: x1.01 at least"),
            ("1..9xNaN", "a step of xNaN leads nowhere: x1.01 at least"),
            ("1..4000000000x1.0000001", "a step of x1.0000001 leads nowhere: x1.01 at least"),
            ("1..9x", "what follows the x is a number, such as 2, not \"\""),
            ("0..9x2", "it begins at 0, and no factor leads on from there"),
            ("1..1000+1", "this makes more than 50 levels"),
            ("1..4000000000+1", "this makes more than 50 levels"),
            ("4,1..8x2", "part 2 is \"1..8x2\": 4 comes twice"),
        ] {
            assert_eq!(levels(text), Err(sentence.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_range_without_a_step_has_two_ends() {
        assert_eq!(bounds("1000.. 20000"), Ok((1_000, 20_000)));
        for text in ["1000", "5..5", "9..5", "x..5"] {
            assert!(bounds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn loads_that_differ_in_their_level_only_are_a_sweep() {
        let sweep = Sweep::of(&[vus(1, 10.0), vus(4, 10.0)]).expect("a sweep");
        assert_eq!((sweep.levels.as_slice(), sweep.duration_ms, sweep.of), (&[1, 4][..], 10_000, Of::Vus));
        assert_eq!(sweep.words().replace('\u{a0}', " "), "1, 4 VUs");
        assert_eq!(loads(sweep.of, &sweep.levels, 10.0, None), Ok(vec![vus(1, 10.0), vus(4, 10.0)]));
        let rates: Vec<Load> = (1..=9).map(|level| rate(level * 1_000, 5.0)).collect();
        let sweep = Sweep::of(&rates).expect("a sweep");
        assert_eq!(sweep.words().replace('\u{a0}', " "), "1,000 to 9,000 iterations/s in 9 levels");
        assert_eq!(sweep.max_vus, None);
        let open = |rate, max_vus| {
            LoadBody::Rate { rate, duration_s: 1.0, max_vus: Some(max_vus) }.try_into().expect("a load")
        };
        assert_eq!(Sweep::of(&[open(10, 7), open(5_000, 7)]).expect("a sweep").max_vus, Some(7));
        for unlike in [
            vec![],
            vec![vus(1, 10.0), vus(4, 11.0)],
            vec![vus(1, 10.0), rate(4, 10.0)],
            vec![vus(1, 10.0), vus_stages("5s:10")],
            vec![open(10, 7), open(5_000, 8)],
            vec![Load::Script],
        ] {
            assert_eq!(Sweep::of(&unlike), None, "{unlike:?}");
        }
    }
}
