//! Names of users, tokens, agents, targets, scenarios, sizes, and baselines. One rule applies to all of them, so
//! that a name can be displayed, typed, compared and used in a URL anywhere.
//!
//! Names stored before this rule existed are read as text; only new ones are a [`Name`].

use std::fmt;
use std::str::FromStr;

use unicode_normalization::UnicodeNormalization;
use unicode_security::{GeneralSecurityProfile, RestrictionLevel, RestrictionLevelDetection, skeleton};

/// Maximum characters of a name.
pub const MAX_CHARACTERS: usize = 80;

/// A name in Unicode normalization form C, trimmed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// Why a name is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// Empty, too long, or more than a line.
    #[error("1 to {MAX_CHARACTERS} characters on one line")]
    Length,
    /// `.` and `..` have a meaning in URLs.
    #[error("must not consist of dots and tildes only")]
    Dots,
    /// Invisible, or easily confused with another character.
    #[error("{0} is not allowed: use letters, digits and ASCII characters")]
    Character(CodePoint),
    /// Letters of several scripts, which may look like others.
    #[error("mixes letters of different scripts, which could be confused with other letters")]
    Mixed,
}

/// The code point of a character, as it may be invisible: `U+202E`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePoint(char);

impl fmt::Display for CodePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "U+{:04X}", u32::from(self.0))
    }
}

