//! `brewbench trend …`

use std::fmt::Write;

use clap::{Args, Subcommand};
use reqwest::Method;

use super::table::{Align, cut, figure, plain, short_id, table};
use crate::{
    cli::{common::Common, connection::encoded},
    trends::{
        api::JudgementBody,
        model::{self, Change, Ruling, Span, TrendInfo, TrendList},
    },
    web::{format::plural, time_ago::exact},
};

/// Commands about cells over versions and time.
#[derive(Debug, Subcommand)]
pub enum Trend {
    /// List cells: one target on one size under one load by one agent
    List {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// Only those of this target
        #[arg(long)]
        target: Option<String>,
    },
    /// Show a cell by version, and its changes; each point is an experiment, the median of its runs
    Show(Which),
    /// Confirm a change
    Confirm(Said),
    /// Dismiss a change: it is none, or none that matters
    Dismiss(Said),
    /// Take back what was said of a change
    Reopen(Known),
}

/// A figure of a cell.
#[derive(Debug, Args)]
pub struct Which {
    #[command(flatten)]
    common: Common,
    /// Name of the target
    target: String,
    /// The cell's id, as `trend list` shows it
    cell: String,
    /// Which figure: `rps`, `p50_ms`, `p99_ms`, `received_per_s`, …
    #[arg(long, default_value = "rps")]
    metric: String,
}

/// A change of it.
#[derive(Debug, Args)]
pub struct Known {
    #[command(flatten)]
    which: Which,
    /// The first run after the change, or another of its experiment, or the end of its id
    run: String,
}

/// What is said of it.
#[derive(Debug, Args)]
pub struct Said {
    #[command(flatten)]
    known: Known,
    /// Why
    #[arg(long)]
    note: Option<String>,
}

impl Trend {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List { common, target } => {
                let client = common.connect()?.client;
                let query: Vec<_> = target.iter().map(|target| ("target", target)).collect();
                let list: TrendList = client.json(client.request(Method::GET, "api/v1/trends").query(&query)).await?;
                common.print(&list, cells)
            }
            Self::Show(which) => which.show().await,
            Self::Confirm(Said { known, note }) => known.judge(Ruling::Confirmed, note).await,
            Self::Dismiss(Said { known, note }) => known.judge(Ruling::Dismissed, note).await,
            Self::Reopen(known) => known.reopen().await,
        }
    }
}

impl Which {
    fn path(&self) -> String {
        format!("api/v1/trends/{}/{}", encoded(&self.target), encoded(&self.cell))
    }

    async fn show(self) -> anyhow::Result<()> {
        let client = self.common.connect()?.client;
        let request = client.request(Method::GET, &self.path()).query(&[("metric", &self.metric)]);
        let trend: model::Trend = client.json(request).await?;
        self.common.print(&trend, text)
    }
}

impl Known {
    async fn judge(self, ruling: Ruling, note: Option<String>) -> anyhow::Result<()> {
        self.send(Method::PUT, Some(JudgementBody { ruling, note })).await
    }

    async fn reopen(self) -> anyhow::Result<()> {
        self.send(Method::DELETE, None).await
    }

    async fn send(self, method: Method, body: Option<JudgementBody>) -> anyhow::Result<()> {
        let Self { which, run } = self;
        let connection = which.common.connect()?;
        let run = crate::cli::run::which::full_id(&connection, &run).await?;
        let path = format!("{}/changes/{}", which.path(), encoded(run.as_str()));
        let mut request = connection.client.request(method, &path).query(&[("metric", &which.metric)]);
        if let Some(body) = &body {
            request = request.json(body);
        }
        let trend: model::Trend = connection.client.json(request).await?;
        which.common.print(&trend, text)
    }
}

fn cells(list: &TrendList) -> String {
    if list.trends.is_empty() {
        return "no run has figures that count yet\n".to_owned();
    }
    let head = [
        ("target", Align::Left),
        ("cell", Align::Left),
        ("runs", Align::Right),
        ("req/s", Align::Right),
        ("to judge", Align::Right),
        ("of", Align::Left),
    ];
    let row = |info: &TrendInfo| {
        let open = if info.open == 0 { "–".to_owned() } else { info.open.to_string() };
        let (runs, setting) = (info.runs.to_string(), info.cell.setting());
        vec![cut(&info.cell.target, 20), info.cell.id.clone(), runs, figure(info.rps), open, cut(&setting, 60)]
    };
    table(&head, &list.trends.iter().map(row).collect::<Vec<_>>())
}

fn text(trend: &model::Trend) -> String {
    let mut text = format!("{}: {}\n", plain(&trend.cell.target), plain(&trend.cell.setting()));
    let head = [
        ("version", Align::Left),
        ("points", Align::Right),
        ("runs", Align::Right),
        ("median", Align::Right),
        ("95 % interval", Align::Left),
        ("last", Align::Left),
    ];
    let amount = |value: f64| trend.metric.figure(Some(value)).text().replace('\u{a0}', " ");
    let row = |span: &Span| {
        let interval = span.low.zip(span.high).map(|(low, high)| format!("{} to {}", amount(low), amount(high)));
        let runs =
            if span.suspect > 0 { format!("{} ({} suspect)", span.runs, span.suspect) } else { span.runs.to_string() };
        let version = cut(span.version.as_deref().unwrap_or("unknown"), 24);
        let points = span.points.to_string();
        vec![
            version,
            points,
            runs,
            amount(span.median),
            interval.unwrap_or_else(|| "–".to_owned()),
            exact(Some(span.to_ms)),
        ]
    };
    let _ = writeln!(text, "{}", plain(trend.metric.head()));
    text.push_str(&table(&head, &trend.spans.iter().map(row).collect::<Vec<_>>()));
    if trend.changes.is_empty() {
        let _ = writeln!(text, "\nno change in {}", plural(trend.points.len(), "point"));
    } else {
        text.push('\n');
    }
    for change in &trend.changes {
        let _ = writeln!(text, "{}", plain(&told(change)));
    }
    text
}

/// One line: when, by how much, what was said of it.
fn told(change: &Change) -> String {
    let id = short_id(&change.run);
    let percent = (change.ratio - 1.0) * 100.0;
    let said = change.judgement.as_ref().map_or_else(
        || "open".to_owned(),
        |judgement| {
            let note = judgement.note.as_deref().map_or(String::new(), |note| format!(": {note}"));
            format!("{} by {}{note}", judgement.ruling.as_str(), judgement.by)
        },
    );
    let until = change.returned.as_ref().map_or(String::new(), |back| format!(" until {}", exact(Some(back.at_ms))));
    format!("{id}  {}  {percent:+.1} % {}{until}  {said}", exact(Some(change.at_ms)), change.word())
}
