//! The formats of a report, and the names of its files. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How a report is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One file with all charts.
    #[default]
    Html,
    /// Short, the answer first, details folded.
    Markdown,
    /// A line for each figure of each target in each setting.
    Csv,
    /// The same as `/api/v1/compare`.
    Json,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Html, Self::Markdown, Self::Csv, Self::Json];

    /// The word for addresses and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Csv => "csv",
            Self::Json => "json",
        }
    }

    /// How the name of such a file ends.
    pub fn ending(self) -> &'static str {
        if self == Self::Markdown { "md" } else { self.as_str() }
    }

    /// Its media type.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Json => "application/json",
        }
    }
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = || Self::ALL.map(Self::as_str).join(", ");
        let found = Self::ALL.into_iter().find(|format| format.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is no format of a report; there are {}", all()))
    }
}

/// What a file about something is called: letters, digits and dashes.
pub fn file_name(title: &str, format: Format) -> String {
    let plain: String = title.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(80).collect();
    format!("{}.{}", if name.is_empty() { "report" } else { &name }, format.ending())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_by_plain_words() {
        assert_eq!(file_name("servy 2.0 against gosherve", Format::Html), "servy-2-0-against-gosherve.html");
        assert_eq!(file_name("../\"é\"\r\n", Format::Markdown), "report.md");
        assert_eq!(file_name(&"x".repeat(300), Format::Csv).len(), 84);
    }
}
