//! The logs of a run, and the search in them. Template: `runs/_logs.html`.

use askama::{Template, filters::HtmlSafe};
use axum::{
    extract::{Path, State},
    response::Html,
};
use serde::Deserialize;

use crate::{
    app::{
        error::{Error, QueryParams, Result},
        ids::RunId,
        state::AppState,
    },
    auth::caller::Read,
    results::logs::{GeneratorLog, MAX_GREP, RunLogs, matching_lines, pieces},
    runs::{api, lookup, model::Run},
    web::format,
};

/// Maximum number of matching lines that are shown of a log.
const MAX_FOUND: usize = 1_000;

/// The card with the logs of a run; renders itself in a template. Its root is `#logs`.
#[derive(Debug, Template)]
#[template(path = "runs/_logs.html")]
pub struct Logs {
    run: RunId,
    /// The text that is searched; empty without a search.
    search: String,
    /// Whether the target's log is shown at once, as for a failed run.
    is_open: bool,
    all: Vec<Log>,
}

/// One log.
#[derive(Debug)]
struct Log {
    /// Unique on the page.
    id: String,
    title: String,
    /// None until the agent has sent it.
    text: Option<String>,
    /// Number of its lines.
    lines: usize,
    /// Matching lines in a search.
    found: Vec<MatchingLine>,
    /// Number of matching lines.
    count: usize,
}

/// A line that matches.
#[derive(Debug)]
struct MatchingLine {
    number: usize,
    /// Its text, and which parts of it match.
    pieces: Vec<(String, bool)>,
}

/// The template escapes logs and search.
impl HtmlSafe for Logs {}

/// Query parameters of the page.
#[derive(Debug, Default, Deserialize)]
pub struct LogsQuery {
    /// Shows only lines of the logs that contain this text.
    #[serde(default)]
    log: String,
}

impl LogsQuery {
    /// Returns the text to search for; the page ignores what is longer than its field allows.
    pub fn text(&self) -> String {
        self.log.trim().chars().take(MAX_GREP).collect()
    }
}

impl Log {
    fn new(id: String, title: String, text: Option<String>) -> Self {
        let lines = text.as_ref().map_or(0, |text| text.lines().count());
        Self { id, title, text, lines, found: Vec::new(), count: 0 }
    }

    fn search(&mut self, wanted: &str) {
        let text = self.text.as_deref().unwrap_or_default();
        let owned = |pieces: Vec<(&str, bool)>| pieces.into_iter().map(|(text, is)| (text.to_owned(), is)).collect();
        self.count = matching_lines(text, wanted).count();
        self.found = matching_lines(text, wanted)
            .take(MAX_FOUND)
            .map(|(number, line)| MatchingLine { number, pieces: owned(pieces(line, wanted)) })
            .collect();
    }

    /// Describes the matches: `3 of 214 lines`.
    fn matches(&self) -> String {
        format!("{} of {}", format::count(Some(self.count as u64)).text(), format::plural(self.lines, "line"))
    }

    fn unlisted(&self) -> usize {
        self.count - self.found.len()
    }
}

impl Logs {
    /// Arranges the logs of a run.
    pub fn new(run: &Run, logs: RunLogs) -> Self {
        let RunLogs { run: id, target, target_lines: _, generators } = logs;
        let mut all = vec![Log::new("target-log".to_owned(), "Target log".to_owned(), target)];
        let is_distributed = run.load_from().is_some();
        for (place, GeneratorLog { agent, log, lines: _ }) in (1..).zip(generators) {
            let (id, title) = match agent.filter(|_| is_distributed) {
                Some(agent) => (format!("k6-log-{place}"), format!("Load generator log on {agent}")),
                None => ("k6-log".to_owned(), "Load generator log".to_owned()),
            };
            all.push(Log::new(id, title, Some(log)));
        }
        Self { run: id, search: String::new(), is_open: !run.has_result(), all }
    }

    /// Searches all logs for a text; an empty text shows them in full.
    #[must_use]
    pub fn search(mut self, text: String) -> Self {
        for log in self.all.iter_mut().filter(|_| !text.is_empty()) {
            log.search(&text);
        }
        self.search = text;
        self
    }

    fn is_search(&self) -> bool {
        !self.search.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.all.iter().all(|log| log.lines == 0)
    }

    /// Describes the result of a search.
    fn result(&self) -> String {
        match self.all.iter().map(|log| log.count).sum::<usize>() {
            0 => "No matching lines".to_owned(),
            1 => "1 matching line".to_owned(),
            count => format!("{} matching lines", format::count(Some(count as u64)).text()),
        }
    }
}

/// `GET /runs/{id}/logs?log=…`: the card of the run's page, while the user types.
pub async fn search(
    _: Read,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
    QueryParams(query): QueryParams<LogsQuery>,
) -> Result<Html<String>> {
    let run = lookup::found(&state, &id).await?;
    let evidence = api::environment::evidence(&state, &run.id).await?;
    let logs = Logs::new(&run, RunLogs::new(&run, evidence.as_ref())).search(query.text());
    logs.render().map(Html).map_err(Error::internal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{results::evidence::Evidence, runs::testing::finished};

    fn html(log: &str, search: &str) -> String {
        let evidence = Evidence { target_log: log.to_owned(), ..Evidence::default() };
        let run = finished("servy", 1);
        let logs = Logs::new(&run, RunLogs::new(&run, Some(&evidence))).search(search.to_owned());
        logs.render().expect("it renders")
    }

    #[test]
    fn a_search_shows_matching_lines_with_numbers_and_marks() {
        let html = html("up\nERROR one\nfine\nerror two", "error");
        assert!(html.contains("2 of 4 lines") && html.contains("2 matching lines"), "{html}");
        assert!(html.contains(r#"<li value="2"><mark>ERROR</mark> one</li>"#), "{html}");
        assert!(html.contains(r#"<li value="4"><mark>error</mark> two</li>"#) && !html.contains("fine"), "{html}");
    }

    #[test]
    fn hostile_logs_and_searches_stay_text() {
        let html = html("<img src=x onerror=alert(1)>", "\"><img src=x");
        assert!(!html.contains("<img"), "{html}");
        let html = self::html("<img src=x onerror=alert(1)>", "<img");
        assert!(!html.contains("<img") && html.contains("<mark>&#60;img</mark>"), "{html}");
    }

    #[test]
    fn the_matching_lines_of_a_huge_log_are_bounded() {
        let html = html(&"error\n".repeat(5_000), "err");
        assert_eq!(html.matches("<li ").count(), MAX_FOUND);
        assert!(html.contains("5,000 of 5,000 lines") && html.contains("4000 more"), "{}", &html[..2_000]);
    }

    #[test]
    fn without_a_search_logs_are_shown_in_full() {
        let html = html("listening", "");
        assert!(html.contains("<pre tabindex=\"0\">listening</pre>") && !html.contains("<mark>"), "{html}");
        assert!(html.contains("The load generator log is empty."), "{html}");
    }
}
