//! Badges for states: a shape and a word, so that no state is shown by colour alone.

use askama::{Template, filters::HtmlSafe};

use super::card::Tone;

/// A shape and a word; renders itself in a template.
#[derive(Clone, Debug, Template)]
#[template(path = "partials/badge.html")]
pub struct Badge {
    tone: Tone,
    shape: &'static str,
    word: String,
    /// The tooltip.
    more: Option<String>,
}

/// The template escapes the word.
impl HtmlSafe for Badge {}

// Paths in a box of 12 × 12, stroked.
const RING: &str = "M6 2a4 4 0 1 0 0 8 4 4 0 1 0 0-8";
const HALF: &str = "M6 2a4 4 0 1 0 0 8 4 4 0 1 0 0-8M6 2v8M6 4h2.5M6 6h3.6M6 8h2.5";
const PLAY: &str = "M4 2.5v7L9.5 6z";
const CHECK: &str = "M2.5 6.5 5 9l4.5-6";
const CROSS: &str = "m3 3 6 6M9 3 3 9";
const SLASH: &str = "M6 2a4 4 0 1 0 0 8 4 4 0 1 0 0-8M3.3 8.7l5.4-5.4";
const PAUSE: &str = "M4.5 3v6M7.5 3v6";
const WARNING: &str = "M6 2 1.5 10h9zM6 5v2.2M6 8.6v.2";
const LOST: &str = "M4 4.5a2 2 0 1 1 2.8 1.8Q6 6.7 6 7.6M6 9.6v.2";

/// The badge of a run's phase, a verdict or an agent's state.
pub fn state(word: &str) -> Badge {
    let (tone, shape) = style(word);
    Badge { tone, shape, word: word.replace('_', " "), more: None }
}

impl Badge {
    /// Adds a word.
    #[must_use]
    pub fn and(self, word: &str) -> Self {
        Self { word: format!("{}, {word}", self.word), ..self }
    }

    /// Adds a tooltip.
    #[must_use]
    pub fn with_tooltip(self, more: String) -> Self {
        Self { more: Some(more).filter(|more| !more.is_empty()), ..self }
    }
}

/// The badge for a number of runs with a verdict or phase: `3 valid`.
pub fn verdicts(count: &usize, word: &str) -> Badge {
    let (tone, shape) = style(word);
    Badge { tone, shape, word: format!("{count} {word}"), more: None }
}

/// Valid is the normal case and has no colour, because green means better. Cancelled is not an error.
fn style(word: &str) -> (Tone, &'static str) {
    match word {
        "queued" | "leased" | "unfinished" | "never seen" => (Tone::Plain, RING),
        "preparing" | "warming_up" | "collecting" => (Tone::Plain, HALF),
        "measuring" => (Tone::Plain, PLAY),
        "finished" | "valid" | "connected" => (Tone::Plain, CHECK),
        "suspect" => (Tone::Doubtful, WARNING),
        "failed" | "invalid" => (Tone::Bad, CROSS),
        "cancelled" | "revoked" | "disabled" => (Tone::Plain, SLASH),
        "drained" => (Tone::Plain, PAUSE),
        _ => (Tone::Doubtful, LOST),
    }
}

/// The badge of a threshold.
pub fn threshold(passed: &bool) -> Badge {
    let (tone, shape, word) = if *passed { (Tone::Plain, CHECK, "passed") } else { (Tone::Bad, CROSS, "crossed") };
    Badge { tone, shape, word: word.to_owned(), more: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_word_and_a_shape_of_its_own() {
        let shapes: std::collections::BTreeSet<_> =
            ["queued", "preparing", "measuring", "finished", "failed", "cancelled", "lost"]
                .map(|word| state(word).shape)
                .into();
        assert_eq!(shapes.len(), 7);
        assert!(state("warming_up").to_string().contains("warming up"));
    }

    #[test]
    fn cancelled_is_never_shown_as_an_error() {
        for pill in [state("cancelled"), verdicts(&2, "cancelled")] {
            assert_eq!((pill.tone, pill.shape), (Tone::Plain, SLASH));
        }
        assert_eq!(verdicts(&2, "failed").tone, Tone::Bad);
    }

    #[test]
    fn html_in_a_word_is_escaped() {
        assert!(!state("<script>").to_string().contains("<script>"));
    }
}
