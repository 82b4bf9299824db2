//! What a comparison found in one metric, in words: cards, tooltips, lists and reports all use these. Pure.

use super::{
    stat::Stat,
    statistics::{Decision, TooLittlePast},
};
use crate::web::card::Tone;

/// A finding in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The difference if one is named, otherwise why not: `+25.0 %`, `no difference found`.
    pub short: String,
    /// The same in full: `faster than gosherve (+24.4 % to +25.6 %)`.
    pub detail: String,
    /// Its tone.
    pub tone: Tone,
}

impl Finding {
    /// Describes a figure compared with that of `than`; none if there is no difference to describe.
    pub fn new(stat: &Stat, than: &str) -> Option<Self> {
        let finding = |short: &str, detail: String, tone| Some(Self { short: short.to_owned(), detail, tone });
        if stat.decision == Some(Decision::NotComparable) {
            return finding("not comparable", "more than the target differs".to_owned(), Tone::Doubtful);
        }
        let (change, within) = (stat.change().text().to_owned(), within(stat));
        if stat.has_no_ratio() {
            return finding(&change, format!("{} than {than}; {NO_RATIO}", stat.word()), stat.tone());
        }
        if stat.decision == Some(Decision::TooCoarse) {
            return finding("too coarse", too_coarse(stat), Tone::Doubtful);
        }
        stat.by()?;
        let differs = || match stat.word() {
            "the same" => format!("the same as {than}{within}"),
            word => format!("{word} than {than}{within}"),
        };
        match stat.decision {
            Some(Decision::Better) => finding(&change, differs(), Tone::Good),
            Some(Decision::Worse) => finding(&change, differs(), Tone::Bad),
            Some(Decision::BelowMinEffect) => {
                let least = stat.metric.amount(stat.min_effect.unwrap_or_default());
                let detail = format!("{change}{within}: smaller than the minimum effect ({least})");
                finding(&format!("below {least}"), detail, Tone::Plain)
            }
            Some(Decision::NoDifference) => {
                finding("no difference found", format!("{change}{within}{}", missed(stat)), Tone::Plain)
            }
            Some(Decision::NotInTurn | Decision::TooFew) => {
                finding("too little data", format!("{change}, but {}", too_little(stat)), Tone::Doubtful)
            }
            Some(Decision::TooCoarse | Decision::NotComparable) => None,
            None => finding(&change, format!("{}, not judged", differs()), Tone::Plain),
        }
    }
}

/// Why a difference has no size.
pub(super) const NO_RATIO: &str = "no ratio, as a value is 0";

/// Describes why a difference is not decided although the values differ.
pub(super) fn too_coarse(stat: &Stat) -> String {
    format!("{} is known to {} only, which can hide the difference", stat.metric.name(), stat.rounding())
}

fn within(stat: &Stat) -> String {
    match stat.interval() {
        interval if interval.is_empty() => interval,
        interval => format!(" ({interval})"),
    }
}

/// Describes which difference could have been missed.
fn missed(stat: &Stat) -> String {
    let missed = stat.detectable.map_or_else(String::new, |mde| format!(" · {}", stat.metric.detectable(mde)));
    match stat.hidden() {
        Some(margin) => format!(" · within the variation between experiments ({margin}){missed}"),
        None => missed,
    }
}

/// Describes why a difference cannot be decided.
pub(super) fn too_little(stat: &Stat) -> String {
    if stat.decision == Some(Decision::NotInTurn) {
        let because = stat.apart.and_then(|apart| apart.because).map_or("", TooLittlePast::because);
        return format!("not measured in turn: {because}");
    }
    let compared = stat.compared.map_or(0, |[base, other]| base.min(other));
    match stat.needed {
        Some(needed) => format!("only {compared} of {needed} repetitions on each side were measured in turn"),
        None => format!("only {compared} repetitions on each side were measured in turn"),
    }
}
