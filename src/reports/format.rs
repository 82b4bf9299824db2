//! Formats and file names of reports. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReportFormat {
    /// One self-contained file with all charts.
    #[default]
    Html,
    /// A summary with folded details.
    Markdown,
    /// A line for each metric of each target in each setting.
    Csv,
    /// The response of `/api/v1/compare`.
    Json,
}

impl ReportFormat {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Html, Self::Markdown, Self::Csv, Self::Json];

    /// Returns the name in URLs and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Csv => "csv",
            Self::Json => "json",
        }
    }

    /// Returns the file extension.
    pub fn ending(self) -> &'static str {
        if self == Self::Markdown { "md" } else { self.as_str() }
    }

    /// Returns the media type.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Json => "application/json",
        }
    }
}

impl std::str::FromStr for ReportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = || Self::ALL.map(Self::as_str).join(", ");
        let found = Self::ALL.into_iter().find(|format| format.as_str() == text);
        found.ok_or_else(|| format!("unknown report format {text:?}; use one of {}", all()))
    }
}

/// Returns a file name of letters, digits and dashes.
pub fn file_name(title: &str, format: ReportFormat) -> String {
    let plain: String = title.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(80).collect();
    format!("{}.{}", if name.is_empty() { "report" } else { &name }, format.ending())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_have_plain_words_only() {
        assert_eq!(file_name("servy 2.0 against gosherve", ReportFormat::Html), "servy-2-0-against-gosherve.html");
        assert_eq!(file_name("../\"é\"\r\n", ReportFormat::Markdown), "report.md");
        assert_eq!(file_name(&"x".repeat(300), ReportFormat::Csv).len(), 84);
    }
}
