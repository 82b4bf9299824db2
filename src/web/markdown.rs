//! Renders notes from Markdown to safe HTML: no raw HTML, no external images, links only to the web and mail.

use std::fmt;

use askama::filters::HtmlSafe;
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// Safe HTML; renders itself in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Markdown(String);

impl fmt::Display for Markdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Only [`render`] creates it.
impl HtmlSafe for Markdown {}

/// Renders a note. HTML and unsafe links stay text, images become links, and headings rank below those of the page.
pub fn render(text: &str) -> Markdown {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut open = Vec::new();
    let events = Parser::new_ext(text, options).map(move |event| safe(event, &mut open));
    let mut rendered = String::with_capacity(text.len() * 2);
    html::push_html(&mut rendered, events);
    Markdown(rendered)
}

/// Returns the first paragraph or heading as plain text on one line, for lists; empty if there is none.
pub fn beginning(text: &str) -> String {
    let mut words = String::new();
    for event in Parser::new(text) {
        match event {
            Event::Text(part) | Event::Code(part) | Event::Html(part) | Event::InlineHtml(part) => {
                words.push_str(&part);
            }
            Event::SoftBreak | Event::HardBreak => words.push(' '),
            Event::End(
                TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::Item | TagEnd::CodeBlock | TagEnd::HtmlBlock,
            ) if !words.trim().is_empty() => {
                break;
            }
            _ => {}
        }
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Escapes text for one line of Markdown: no markup, no HTML and no `@` mentions.
pub fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '!' => safe.extend(['\\', letter]),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            // An invisible word joiner prevents a mention.
            '@' => safe.push_str("@\u{2060}"),
            letter if letter.is_control() => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}

/// Makes an event safe. `open` stores for each open link whether it is allowed.
fn safe<'a>(event: Event<'a>, open: &mut Vec<bool>) -> Event<'a> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Heading { level, .. }) => {
            Event::Start(Tag::Heading { level: below(level), id: None, classes: Vec::new(), attrs: Vec::new() })
        }
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(below(level))),
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            let allowed = is_allowed_link(&dest_url);
            open.push(allowed);
            own(if allowed {
                format!(r#"<a href="{}" rel="noopener noreferrer nofollow">"#, escaped(&dest_url))
            } else {
                String::new()
            })
        }
        Event::End(TagEnd::Link | TagEnd::Image) => {
            own(if open.pop().unwrap_or_default() { "</a>".to_owned() } else { String::new() })
        }
        other => other,
    }
}

/// HTML created by this file.
fn own(html: String) -> Event<'static> {
    Event::InlineHtml(CowStr::from(html))
}

fn is_allowed_link(address: &str) -> bool {
    url::Url::parse(address).is_ok_and(|url| matches!(url.scheme(), "http" | "https" | "mailto"))
}

fn below(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_note_is_plain_text() {
        for (note, words) in [
            ("# After the *upgrade*\n\nand more", "After the upgrade"),
            ("\n- one `x`\n- two", "one x"),
            ("line\nand its rest\n\nnext", "line and its rest"),
            ("<b>html</b> stays", "<b>html</b> stays"),
            ("![](https://x)\n\nthen", "then"),
            ("---\n", ""),
        ] {
            assert_eq!(beginning(note), words, "{note:?}");
        }
    }

    #[test]
    fn markdown_is_rendered_as_html() {
        let html =
            render("# Why\n\n*faster* since `musl`, see [the issue](https://example.com/?a=1&b=2)\n\n- one\n- two")
                .to_string();
        assert!(html.contains("<h3>Why</h3>") && html.contains("<em>faster</em>") && html.contains("<li>two</li>"));
        let link = r#"<a href="https://example.com/?a=1&amp;b=2" rel="noopener noreferrer nofollow">the issue</a>"#;
        assert!(html.contains(link), "{html}");
    }

    #[test]
    fn an_escaped_name_is_rendered_literally() {
        for name in ["<script>alert(1)</script>", "a|b *c* _d_ `e` [f](g) # ~~h~~", "a & b &lt;", "x\\", "![i](j)"] {
            let html = render(&format!("x {} y", plain(name))).to_string();
            let escaped = name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            assert_eq!(html, format!("<p>x {escaped} y</p>\n"));
        }
        assert!(!plain("@all\nthere").contains("@all") && !plain("a\nb").contains('\n'));
    }

    #[test]
    fn html_is_always_escaped() {
        let hostile = [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<div\nonclick='alert(1)'>x</div>",
            "<!-- --><script>alert(1)</script>",
            "| a |\n|---|\n| <script>alert(1)</script> |",
            "- <iframe src=//evil.example></iframe>",
            "[x](https://e.example/\"onmouseover=\"alert(1))",
            "[<script>alert(1)</script>](https://e.example)",
            "`<script>alert(1)</script>`",
            "```<script>\n<script>alert(1)</script>\n```",
            "![<script>alert(1)</script>](https://e.example/x.png)",
            "# <script>alert(1)</script> {#id onclick=alert(1)}",
        ];
        for text in hostile {
            let html = render(text).to_string();
            for tag in ["<script", "<img", "<iframe", "<div", "<!--"] {
                assert!(!html.contains(tag), "{text}: {html}");
            }
            let inside = html.split('<').skip(1).filter_map(|part| part.split('>').next());
            for tag in inside {
                let bare: String = tag.split('"').step_by(2).collect();
                assert!(!bare.contains("on"), "{text}: <{tag}>");
            }
        }
    }

    #[test]
    fn only_web_and_mail_links_are_allowed_and_no_image_is_loaded() {
        for bad in
            ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "/runs/x/delete", "vbscript:x", "x"]
        {
            let html = render(&format!("[here]({bad}) ![there]({bad})")).to_string();
            assert!(!html.contains("<a") && !html.contains("<img") && html.contains("here"), "{html}");
        }
        let html = render("![plot](https://example.com/p.png) <mail@example.com>").to_string();
        assert!(html.contains(r#"href="https://example.com/p.png""#) && !html.contains("<img"), "{html}");
        assert!(html.contains("mail@example.com"), "{html}");
    }
}
