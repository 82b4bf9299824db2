//! `brewbench trend …`

use std::fmt::Write;

use brewbench::{
    trends::{
        api::AnnotationBody,
        model::{self, Change, ChangeStatus, Pin, PinList, Span, TrendInfo, TrendList},
    },
    web::{format::plural, time_ago::exact},
};
use clap::{Args, Subcommand};
use reqwest::Method;

use super::table::{cut, figure, hanging, plain, short_id, table, with_below};
use crate::{common::Common, connection::encoded};

/// Show trends of cells over versions and time.
#[derive(Debug, Subcommand)]
pub enum Trend {
    /// List cells: a target at a size under a load on an agent
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// Only cells of this target
        #[arg(long)]
        target: Option<String>,
    },
    /// Show a cell by version, and its changes. Each point is the median of an experiment's runs
    Show(CellMetric),
    /// Confirm a change
    Confirm(Annotate),
    /// Dismiss a change as noise or irrelevant
    Dismiss(Annotate),
    /// Reopen a change: delete its annotation
    Reopen(ChangeOf),
    /// List the trends that you have pinned to your dashboard
    Pins {
        /// Server and output format
        #[command(flatten)]
        common: Common,
    },
    /// Pin a trend to your dashboard
    Pin(OneCell),
    /// Remove a trend from your dashboard
    Unpin(OneCell),
}

/// A cell.
#[derive(Debug, Args)]
pub struct OneCell {
    #[command(flatten)]
    common: Common,
    /// Name of the target
    target: String,
    /// The cell's id, as `trend list` and `trend pins` show it
    cell: String,
}

/// A metric of a cell.
#[derive(Debug, Args)]
pub struct CellMetric {
    #[command(flatten)]
    common: Common,
    /// Name of the target
    target: String,
    /// The cell's id, as `trend list` shows it
    cell: String,
    /// Metric: `rps`, `p50_ms`, `p99_ms`, `received_per_s`, …
    #[arg(long, default_value = "rps")]
    metric: String,
}

/// A change of a metric.
#[derive(Debug, Args)]
pub struct ChangeOf {
    #[command(flatten)]
    which: CellMetric,
    /// Id of the first run after the change, or of another run of its experiment; its last characters suffice
    run: String,
}

/// The annotation of a change.
#[derive(Debug, Args)]
pub struct Annotate {
    #[command(flatten)]
    change: ChangeOf,
    /// Reason, shown with the change
    #[arg(long)]
    note: Option<String>,
}

impl Trend {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List { common, target } => {
                let client = common.connect()?.client;
                let query: Vec<_> = target.iter().map(|target| ("target", target)).collect();
                let list: TrendList = client.json(client.request(Method::GET, "api/v1/trends").query(&query)).await?;
                common.print(&list, cells)
            }
            Self::Show(which) => which.show().await,
            Self::Confirm(Annotate { change, note }) => change.annotate(ChangeStatus::Confirmed, note).await,
            Self::Dismiss(Annotate { change, note }) => change.annotate(ChangeStatus::Dismissed, note).await,
            Self::Reopen(change) => change.reopen().await,
            Self::Pins { common } => {
                let client = common.connect()?.client;
                let list: PinList = client.json(client.request(Method::GET, "api/v1/pins")).await?;
                common.print(&list, pins)
            }
            Self::Pin(cell) => cell.send(Method::PUT).await,
            Self::Unpin(cell) => cell.send(Method::DELETE).await,
        }
    }
}

impl OneCell {
    async fn send(self, method: Method) -> anyhow::Result<()> {
        let client = self.common.connect()?.client;
        let path = format!("api/v1/trends/{}/{}/pin", encoded(&self.target), encoded(&self.cell));
        let list: PinList = client.json(client.request(method, &path)).await?;
        self.common.print(&list, pins)
    }
}

impl CellMetric {
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

impl ChangeOf {
    async fn annotate(self, status: ChangeStatus, note: Option<String>) -> anyhow::Result<()> {
        self.send(Method::PUT, Some(AnnotationBody { status, note })).await
    }

    async fn reopen(self) -> anyhow::Result<()> {
        self.send(Method::DELETE, None).await
    }

    async fn send(self, method: Method, body: Option<AnnotationBody>) -> anyhow::Result<()> {
        let Self { which, run } = self;
        let connection = which.common.connect()?;
        let run = crate::run::which::full_id(&connection, &run).await?;
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
        return "no valid or suspect runs yet\n".to_owned();
    }
    let head = ["target", "cell", ">runs", ">req/s", ">open changes", ">new"];
    let row = |info: &TrendInfo| {
        let [open, new] =
            [info.open, info.new].map(|count| if count == 0 { "–".to_owned() } else { count.to_string() });
        vec![cut(&info.cell.target, 30), info.cell.id.clone(), info.runs.to_string(), figure(info.rps), open, new]
    };
    let rows = table(&head, &list.trends, row);
    with_below(&rows, list.trends.iter().map(|info| plain(&info.cell.setting())))
}

fn pins(list: &PinList) -> String {
    if list.pins.is_empty() {
        return "no pinned trends\n".to_owned();
    }
    let head = ["target", "cell", "setting"];
    let row = |pin: &Pin| vec![cut(&pin.target, 20), pin.cell.clone(), cut(&pin.setting, 60)];
    table(&head, &list.pins, row)
}

fn text(trend: &model::Trend) -> String {
    let mut text = hanging(&format!("{}: {}", plain(&trend.cell.target), plain(&trend.cell.setting())), 0) + "\n";
    let head = ["version", ">points", ">runs", ">median", "95 % interval", "last"];
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
    text.push_str(&table(&head, &trend.spans, row));
    if trend.changes.is_empty() {
        let _ = writeln!(text, "\nno change in {}", plural(trend.points.len(), "point"));
    } else {
        text.push('\n');
    }
    for change in &trend.changes {
        let _ = writeln!(text, "{}", plain(&describe(change)));
        if let Some(bisect) = &change.bisect {
            let _ = writeln!(text, "  {}", plain(bisect));
        }
    }
    text
}

/// Describes a change in one line: when, by how much, and its annotation or what supports it.
fn describe(change: &Change) -> String {
    let id = short_id(change.run.as_str());
    let percent = (change.ratio - 1.0) * 100.0;
    let status = change.annotation.as_ref().map_or_else(
        || {
            let why = change.support.explain().map_or(String::new(), |why| format!(": {why}"));
            format!("{}{why}", change.support.describe())
        },
        |annotation| {
            let note = annotation.note.as_deref().map_or(String::new(), |note| format!(": {note}"));
            format!("{} by {}{note}", annotation.status.as_str(), annotation.by)
        },
    );
    let until = change.returned.as_ref().map_or(String::new(), |back| format!(" until {}", exact(Some(back.at_ms))));
    format!("{id}  {}  {percent:+.1} % {}{until}  {status}", exact(Some(change.at_ms)), change.word())
}
