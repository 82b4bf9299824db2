//! Names that somebody types, or that come over the wire: of users, tokens, agents, targets, scenarios, sizes, baselines,
//! views. One rule for all of them, so that a name can be shown, typed, compared and put into an address anywhere.
//!
//! What was stored before there was a rule stays as it is: it is read as text, and only what is new is a [`Name`].

use std::fmt;
use std::str::FromStr;

use unicode_normalization::UnicodeNormalization;
use unicode_security::{GeneralSecurityProfile, RestrictionLevel, RestrictionLevelDetection, skeleton};

/// More characters a name can't have.
pub const LONGEST: usize = 80;

/// A name in Unicode's normal form C, without spaces around it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// Why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// Empty, too long, or more than a line.
    #[error("1 to {LONGEST} characters on one line")]
    Length,
    /// Addresses can't have it: `.` and `..` lead elsewhere.
    #[error("it takes more than dots and tildes")]
    Dots,
    /// Invisible, or not what it looks like.
    #[error("{0} is not allowed: letters, digits and ASCII signs are")]
    Character(Shown),
    /// Letters of several scripts, which can look like others.
    #[error("its letters are of scripts that are not written together: one could be taken for another")]
    Mixed,
}

/// A character in words, as one that can't be seen must be: `U+202E`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown(char);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "U+{:04X}", u32::from(self.0))
    }
}

impl Name {
    /// As it is stored and shown.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As it is stored and shown.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        // Normalisation takes time by length: what is far too long needs none.
        if text.len() > LONGEST * 32 {
            return Err(BadName::Length);
        }
        let name: String = text.trim().nfc().collect();
        if name.is_empty() || name.chars().count() > LONGEST || name.chars().any(char::is_control) {
            return Err(BadName::Length);
        }
        // With a tilde they stand in addresses for those without.
        if name.trim_start_matches('~').chars().all(|letter| letter == '.') {
            return Err(BadName::Dots);
        }
        if let Some(bad) = name.chars().find(|letter| !is_allowed(*letter)) {
            return Err(BadName::Character(Shown(bad)));
        }
        if is_mixed(&name) { Err(BadName::Mixed) } else { Ok(Self(name)) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// All of ASCII that can be seen, and what Unicode recommends for identifiers: no format characters, no bidirectional
/// controls, nothing of zero width, no signs that look like those of ASCII.
fn is_allowed(letter: char) -> bool {
    // Joiners are recommended within words of some scripts, and can't be seen in others.
    let is_joiner = matches!(letter, '\u{200c}' | '\u{200d}');
    if letter.is_ascii() { !letter.is_ascii_control() } else { letter.identifier_allowed() && !is_joiner }
}

/// Whether scripts stand side by side that people don't write together: Latin goes with one other, but not with Greek or
/// Cyrillic, whose letters look like Latin ones.
fn is_mixed(name: &str) -> bool {
    let letters: String = name.chars().filter(|letter| letter.identifier_allowed()).collect();
    letters.as_str().detect_restriction_level() > RestrictionLevel::ModeratelyRestrictive
}

/// What a name looks like: names with the same can be taken for each other.
pub fn looks(name: &str) -> String {
    skeleton(name).collect()
}

/// The one of several names that is another than this one and looks the same.
pub fn lookalike<'a>(name: &str, others: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let shape = looks(name);
    others.into_iter().find(|other| *other != name && looks(other) == shape)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> Result<String, BadName> {
        text.parse().map(Name::into_string)
    }

    #[test]
    fn names_of_people_and_machines_are_names() {
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
        assert_eq!(name("Zoe\u{308}").as_deref(), Ok("Zoë"), "one form of what looks the same");
    }

    #[test]
    fn what_can_not_be_seen_typed_or_addressed_is_no_name() {
        for (text, fault) in [
            ("", BadName::Length),
            ("   ", BadName::Length),
            ("a\nb", BadName::Length),
            ("\u{1b}[2J", BadName::Length),
            (".", BadName::Dots),
            ("..", BadName::Dots),
            (" ... ", BadName::Dots),
            ("~..", BadName::Dots),
            ("a\u{202e}b", BadName::Character(Shown('\u{202e}'))),
            ("a\u{2066}b", BadName::Character(Shown('\u{2066}'))),
            ("a\u{200b}b", BadName::Character(Shown('\u{200b}'))),
            ("a\u{200d}b", BadName::Character(Shown('\u{200d}'))),
            ("a\u{feff}b", BadName::Character(Shown('\u{feff}'))),
            ("a\u{ad}b", BadName::Character(Shown('\u{ad}'))),
            ("a\u{a0}b", BadName::Character(Shown('\u{a0}'))),
            ("a\u{3164}b", BadName::Character(Shown('\u{3164}'))),
            ("a\u{2215}b", BadName::Character(Shown('\u{2215}'))),
            ("a\u{e000}b", BadName::Character(Shown('\u{e000}'))),
            ("аdmin", BadName::Mixed),
            ("pαypal", BadName::Mixed),
        ] {
            assert_eq!(name(text), Err(fault), "{text:?}");
        }
        assert_eq!(name(&"x".repeat(LONGEST + 1)), Err(BadName::Length));
        assert_eq!(name(&"x".repeat(LONGEST)), Ok("x".repeat(LONGEST)));
        assert_eq!(name(&"\u{fb1d}".repeat(1_000_000)), Err(BadName::Length));
    }

    #[test]
    fn names_that_look_the_same_are_found() {
        assert_eq!(lookalike("serverl", ["x", "server1"]), Some("server1"));
        assert_eq!(lookalike("рауса", ["payca"]), Some("payca"));
        assert_eq!(lookalike("server1", ["server1", "server2"]), None, "it is no look-alike of itself");
    }

    proptest! {
        #[test]
        fn a_name_stays_what_it_is(text in any::<String>()) {
            if let Ok(name) = text.parse::<Name>() {
                prop_assert_eq!(name.as_str().parse::<Name>(), Ok(name.clone()));
                prop_assert!(name.as_str().chars().count() <= LONGEST && !name.as_str().chars().any(char::is_control));
            }
        }
    }
}
