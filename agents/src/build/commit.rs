//! A commit, as Git describes it. Pure.

use brewbench_wire::manifest::source::Source;

use crate::host::environment::Facts;

/// Characters of an id that a version has.
const SHORT: usize = 12;

/// Characters of a subject that are kept.
const SUBJECT: usize = 200;

/// What `git show` prints of a commit: id, author's time and subject, one per line.
pub const FORMAT: &str = "--format=%H%n%aI%n%s";

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its id in hex.
    pub id: String,
    /// When it was written, in ISO 8601.
    pub time: String,
    /// The first line of its message.
    pub subject: String,
}

impl Commit {
    /// Reads [`FORMAT`].
    pub fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (id, time) = (lines.next()?, lines.next()?);
        let is_id = matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let subject = lines.next().unwrap_or_default().chars().filter(|letter| !letter.is_control());
        is_id.then(|| Self { id: id.to_owned(), time: time.to_owned(), subject: subject.take(SUBJECT).collect() })
    }

    /// Returns the start of its id.
    pub fn short(&self) -> &str {
        self.id.get(..SHORT).unwrap_or(&self.id)
    }

    /// Returns facts about it and about its build.
    pub fn facts(&self, build: &str, source: &Source) -> Facts {
        let facts = [
            ("target.commit_subject", Some(self.subject.as_str())),
            ("target.commit_time", Some(self.time.as_str())),
            ("target.compare_url", source.compare_url.as_deref()),
            ("before.build", Some(build)),
        ];
        facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_read_without_what_could_be_mistaken() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let commit = Commit::read(&format!("{id}\n2026-11-27T10:00:00+01:00\nFix \u{1b}[31mit\n")).expect("a commit");
        assert_eq!((commit.short(), commit.subject.as_str()), ("0123456789ab", "Fix [31mit"));
        assert_eq!(
            Commit::read(&format!("{id}\n2026-11-27T10:00:00Z\n")).map(|commit| commit.subject),
            Some(String::new())
        );
        assert_eq!(Commit::read("fatal: bad object\nx\ny"), None);
        assert_eq!(Commit::read(""), None);
    }
}
