//! `/docs`: the chapters of the documentation, and their search.

use askama::Template;
use askama_web::WebTemplate;
use axum::{Router, extract::Path, response::Redirect, routing::get};
use serde::Deserialize;
use tokio::task::spawn_blocking;

use super::{
    book::{BOOK, Chapter, Part},
    render::{Rendered, render},
    store::{Hit, search},
};
use crate::{
    app::{
        error::{Error, QueryParams, Result},
        search_text::SearchText,
        state::AppState,
    },
    auth::caller::OptionalCaller,
    web::shell::Shell,
};

/// The pages of this module.
pub fn router() -> Router<AppState> {
    Router::new().route("/docs", get(index)).route("/docs/search", get(find)).route("/docs/{*chapter}", get(chapter))
}

/// The table of contents and the search box.
#[derive(Debug)]
struct Contents {
    parts: &'static [Part],
    /// The chapter that is open.
    open: Option<&'static str>,
    words: String,
}

impl Contents {
    fn new(open: Option<&'static str>, words: String) -> Self {
        Self { parts: &BOOK.parts, open, words }
    }

    fn is_open(&self, chapter: &Chapter) -> bool {
        self.open == Some(&chapter.path)
    }
}

/// One chapter.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "docs/chapter.html")]
struct ChapterPage {
    shell: Shell,
    contents: Contents,
    neighbours: [Option<&'static Chapter>; 2],
    rendered: Rendered,
}

/// The sections that a search found.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "docs/search.html")]
struct SearchPage {
    shell: Shell,
    contents: Contents,
    hits: Vec<Hit>,
}

async fn index(visitor: OptionalCaller) -> Result<ChapterPage> {
    page(&visitor, "README")
}

async fn chapter(
    visitor: OptionalCaller,
    Path(path): Path<String>,
) -> Result<std::result::Result<ChapterPage, Redirect>> {
    // As files, chapters end in `.md`: links that were copied from there work as well.
    if let Some(path) = path.strip_suffix(".md") {
        return Ok(Err(Redirect::permanent(&format!("/docs/{path}"))));
    }
    page(&visitor, &path).map(Ok)
}

fn page(visitor: &OptionalCaller, path: &str) -> Result<ChapterPage> {
    let found = BOOK.find(path).ok_or_else(|| Error::NotFound(format!("chapter {path:?} of the documentation")))?;
    let (chapter, neighbours) = found;
    let rendered = render(chapter.text(), path);
    let shell = Shell::documentation(&rendered.title, visitor.name());
    let contents = Contents::new(Some(&chapter.path), String::new());
    Ok(ChapterPage { shell, contents, neighbours, rendered })
}

/// What to search for.
#[derive(Debug, Default, Deserialize)]
struct Words {
    #[serde(default)]
    q: SearchText,
}

async fn find(visitor: OptionalCaller, QueryParams(Words { q }): QueryParams<Words>) -> Result<SearchPage> {
    let words = q.as_str().to_owned();
    let hits = spawn_blocking(move || search(&q)).await.map_err(Error::internal)?.map_err(sqlx::Error::Decode)?;
    let shell = Shell::documentation("Search the documentation", visitor.name());
    Ok(SearchPage { shell, contents: Contents::new(None, words), hits })
}
