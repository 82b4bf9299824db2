//! The chapters of the book and their order, read from `SUMMARY.md`. Pure.

use std::sync::LazyLock;

/// Path below `docs/` without `.md`, and Markdown text of each embedded file.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/docs.rs"));

/// The book of this version.
pub static BOOK: LazyLock<Book> = LazyLock::new(|| Book::parse(text("SUMMARY").unwrap_or_default()));

/// Chapters in reading order, grouped into parts.
#[derive(Debug, PartialEq, Eq)]
pub struct Book {
    /// The parts in order; the first may have no title.
    pub parts: Vec<Part>,
}

/// Chapters under one heading of the table of contents.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The heading.
    pub title: Option<String>,
    /// In reading order.
    pub chapters: Vec<Chapter>,
}

/// One page of the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chapter {
    /// The title in the table of contents.
    pub title: String,
    /// Path below `docs/` without `.md`, such as `guide/targets`.
    pub path: String,
}

impl Chapter {
    /// The address of its page.
    pub fn href(&self) -> String {
        format!("/docs/{}", self.path)
    }

    /// The Markdown of its page.
    pub fn text(&self) -> &'static str {
        text(&self.path).unwrap_or_default()
    }
}

impl Book {
    /// Reads mdBook's `SUMMARY.md`: `# Part` headings and `- [Title](path.md)` entries.
    fn parse(summary: &str) -> Self {
        let mut parts = vec![Part::default()];
        for line in summary.lines().map(str::trim).skip(1) {
            if let Some(title) = line.strip_prefix("# ") {
                parts.push(Part { title: Some(title.to_owned()), chapters: Vec::new() });
            } else if let (Some(chapter), Some(part)) = (entry(line), parts.last_mut()) {
                part.chapters.push(chapter);
            }
        }
        parts.retain(|part| !part.chapters.is_empty());
        Self { parts }
    }

    /// All chapters in reading order.
    pub fn chapters(&self) -> impl Iterator<Item = &Chapter> {
        self.parts.iter().flat_map(|part| &part.chapters)
    }

    /// A chapter with its neighbours in reading order.
    pub fn find(&self, path: &str) -> Option<(&Chapter, [Option<&Chapter>; 2])> {
        let chapters: Vec<&Chapter> = self.chapters().collect();
        let place = chapters.iter().position(|chapter| chapter.path == path)?;
        let before = place.checked_sub(1).map(|before| chapters[before]);
        Some((chapters[place], [before, chapters.get(place + 1).copied()]))
    }
}

fn entry(line: &str) -> Option<Chapter> {
    let (title, rest) = line.trim_start_matches("- ").strip_prefix('[')?.split_once("](")?;
    let path = rest.strip_suffix(".md)")?.trim_start_matches("./");
    Some(Chapter { title: title.to_owned(), path: path.to_owned() })
}

fn text(path: &str) -> Option<&'static str> {
    FILES.iter().find(|(file, _)| *file == path).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_chapters_are_read_in_order() {
        let book = Book::parse("# Summary\n\n[Introduction](README.md)\n\n# Guide\n\n- [Targets](guide/targets.md)\n");
        let paths: Vec<&str> = book.chapters().map(|chapter| chapter.path.as_str()).collect();
        assert_eq!(paths, ["README", "guide/targets"]);
        assert_eq!(book.parts[1].title.as_deref(), Some("Guide"));
        let (chapter, [before, after]) = book.find("guide/targets").expect("a chapter");
        assert_eq!((chapter.href().as_str(), after), ("/docs/guide/targets", None));
        assert_eq!(before.map(|chapter| chapter.title.as_str()), Some("Introduction"));
        assert_eq!(book.find("../Cargo"), None);
    }

    #[test]
    fn the_table_of_contents_and_the_files_match() {
        let mut listed: Vec<&str> = BOOK.chapters().map(|chapter| chapter.path.as_str()).collect();
        let mut files: Vec<&str> = FILES.iter().map(|(path, _)| *path).filter(|path| *path != "SUMMARY").collect();
        listed.sort_unstable();
        files.sort_unstable();
        assert_eq!(listed, files);
    }
}
