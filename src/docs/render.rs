//! Markdown of a chapter to HTML, with anchors for its headings and links to other chapters. Pure.

use std::{collections::HashMap, fmt, mem};

use askama::filters::HtmlSafe;
use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::web::assets;

/// A rendered chapter.
#[derive(Debug, Default)]
pub struct Rendered {
    /// The page's body without its first heading.
    pub html: Html,
    /// The page's first heading.
    pub title: String,
    /// The page cut at its headings.
    pub sections: Vec<Section>,
}

/// HTML of the embedded book; in a template it is not escaped.
#[derive(Clone, Debug, Default)]
pub struct Html(String);

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Html {}

/// A heading and the text up to the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// 1 to 6.
    pub level: u8,
    /// The heading.
    pub title: String,
    /// The anchor, built as mdBook builds it.
    pub id: String,
    /// The text without markup.
    pub text: String,
}

/// Renders the chapter at a path below `docs/`.
pub fn render(markdown: &str, path: &str) -> Rendered {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_FOOTNOTES;
    let mut page = Page { folder: path.rsplit_once('/').map_or("", |(folder, _)| folder), ..Page::default() };
    for event in Parser::new_ext(markdown, options) {
        page.add(event);
    }
    let Page { events, title, sections, .. } = page;
    let mut body = String::with_capacity(markdown.len() * 2);
    html::push_html(&mut body, events.into_iter());
    Rendered { html: Html(body), title, sections }
}

#[derive(Default)]
struct Page<'a> {
    folder: &'a str,
    events: Vec<Event<'a>>,
    /// The events of the heading that is open.
    heading: Option<(HeadingLevel, Vec<Event<'a>>)>,
    title: String,
    sections: Vec<Section>,
    ids: HashMap<String, usize>,
}

impl<'a> Page<'a> {
    fn add(&mut self, event: Event<'a>) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => self.heading = Some((level, Vec::new())),
            Event::End(TagEnd::Heading(_)) => self.end_heading(),
            event if self.heading.is_some() => {
                if let Some((_, events)) = &mut self.heading {
                    events.push(event);
                }
            }
            event => {
                self.index(&event);
                let event = self.link(event);
                block(event, &mut self.events);
            }
        }
    }

    fn end_heading(&mut self) {
        let Some((level, events)) = mem::take(&mut self.heading) else { return };
        let title: String = events.iter().filter_map(plain_text).collect();
        let id = self.unique(&anchor(&title));
        let section = Section { level: level as u8, title: title.clone(), id: id.clone(), text: String::new() };
        self.sections.push(section);
        if level == HeadingLevel::H1 && self.title.is_empty() {
            self.title = title;
            return;
        }
        self.events.push(Event::Html(format!("<{level} id=\"{id}\"><a href=\"#{id}\">").into()));
        self.events.extend(events);
        self.events.push(Event::Html(format!("</a></{level}>\n").into()));
    }

    fn unique(&mut self, id: &str) -> String {
        let count = self.ids.entry(id.to_owned()).or_default();
        *count += 1;
        if *count == 1 { id.to_owned() } else { format!("{id}-{}", *count - 1) }
    }

    /// Adds text to the open section, for the search.
    fn index(&mut self, event: &Event) {
        if self.sections.is_empty() {
            self.sections.push(Section { level: 1, ..Section::default() });
        }
        let Some(section) = self.sections.last_mut() else { return };
        match event {
            Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell | TagEnd::CodeBlock) => {
                section.text.push(' ');
            }
            event => section.text.extend(plain_text(event)),
        }
    }

    /// Points links to `.md` files at their pages and pictures at the embedded files.
    fn link(&self, event: Event<'a>) -> Event<'a> {
        match event {
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let dest_url = self.address(&dest_url).map_or(dest_url, CowStr::from);
                Event::Start(Tag::Link { link_type, dest_url, title, id })
            }
            Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                let name = dest_url.rsplit('/').next().unwrap_or_default();
                let dest_url = assets::asset(&format!("images/{name}")).into();
                Event::Start(Tag::Image { link_type, dest_url, title, id })
            }
            event => event,
        }
    }

    /// The page's address of a relative link to a chapter.
    fn address(&self, link: &str) -> Option<String> {
        let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
        let chapter = file.strip_suffix(".md").filter(|_| !file.contains("://"))?;
        let mut parts: Vec<&str> = self.folder.split('/').filter(|part| !part.is_empty()).collect();
        for part in chapter.split('/') {
            match part {
                "." | "" => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let anchor = anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
        Some(format!("/docs/{}{anchor}", parts.join("/")))
    }
}

/// Adds an event. Tables and code may be wider than a phone, so they scroll by themselves, also with the keyboard.
fn block<'a>(event: Event<'a>, events: &mut Vec<Event<'a>>) {
    const TABLE: &str = "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">";
    match event {
        Event::Start(Tag::CodeBlock(kind)) => {
            let language = match kind {
                CodeBlockKind::Fenced(info) => info.split([',', ' ']).next().unwrap_or_default().to_owned(),
                CodeBlockKind::Indented => String::new(),
            };
            let start = format!("<pre tabindex=\"0\"><code class=\"language-{language}\">");
            events.push(Event::Html(start.into()));
        }
        Event::End(TagEnd::CodeBlock) => events.push(Event::Html("</code></pre>\n".into())),
        Event::Start(Tag::Table(_)) => events.extend([Event::Html(TABLE.into()), event]),
        Event::End(TagEnd::Table) => events.extend([event, Event::Html("</div>\n".into())]),
        event => events.push(event),
    }
}

fn plain_text(event: &Event) -> Option<String> {
    match event {
        Event::Text(text) | Event::Code(text) => Some(text.to_string()),
        Event::SoftBreak | Event::HardBreak => Some(" ".to_owned()),
        _ => None,
    }
}

/// The anchor of a heading: lower case, blanks as hyphens, no other punctuation.
fn anchor(title: &str) -> String {
    let letters = title.trim().chars().filter_map(|letter| match letter {
        letter if letter.is_alphanumeric() || letter == '_' || letter == '-' => Some(letter.to_ascii_lowercase()),
        letter if letter.is_whitespace() => Some('-'),
        _ => None,
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_between_chapters_lead_to_their_pages() {
        let html = |text: &str, path: &str| render(text, path).html.to_string();
        let link = html("[a](../reference/cli.md#run-new) [b](loads.md) [c](https://k6.io/x.md)", "guide/targets");
        for href in ["/docs/reference/cli#run-new", "/docs/guide/loads", "https://k6.io/x.md"] {
            assert!(link.contains(&format!("href=\"{href}\"")), "{href}: {link}");
        }
    }

    #[test]
    fn headings_have_unique_anchors_and_cut_the_text_into_sections() {
        let page = render("# Title\nfirst\n## What `it` does!\nsecond\n## What it does\nthird", "a");
        assert_eq!(page.title, "Title");
        let ids: Vec<_> = page.sections.iter().map(|section| (section.id.as_str(), section.text.trim())).collect();
        assert_eq!(ids, [("title", "first"), ("what-it-does", "second"), ("what-it-does-1", "third")]);
        assert!(page.html.to_string().contains("<h2 id=\"what-it-does\"><a href=\"#what-it-does\">What <code>it"));
    }

    #[test]
    fn code_is_escaped_and_reachable_by_keyboard() {
        let html = render("```sh\na <b>\n```", "a").html.to_string();
        assert_eq!(html.trim(), "<pre tabindex=\"0\"><code class=\"language-sh\">a &lt;b&gt;\n</code></pre>");
    }
}
