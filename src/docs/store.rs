//! Full-text search over the chapters, in an SQLite database in memory.

use std::sync::{LazyLock, Mutex, PoisonError};

use rusqlite::{Connection, params};

use super::{book::BOOK, render::render};
use crate::app::{
    rows::Fault,
    search_text::SearchText,
    work_limit::{MAX_WORK, limited},
};

/// The longest list of hits.
const MAX_HITS: i64 = 20;

/// Built from the embedded chapters at the first search.
static INDEX: LazyLock<rusqlite::Result<Mutex<Connection>>> = LazyLock::new(|| index().map(Mutex::new));

const SCHEMA: &str = "create virtual table section using fts5(chapter, heading, body, href unindexed, factor unindexed,
    tokenize = 'porter unicode61 tokenchars ''_''')";

const FIND: &str = "
    select chapter, heading, href, snippet(section, 2, char(1), char(2), ' … ', 24)
    from section where section match ?1 order by bm25(section, 4.0, 8.0, 1.0) * factor limit ?2";

/// The factor of a chapter's rank: chapters that explain come before lists of flags and fields, which mention
/// everything.
fn factor(path: &str) -> f64 {
    match path.split('/').next() {
        Some("getting-started" | "guide") => 4.0,
        _ if matches!(path, "reference/api" | "reference/cli") => 0.5,
        _ => 1.0,
    }
}

/// A section that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Title of the chapter.
    pub chapter: String,
    /// Heading of the section.
    pub heading: String,
    /// Address of the section.
    pub href: String,
    /// Text around the matches.
    pub snippet: Vec<Fragment>,
}

/// A part of a snippet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The words.
    pub text: String,
    /// Whether they match.
    pub is_match: bool,
}

/// Finds the sections that contain all words; the last word may be incomplete. Takes at most [`MAX_WORK`].
pub fn search(text: &SearchText) -> Result<Vec<Hit>, Fault> {
    let Some(query) = query(text) else { return Ok(Vec::new()) };
    let index = INDEX.as_ref().map_err(ToString::to_string)?;
    let connection = index.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(limited(&connection, MAX_WORK, |connection| find(connection, &query))?)
}

fn find(connection: &Connection, query: &str) -> rusqlite::Result<Vec<Hit>> {
    let mut statement = connection.prepare_cached(FIND)?;
    let hits = statement.query_map(params![query, MAX_HITS], |row| {
        let snippet: String = row.get(3)?;
        Ok(Hit { chapter: row.get(0)?, heading: row.get(1)?, href: row.get(2)?, snippet: fragments(&snippet) })
    })?;
    hits.collect()
}

/// The words as quoted terms of FTS5, so that nothing in them is syntax.
fn query(text: &SearchText) -> Option<String> {
    let mut terms: Vec<String> = text.terms().iter().map(|word| format!("\"{word}\"")).collect();
    terms.last_mut()?.push('*');
    Some(terms.join(" "))
}

/// Cuts at the marks around each match: `\u{1}` and `\u{2}`.
fn fragments(snippet: &str) -> Vec<Fragment> {
    let fragment = |text: &str, is_match| Fragment { text: text.to_owned(), is_match };
    let mut all = Vec::new();
    for (place, part) in snippet.split('\u{1}').enumerate() {
        match part.split_once('\u{2}') {
            Some((matching, rest)) if place > 0 => all.extend([fragment(matching, true), fragment(rest, false)]),
            _ => all.push(fragment(part, false)),
        }
    }
    all.retain(|part| !part.text.is_empty());
    all
}

fn index() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(SCHEMA)?;
    let mut insert =
        connection.prepare("insert into section (chapter, heading, body, href, factor) values (?, ?, ?, ?, ?)")?;
    for chapter in BOOK.chapters() {
        for section in render(chapter.text(), &chapter.path).sections {
            let anchor = if section.level == 1 { String::new() } else { format!("#{}", section.id) };
            let href = chapter.href() + &anchor;
            insert.execute(params![chapter.title, section.title, section.text.trim(), href, factor(&chapter.path)])?;
        }
    }
    drop(insert);
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(words: &str) -> Vec<Hit> {
        super::search(&SearchText::new(words)).expect("an index")
    }

    #[test]
    fn a_heading_is_found_before_text_that_mentions_it() {
        let hits = search("minimum effect");
        assert!(hits.iter().any(|hit| hit.href.starts_with("/docs/guide/statistics")), "{hits:?}");
        assert!(hits.iter().any(|hit| hit.snippet.iter().any(|part| part.is_match)), "{hits:?}");
    }

    #[test]
    fn chapters_that_explain_come_before_the_generated_reference() {
        for (words, chapter) in [
            ("baseline", "guide/comparing"),
            ("machine size", "guide/machine-sizes"),
            ("scenario", "guide/scenarios"),
            ("verdict", "guide/verdict"),
            ("agent", "guide/agents"),
            ("retention", "guide/operations"),
            ("share link", "guide/comparing"),
            ("gate", "guide/gate"),
            ("knee", "guide/loads"),
            ("import", "guide/importing"),
            ("target", "guide/targets"),
            ("run", "guide/runs"),
        ] {
            let hits = search(words);
            let found = hits.iter().position(|hit| hit.href.trim_start_matches("/docs/").starts_with(chapter));
            let generated = hits.iter().position(|hit| {
                ["/docs/reference/api", "/docs/reference/cli"].iter().any(|page| hit.href.starts_with(page))
            });
            let first = found.unwrap_or_else(|| panic!("{words}: {chapter} is not found: {hits:?}"));
            assert!(generated.is_none_or(|generated| first < generated), "{words}: {hits:?}");
        }
        // What only the reference describes is found there.
        let hits = search("rejudge dry-run");
        assert!(hits.iter().any(|hit| hit.href.starts_with("/docs/reference/cli")), "{hits:?}");
    }

    #[test]
    fn punctuation_is_no_syntax() {
        for words in ["\"", "rps<-5%", "a AND (", "NEAR(", "*", "col:x", "--min-effect"] {
            search(words);
        }
        assert_eq!(search(" - "), Vec::new());
    }

    #[test]
    fn a_snippet_is_cut_at_its_marks() {
        let parts = fragments("a \u{1}b\u{2} c");
        let parts: Vec<_> = parts.iter().map(|part| (part.text.as_str(), part.is_match)).collect();
        assert_eq!(parts, [("a ", false), ("b", true), (" c", false)]);
    }
}
