//! Sentences about differences, whose targets have their colours in HTML. Pure.

use std::fmt;

use askama::filters::{Escaper, Html, HtmlSafe};
use serde::{Deserialize, Serialize};

use super::{metric::Metric, stat::Stat};
use crate::web::{format, series_style::Mark};

/// A sentence; in JSON its text. Two are equal if their texts are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Sentence(Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    /// The result.
    Strong(String),
    Subject(String, Mark),
}

impl Sentence {
    /// Adds text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.then(Self(vec![Part::Text(text.to_owned())]))
    }

    /// Adds text that is emphasized.
    #[must_use]
    pub fn strong(self, text: &str) -> Self {
        self.then(Self(vec![Part::Strong(text.to_owned())]))
    }

    /// Adds a target with its colour.
    #[must_use]
    pub fn subject(self, label: &str, mark: Mark) -> Self {
        self.then(Self(vec![Part::Subject(label.to_owned(), mark)]))
    }

    /// Adds another part of a sentence.
    #[must_use]
    pub fn then(mut self, rest: Self) -> Self {
        self.0.extend(rest.0);
        self
    }

    /// Returns the HTML, with the class of the emphasized part.
    pub fn html(&self, class: &'static str) -> SentenceHtml<'_> {
        SentenceHtml { sentence: self, class }
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| {
            let (Part::Text(text) | Part::Strong(text) | Part::Subject(text, _)) = part;
            f.write_str(text)
        })
    }
}

impl PartialEq for Sentence {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl From<String> for Sentence {
    fn from(text: String) -> Self {
        Self(vec![Part::Text(text)])
    }
}

impl From<Sentence> for String {
    fn from(sentence: Sentence) -> Self {
        sentence.to_string()
    }
}

/// A sentence as HTML.
#[derive(Clone, Copy, Debug)]
pub struct SentenceHtml<'a> {
    sentence: &'a Sentence,
    class: &'static str,
}

impl fmt::Display for SentenceHtml<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.sentence.0 {
            match part {
                Part::Text(text) => Html.write_escaped_str(&mut *f, text)?,
                Part::Strong(text) => {
                    write!(f, r#"<b class="{}">"#, self.class)?;
                    Html.write_escaped_str(&mut *f, text)?;
                    f.write_str("</b>")?;
                }
                Part::Subject(text, mark) => {
                    write!(f, r#"<span class="target">{mark}"#)?;
                    Html.write_escaped_str(&mut *f, text)?;
                    f.write_str("</span>")?;
                }
            }
        }
        Ok(())
    }
}

/// All text is escaped.
impl HtmlSafe for SentenceHtml<'_> {}

/// A difference in a metric in words, and the conjunction that follows: `25.0 % faster` than, `2.1× as fast` as,
/// `33.0 % less CPU time per request` than.
pub fn difference(metric: Metric, by: f64) -> (String, &'static str) {
    let factor = (!metric.is_share() && by >= 1.0).then(|| format::times(1.0 + by));
    let amount = metric.difference(Some(by.abs()));
    let amount = amount.text().trim_start_matches('+');
    match (metric.word(by), factor) {
        ("faster", Some(factor)) => (format!("{factor} as fast"), "as"),
        ("slower", Some(factor)) => (format!("{factor} as slow"), "as"),
        ("more", Some(factor)) => (format!("{factor} as much {}", metric.name()), "as"),
        (word @ ("faster" | "slower"), _) => (format!("{amount} {word}"), "than"),
        (word, _) => (format!("{amount} {word} {}", metric.name()), "than"),
    }
}

/// The difference of a figure from the baseline's, and the conjunction that follows; without a ratio only the word.
pub fn of(stat: &Stat) -> (String, &'static str) {
    match (stat.by(), stat.word()) {
        (Some(by), _) => difference(stat.metric, by),
        (None, word @ ("faster" | "slower")) => (word.to_owned(), "than"),
        (None, word) => (format!("{word} {}", stat.metric.name()), "than"),
    }
}

/// The difference of a figure from the baseline's as a clause of its own: `p99 20.0 % faster`, `33.0 % less memory`.
pub fn clause(stat: &Stat) -> String {
    let (difference, _) = of(stat);
    if stat.metric.def().is_latency { format!("{} {difference}", stat.metric.name()) } else { difference }
}

/// A figure with its name: `6,580 requests/s`, `p99 33.0 ms`, `memory 1.7 MiB`.
pub fn summary(stat: &Stat) -> String {
    let figure = stat.figure();
    match stat.metric {
        Metric::Rps => format!("{}\u{a0}requests/s", figure.text()),
        metric if metric.def().unit == crate::metrics::definition::Unit::Ms => {
            format!("{} {}", metric.name(), format::latency(stat.value).text())
        }
        metric => format!("{} {}", metric.name(), figure.text()),
    }
}
