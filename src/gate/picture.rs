//! The difference of each check, with its confidence interval and the rule's limit: as SVG, and as text for comments, in
//! which images can't be embedded. Pure.

use std::fmt::Write;

use super::{
    model::{Gate, Outcome, RuleCheck},
    rule::Rule,
    xml::escaped,
};

/// Characters of the text; zero is in the middle.
const CHARACTERS: usize = 25;
/// Width of the axis of the SVG, of the names beside it, and height of a line.
const AXIS: f64 = 360.0;
const NAMES: f64 = 280.0;
const LINE: f64 = 44.0;
/// How far the axis reaches beyond the farthest end that is drawn.
const MARGIN: f64 = 1.15;
/// The longest name of a setting, in characters.
const LONGEST: usize = 44;

/// Where a check's difference is on its axis, from 0 to 1; zero is 0.5.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Places {
    change: f64,
    interval: Option<[f64; 2]>,
    limit: f64,
}

impl Places {
    /// Returns none for a check without a difference.
    fn of(check: &RuleCheck) -> Option<Self> {
        let limit = check.rule.parse::<Rule>().ok()?.share();
        let (change, interval) = (check.change?, check.interval);
        let shown = interval.into_iter().flatten().chain([change, limit]).filter(|by| by.is_finite());
        let end = shown.map(f64::abs).fold(0.0, f64::max) * MARGIN;
        let place = |by: f64| if end > 0.0 { 0.5 + (by / end).clamp(-1.0, 1.0) / 2.0 } else { 0.5 };
        Some(Self { change: place(change), interval: interval.map(|ends| ends.map(place)), limit: place(limit) })
    }
}

/// Draws the difference of a check as text: `│` is no difference, `┊` the limit. Empty without a difference.
pub fn text(check: &RuleCheck) -> String {
    let Some(Places { change, interval, limit }) = Places::of(check) else { return String::new() };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of 0 to 1")]
    let column = |place: f64| (place * (CHARACTERS - 1) as f64).round() as usize;
    let mut line = vec!['·'; CHARACTERS];
    if let Some([one, other]) = interval.map(|ends| ends.map(column)) {
        line[one.min(other)..=one.max(other)].fill('━');
    }
    (line[column(0.5)], line[column(limit)], line[column(change)]) = ('│', '┊', '●');
    line.into_iter().collect()
}

/// Draws all checks that have a difference as an SVG.
pub fn svg(gate: &Gate) -> String {
    let checks: Vec<_> = gate.checks.iter().filter_map(|check| Some((check, Places::of(check)?))).collect();
    let (width, height) = (NAMES + AXIS + 16.0, LINE * (checks.len().max(1) + 1) as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\"><title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"8\" y=\"24\" font-weight=\"600\">{}</text>\n",
        escaped(&gate.headline),
        escaped(&gate.title)
    );
    for (number, (check, places)) in checks.iter().enumerate() {
        svg += &line(check, *places, LINE * (number + 1) as f64);
    }
    svg + "</svg>\n"
}

fn line(check: &RuleCheck, Places { change, interval, limit }: Places, top: f64) -> String {
    let x = |place: f64| NAMES + place * AXIS;
    let (middle, bottom) = (top + LINE / 2.0, top + LINE);
    let colour = match check.outcome {
        Outcome::Fine => "#1a7f37",
        Outcome::Regression => "#cf222e",
        Outcome::CannotSay => "#9a6700",
    };
    let setting: String = check.setting.chars().take(LONGEST).collect();
    let mut svg = format!(
        "<text x=\"8\" y=\"{:.1}\">{} {}</text><text x=\"8\" y=\"{:.1}\" fill=\"#59636e\" font-size=\"11\">{}</text>",
        middle - 3.0,
        escaped(&check.rule),
        escaped(&check.difference()),
        middle + 12.0,
        escaped(&setting),
    );
    for (place, style) in [(0.5, ""), (limit, " stroke-dasharray=\"3 3\"")] {
        let x = x(place);
        let _ = write!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\" stroke=\"#59636e\"{style}/>"
        );
    }
    if let Some([low, high]) = interval.map(|ends| ends.map(x)) {
        let _ = write!(
            svg,
            "<line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\" stroke=\"{colour}\" \
             stroke-width=\"3\"/>"
        );
    }
    let _ = writeln!(svg, "<circle cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"5\" fill=\"{colour}\"/>", x(change));
    svg
}

#[cfg(test)]
mod tests {
    use super::{super::markdown::tests::gate, *};

    #[test]
    fn the_interval_the_limit_and_zero_are_at_their_places() {
        let check = &gate().checks[0];
        // −9 % to −7 %, around −8 %; the limit is −5 %, and the axis ends at 1.15 × 9 %.
        assert_eq!(text(check), "··━●━·┊·····│············");
        assert_eq!(text(&RuleCheck { change: None, ..check.clone() }), "");
        let wide = RuleCheck { change: Some(0.0), interval: Some([-1.0, f64::INFINITY]), ..check.clone() };
        assert_eq!(text(&wide).chars().count(), CHARACTERS);
    }

    #[test]
    fn the_svg_has_a_line_for_each_difference_and_escapes_names() {
        let gate = gate();
        let svg = svg(&gate);
        assert_eq!(svg.matches("<circle").count(), gate.checks.len(), "{svg}");
        assert!(svg.contains("2 vCPU | &lt;b&gt;") && !svg.contains("<b>"), "{svg}");
    }
}