impl Name {
    /// Returns the name as stored and displayed.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name as stored and displayed.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        // Normalization takes time for long text, so it is skipped if the text is far too long.
        if text.len() > MAX_CHARACTERS * 32 {
            return Err(BadName::Length);
        }
        let name: String = text.trim().nfc().collect();
        if name.is_empty() || name.chars().count() > MAX_CHARACTERS || name.chars().any(char::is_control) {
            return Err(BadName::Length);
        }
        // In URLs, names with a leading tilde represent those without.
        if name.trim_start_matches('~').chars().all(|letter| letter == '.') {
            return Err(BadName::Dots);
        }
        if let Some(bad) = name.chars().find(|letter| !is_allowed(*letter)) {
            return Err(BadName::Character(CodePoint(bad)));
        }
        if is_mixed(&name) { Err(BadName::Mixed) } else { Ok(Self(name)) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Allows printable ASCII, and what Unicode recommends for identifiers: no format characters, bidirectional controls,
/// zero-width characters, or characters that look like ASCII ones.
fn is_allowed(letter: char) -> bool {
    // Joiners are recommended within words of some scripts, and invisible in others.
    let is_joiner = matches!(letter, '\u{200c}' | '\u{200d}');
    if letter.is_ascii() { !letter.is_ascii_control() } else { letter.identifier_allowed() && !is_joiner }
}

/// Whether a name mixes scripts that are not usually combined: Latin may be combined with another one, but not with
/// Greek or Cyrillic, whose letters look like Latin ones.
fn is_mixed(name: &str) -> bool {
    let letters: String = name.chars().filter(|letter| letter.identifier_allowed()).collect();
    letters.as_str().detect_restriction_level() > RestrictionLevel::ModeratelyRestrictive
}

/// Returns two keys of how a name looks, without case, accents and repeated spaces. Names that share one of them look
/// the same.
///
/// A capital may look like a letter that its small form does not look like: `I` like `l`, the Cyrillic `Т` like `T`. So
/// the first key ignores the case first, and the second one the shapes.
pub fn appearances(name: &str) -> [String; 2] {
    [bare(&folded(name)), bare(&folded(&bare(name)))]
}

/// Returns the text without distinctions of case. By way of capitals, which `ı`, `ſ` and the two small sigmas share
/// with other letters.
fn folded(text: &str) -> String {
    text.to_uppercase().to_lowercase()
}

/// Returns the skeleton of a text, without the accents that Latin, Greek and Cyrillic letters have, and with single
/// spaces, as pages show it.
fn bare(text: &str) -> String {
    let is_accent = |letter: &char| matches!(letter, '\u{300}'..='\u{36f}');
    let mut shape = String::with_capacity(text.len());
    for letter in skeleton(text).filter(|letter| !is_accent(letter)) {
        if letter != ' ' || !shape.ends_with(' ') {
            shape.push(letter);
        }
    }
    shape
}

/// Finds a different name that looks the same.
pub fn lookalike<'a>(name: &str, others: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let shapes = appearances(name);
    let is_alike = |other: &str| appearances(other).iter().zip(&shapes).any(|(one, two)| one == two);
    others.into_iter().find(|other| *other != name && is_alike(other))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> Result<String, BadName> {
        text.parse().map(Name::into_string)
    }

    #[test]
    fn names_of_people_and_machines_are_valid() {
        for text in [
            "ci",
            "2 vCPU / 4 GiB",
            "<b>",
            "../..",
            "Jürgen",
            "Zoë",
            "Олег",
            "Αριστοτέλης",
            "山田 太郎",
            "rack-7",
            "a.b",
            "김철수 2",
        ] {
            assert!(name(text).is_ok(), "{text}: {:?}", name(text));
        }
        assert_eq!(name("  ci ").as_deref(), Ok("ci"));
        assert_eq!(name("Zoe\u{308}").as_deref(), Ok("Zoë"), "normalized");
    }

    #[test]
    fn invisible_and_ambiguous_names_are_invalid() {
        for (text, fault) in [
            ("", BadName::Length),
            ("   ", BadName::Length),
            ("a\nb", BadName::Length),
            ("\u{1b}[2J", BadName::Length),
            (".", BadName::Dots),
            ("..", BadName::Dots),
            (" ... ", BadName::Dots),
            ("~..", BadName::Dots),
            ("a\u{202e}b", BadName::Character(CodePoint('\u{202e}'))),
            ("a\u{2066}b", BadName::Character(CodePoint('\u{2066}'))),
            ("a\u{200b}b", BadName::Character(CodePoint('\u{200b}'))),
            ("a\u{200d}b", BadName::Character(CodePoint('\u{200d}'))),
            ("a\u{feff}b", BadName::Character(CodePoint('\u{feff}'))),
            ("a\u{ad}b", BadName::Character(CodePoint('\u{ad}'))),
            ("a\u{a0}b", BadName::Character(CodePoint('\u{a0}'))),
            ("a\u{3164}b", BadName::Character(CodePoint('\u{3164}'))),
            ("a\u{2215}b", BadName::Character(CodePoint('\u{2215}'))),
            ("a\u{e000}b", BadName::Character(CodePoint('\u{e000}'))),
            ("аdmin", BadName::Mixed),
            ("pαypal", BadName::Mixed),
        ] {
            assert_eq!(name(text), Err(fault), "{text:?}");
        }
        assert_eq!(name(&"x".repeat(MAX_CHARACTERS + 1)), Err(BadName::Length));
        assert_eq!(name(&"x".repeat(MAX_CHARACTERS)), Ok("x".repeat(MAX_CHARACTERS)));
        assert_eq!(name(&"\u{fb1d}".repeat(1_000_000)), Err(BadName::Length));
    }

    #[test]
    fn lookalikes_are_found() {
        assert_eq!(lookalike("serverl", ["x", "server1"]), Some("server1"));
        for (name, other) in [
            ("рауса", "payca"),
            ("ADMIN1", "admin1"),
            ("adm\u{131}n1", "admin1"),
            ("ADM\u{130}N1", "admin1"),
            ("admi\u{307}n1", "admin1"),
            ("admin\u{332}1", "admin1"),
            ("NeiI", "neil"),
            ("ТОМ", "tom"),
            ("СОСО", "coco"),
            ("ΑΝΝΑ", "anna"),
            ("STRASSE", "Straße"),
            ("Jurgen", "Jürgen"),
            ("Ada  Lovelace", "Ada Lovelace"),
            ("r00t", "ROOT"),
        ] {
            assert_eq!(lookalike(name, ["x", other]), Some(other), "{name:?}");
            assert_eq!(lookalike(other, ["x", name]), Some(name), "{other:?}");
        }
        for (name, other) in [("Neil", "Nell"), ("が", "か"), ("कि", "कु"), ("rack-1", "rack-2"), ("ab", "a b")]
        {
            assert_eq!(lookalike(name, [other]), None, "{name:?} {other:?}");
        }
        assert_eq!(lookalike("server1", ["server1", "server2"]), None, "not a lookalike of itself");
    }

    proptest! {
        #[test]
        fn a_valid_name_is_normalized(text in any::<String>()) {
            if let Ok(name) = text.parse::<Name>() {
                prop_assert_eq!(name.as_str().parse::<Name>(), Ok(name.clone()));
                prop_assert!(name.as_str().chars().count() <= MAX_CHARACTERS && !name.as_str().chars().any(char::is_control));
            }
        }
    }
}
