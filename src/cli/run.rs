//! `brewbench run …`

use std::{collections::BTreeMap, fmt::Write, fs, path::PathBuf, process::ExitCode};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use reqwest::Method;

use super::{Common, NOT_ALL_WELL, duration, load::LoadFlags, progress, table};
use crate::{
    experiments::{ExperimentWithRuns, Plan},
    runs::{Note, Run as RunData, RunList, Verdict, filter::Wanted, load},
};

/// Commands about runs.
#[derive(Debug, Subcommand)]
pub enum Run {
    /// Submit runs: targets × sizes × repetitions of a scenario
    New(Box<New>),
    /// List runs, newest first unless sorted otherwise
    List(Box<List>),
    /// Show a run
    Show(One),
    /// Show the progress of a run, or of the experiment that it belongs to, until its end
    Watch(One),
    /// Cancel runs that wait or run
    Cancel(Many),
    /// Delete runs that have ended, with all their figures; for 10 minutes `undelete` brings them back
    Delete(Delete),
    /// Bring back runs that were deleted within the last 10 minutes
    Undelete(Many),
    /// Labels of runs
    #[command(subcommand)]
    Label(Label),
    /// Write, print or remove the note of a run
    Note(NoteOf),
    /// Import k6's end-of-test JSON files as runs
    Import(Import),
    /// Print the k6 summary of a run as it was, or the figures of several as CSV or JSON
    Export(Export),
}

/// `run new`
#[derive(Debug, Args)]
pub struct New {
    #[command(flatten)]
    common: Common,
    /// Name of a target; repeat for several
    #[arg(long = "target", value_name = "TARGET", required = true)]
    targets: Vec<String>,
    /// Name of a machine size, or short as 2/4GiB; repeat for several
    #[arg(long = "size", value_name = "SIZE", required = true)]
    sizes: Vec<String>,
    /// Name of a scenario
    #[arg(long, default_value = "hash")]
    scenario: String,
    /// A parameter of the scenario; repeat for several
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = pair)]
    parameters: Vec<(String, String)>,
    #[command(flatten)]
    load: LoadFlags,
    /// Warm-up before each run: the load's highest level all the time
    #[arg(long, default_value = "2s", value_parser = duration::seconds)]
    warm_up: f64,
    /// Runs of each target at each size
    #[arg(long, default_value_t = 3)]
    repeat: u32,
    /// Only this agent [default: any that can]
    #[arg(long)]
    agent: Option<String>,
    /// What to call it
    #[arg(long)]
    name: Option<String>,
    /// Wait until all runs have ended; exit with 3 unless all have figures that count
    #[arg(long)]
    wait: bool,
}

/// `run list`
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    common: Common,
    /// Text in names of targets and experiments, and in notes
    #[arg(long)]
    search: Option<String>,
    /// Only of this experiment
    #[arg(long)]
    experiment: Option<String>,
    /// Only of this target
    #[arg(long)]
    target: Option<String>,
    /// Only of this version of a target
    #[arg(long)]
    target_version: Option<String>,
    /// Only of this machine size, by its name
    #[arg(long)]
    size: Option<String>,
    /// Only of this scenario
    #[arg(long)]
    scenario: Option<String>,
    /// Only of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Only with this label
    #[arg(long)]
    label: Option<String>,
    /// Only submitted by this person, or by a token: `token NAME`
    #[arg(long)]
    person: Option<String>,
    /// Only in this phase
    #[arg(long)]
    phase: Option<String>,
    /// Only valid, suspect or invalid
    #[arg(long)]
    verdict: Option<String>,
    /// Only submitted since: 2026-03-04 or 2026-03-04T12:00:00Z
    #[arg(long)]
    from: Option<String>,
    /// Only submitted until then; a day counts to its end
    #[arg(long)]
    to: Option<String>,
    /// By a figure: `p99` for the least first, `-rps` for the greatest first
    #[arg(long, allow_hyphen_values = true)]
    sort: Option<String>,
    /// Only what comes after this run, by its full id: the last of the page before
    #[arg(long)]
    before: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 100)]
    limit: u32,
}

/// A command about one run.
#[derive(Debug, Args)]
pub struct One {
    #[command(flatten)]
    common: Common,
    /// The run's id, or the end of it
    id: String,
}

/// A command about several runs.
#[derive(Debug, Args)]
pub struct Many {
    #[command(flatten)]
    common: Common,
    /// Ids of runs, or the ends of them
    #[arg(required = true)]
    ids: Vec<String>,
}

/// `run label …`
#[derive(Debug, Subcommand)]
pub enum Label {
    /// Give runs a label
    Add(Labelled),
    /// Take a label from runs
    Remove(Labelled),
}

/// A label and runs.
#[derive(Debug, Args)]
pub struct Labelled {
    /// The label
    label: String,
    #[command(flatten)]
    many: Many,
}

/// `run note`
#[derive(Debug, Args)]
pub struct NoteOf {
    #[command(flatten)]
    one: One,
    /// The note, as Markdown; `-` reads it from standard input, an empty one removes it [default: print the note]
    text: Option<String>,
}

/// `run export`
#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    many: Many,
    /// What to print
    #[arg(long, value_enum, default_value_t = ExportAs::Summary)]
    format: ExportAs,
}

/// What `run export` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportAs {
    /// k6's summary of one run, as it was
    Summary,
    /// Figures, labels and notes
    Json,
    /// The same, a line a run
    Csv,
}

/// `run delete`
#[derive(Debug, Args)]
pub struct Delete {
    #[command(flatten)]
    many: Many,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// `run import`
#[derive(Debug, Args)]
pub struct Import {
    #[command(flatten)]
    common: Common,
    /// Files with handleSummary data, --summary-export or the machine-readable summary
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Name of the target [default: the file's name without its ending]
    #[arg(long)]
    target: Option<String>,
    /// The target's version
    #[arg(long)]
    target_version: Option<String>,
    /// The machine size that it had
    #[arg(long)]
    size: Option<String>,
    /// What was run
    #[arg(long)]
    scenario: Option<String>,
}

/// A name and a value from `NAME=VALUE`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Run {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::New(new) => return new.run().await,
            Self::Watch(one) => return one.watch().await,
            Self::List(list) => list.run().await?,
            Self::Show(one) => one.show().await?,
            Self::Cancel(many) => many.cancel().await?,
            Self::Delete(delete) => delete.run().await?,
            Self::Import(import) => import.run().await?,
            Self::Export(export) => export.run().await?,
            Self::Undelete(many) => many.undelete().await?,
            Self::Label(Label::Add(labelled)) => labelled.run(&Method::PUT).await?,
            Self::Label(Label::Remove(labelled)) => labelled.run(&Method::DELETE).await?,
            Self::Note(note) => note.run().await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl New {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let Self { common, targets, sizes, scenario, parameters, load, warm_up, repeat, agent, name, wait } = self;
        let plan = Plan {
            name,
            targets,
            sizes,
            scenario,
            parameters: parameters.into_iter().collect::<BTreeMap<_, _>>(),
            load: load.load()?,
            warm_up_s: warm_up,
            repetitions: repeat,
            agent,
        };
        let connection = common.connect()?;
        let made: ExperimentWithRuns = connection.client.post("api/v1/experiments", &plan).await?;
        eprintln!("{} runs queued: {}", made.runs.len(), made.url);
        if !wait {
            common.print(&made, |made| table::runs(&made.runs))?;
            return Ok(ExitCode::SUCCESS);
        }
        let ended = progress::wait(&connection.client, &made.experiment.id).await?;
        common.print(&ended, |ended| table::runs(&ended.runs))?;
        Ok(judge(&ended.runs))
    }
}

/// How a command that waited ends.
pub fn judge(runs: &[RunData]) -> ExitCode {
    let retried = |run: &RunData| runs.iter().any(|other| other.retry_of.as_deref() == Some(&run.id));
    let bad: Vec<_> = runs.iter().filter(|run| !(run.counts() || run.phase == "lost" && retried(run))).collect();
    for run in &bad {
        let why = run.error.clone().or_else(|| run.reasons.first().map(|reason| reason.text.clone()));
        let word = if run.verdict == Some(Verdict::Invalid) { "invalid" } else { &run.phase };
        eprintln!("{} (repetition {}) {word}: {}", run.target, run.repetition, table::plain(&why.unwrap_or_default()));
    }
    if bad.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(NOT_ALL_WELL) }
}

impl List {
    async fn run(self) -> anyhow::Result<()> {
        let Self { common, search: q, experiment, target, target_version: version, size, scenario, .. } = self;
        let Self { agent, label, person, phase, verdict, from, to, sort, before, limit, .. } = self;
        let wanted = Wanted {
            q,
            target,
            version,
            size,
            scenario,
            agent,
            label,
            person,
            phase,
            verdict,
            experiment,
            from,
            to,
            sort,
            before,
        };
        let connection = common.connect()?;
        let request = connection.client.request(Method::GET, "api/v1/runs");
        let request = request.query(&wanted).query(&[("limit", limit)]);
        let list: RunList = connection.client.json(request).await?;
        let asks = !wanted.narrows().is_empty() || wanted.before.is_some();
        common.print(&list, |list| match list.runs.as_slice() {
            [] if asks => "no run matches\n".to_owned(),
            runs => table::runs(runs),
        })
    }
}

/// The full id of a run from its end, as lists show it.
pub async fn full_id(connection: &super::Connection, id: &str) -> anyhow::Result<String> {
    if id.len() == 36 {
        return Ok(id.to_owned());
    }
    let request = connection.client.request(Method::GET, "api/v1/runs").query(&[("limit", "1000")]);
    let list: RunList = connection.client.json(request).await?;
    let mut found = list.runs.into_iter().filter(|run| run.id.ends_with(id)).map(|run| run.id);
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id),
        (None, _) => bail!("no run of the last 1000 has an id that ends with {id:?}"),
        (Some(_), Some(_)) => bail!("several runs have ids that end with {id:?}; give more of it"),
    }
}

impl One {
    async fn show(self) -> anyhow::Result<()> {
        let connection = self.common.connect()?;
        let id = full_id(&connection, &self.id).await?;
        let list: RunList = connection.client.get(&format!("api/v1/runs/{id}")).await?;
        self.common.print(&list, |list| list.runs.iter().map(details).collect())
    }

    async fn watch(self) -> anyhow::Result<ExitCode> {
        let connection = self.common.connect()?;
        let id = full_id(&connection, &self.id).await?;
        let list: RunList = connection.client.get(&format!("api/v1/runs/{id}")).await?;
        let run = list.runs.into_iter().next().context("the server knows no such run")?;
        let runs = match run.experiment {
            Some(experiment) => progress::wait(&connection.client, &experiment).await?.runs,
            None => vec![run],
        };
        let list = RunList { runs };
        self.common.print(&list, |list| table::runs(&list.runs))?;
        Ok(judge(&list.runs))
    }
}

/// A part of a path, with nothing in it that would end it.
fn segment(text: &str) -> String {
    let mut url = url::Url::parse("http://localhost").expect("an address");
    if let Ok(mut parts) = url.path_segments_mut() {
        parts.push(text);
    }
    url.path().trim_start_matches('/').to_owned()
}

impl Labelled {
    async fn run(self, method: &Method) -> anyhow::Result<()> {
        let Self { label, many: Many { common, ids } } = self;
        let connection = common.connect()?;
        let mut runs = Vec::new();
        for id in &ids {
            let id = full_id(&connection, id).await?;
            let path = format!("api/v1/runs/{id}/labels/{}", segment(&label));
            let list: RunList = connection.client.json(connection.client.request(method.clone(), &path)).await?;
            runs.extend(list.runs);
        }
        common.print(&RunList { runs }, |list| table::labels(&list.runs))
    }
}

impl NoteOf {
    async fn run(self) -> anyhow::Result<()> {
        let Self { one: One { common, id }, text } = self;
        let connection = common.connect()?;
        let path = format!("api/v1/runs/{}", full_id(&connection, &id).await?);
        let list: RunList = match text {
            None => connection.client.get(&path).await?,
            Some(text) => {
                let note = if text == "-" { std::io::read_to_string(std::io::stdin())? } else { text };
                let request = connection.client.request(Method::PUT, &format!("{path}/note"));
                connection.client.json(request.json(&Note { note })).await?
            }
        };
        common.print(&list, |list| {
            let lines = list.runs.iter().filter_map(|run| run.note.as_deref()).flat_map(str::lines);
            lines.fold(String::new(), |mut text, line| {
                let _ = writeln!(text, "{}", table::plain(line));
                text
            })
        })
    }
}

impl Export {
    async fn run(self) -> anyhow::Result<()> {
        let Self { many: Many { common, ids }, format } = self;
        let connection = common.connect()?;
        let mut full = Vec::new();
        for id in &ids {
            full.push(full_id(&connection, id).await?);
        }
        let request = match (format, full.as_slice()) {
            (ExportAs::Summary, [id]) => connection.client.request(Method::GET, &format!("api/v1/runs/{id}/summary")),
            (ExportAs::Summary, _) => bail!("a summary is one run's; name one, or give --format csv or json"),
            (ExportAs::Json | ExportAs::Csv, ids) => {
                let format = if format == ExportAs::Csv { "csv" } else { "json" };
                let request = connection.client.request(Method::GET, "api/v1/runs/export");
                request.query(&[("runs", ids.join(",").as_str()), ("format", format)])
            }
        };
        let bytes = connection.client.send(request).await?.bytes().await?;
        Ok(std::io::Write::write_all(&mut std::io::stdout(), &bytes)?)
    }
}

fn details(run: &RunData) -> String {
    use table::{figure, thousands};
    let count = |value: Option<u64>| value.map_or("–".to_owned(), |value| thousands(value as f64));
    let mut lines = vec![
        ("id", run.id.clone()),
        ("target", format!("{} {}", run.target, run.version.as_deref().unwrap_or(""))),
        ("size", run.size.as_ref().map_or("–".to_owned(), |size| size.name.clone())),
        ("scenario", run.scenario.clone().unwrap_or_else(|| "–".to_owned())),
        ("load", run.load.as_ref().map_or("–".to_owned(), load::whole).replace('\u{a0}', " ")),
        ("repetition", run.repetition.to_string()),
        ("phase", run.phase.replace('_', " ")),
        ("verdict", run.verdict.map_or("–", Verdict::as_str).to_owned()),
    ];
    lines.extend(run.reasons.iter().map(|reason| ("because", reason.text.clone())));
    lines.extend(run.error.iter().map(|error| ("error", error.clone())));
    lines.extend([
        ("requests", count(run.requests)),
        ("failed", count(run.failed)),
        ("requests/s", figure(run.rps)),
        ("avg ms", figure(run.avg_ms)),
        ("min ms", figure(run.min_ms)),
        ("p50 ms", figure(run.p50_ms)),
        ("p90 ms", figure(run.p90_ms)),
        ("p95 ms", figure(run.p95_ms)),
        ("p99 ms", figure(run.p99_ms)),
        ("max ms", figure(run.max_ms)),
        ("measured s", figure(run.measured_s)),
        ("agent", run.agent.clone().unwrap_or_else(|| "–".to_owned())),
        ("k6", run.k6_version.clone().unwrap_or_else(|| "–".to_owned())),
    ]);
    lines.extend(run.labels.iter().map(|label| ("label", label.clone())));
    lines.extend(run.note.iter().flat_map(|note| note.lines()).map(|line| ("note", line.to_owned())));
    lines.into_iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:<11} {}", table::plain(value.trim()));
        text
    })
}

impl Many {
    async fn cancel(self) -> anyhow::Result<()> {
        let connection = self.common.connect()?;
        let mut runs = Vec::new();
        for id in &self.ids {
            let id = full_id(&connection, id).await?;
            let request = connection.client.request(Method::POST, &format!("api/v1/runs/{id}/cancel"));
            let list: RunList = connection.client.json(request).await?;
            runs.extend(list.runs);
        }
        self.common.print(&RunList { runs }, |list| table::runs(&list.runs))
    }
}

impl Many {
    async fn undelete(self) -> anyhow::Result<()> {
        let connection = self.common.connect()?;
        let mut runs = Vec::new();
        for id in &self.ids {
            let list: RunList = connection.client.post(&format!("api/v1/runs/{}/undelete", segment(id)), &()).await?;
            runs.extend(list.runs);
        }
        self.common.print(&RunList { runs }, |list| table::runs(&list.runs))
    }
}

impl Delete {
    async fn run(self) -> anyhow::Result<()> {
        let Self { many: Many { common, ids }, yes } = self;
        let connection = common.connect()?;
        if !yes {
            eprint!(
                "Delete {} runs with all their figures? `run undelete` brings them back for 10 minutes. [y/N] ",
                ids.len()
            );
            let mut answer = String::new();
            std::io::stdin().read_line(&mut answer)?;
            if !matches!(answer.trim(), "y" | "Y" | "yes") {
                bail!("nothing was deleted");
            }
        }
        for id in &ids {
            let id = full_id(&connection, id).await?;
            connection.client.delete(&format!("api/v1/runs/{id}")).await?;
            eprintln!("deleted {id}");
        }
        Ok(())
    }
}

impl Import {
    async fn run(self) -> anyhow::Result<()> {
        let Self { common, files, target, target_version, size, scenario } = self;
        let connection = common.connect()?;
        let mut runs = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let bytes = fs::read(file).with_context(|| format!("{} can't be read", file.display()))?;
            let stem = || file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            // Several files for one named target are its repetitions.
            let repetition = if target.is_some() { index + 1 } else { 1 };
            let mut query =
                vec![("target", target.clone().unwrap_or_else(stem)), ("repetition", repetition.to_string())];
            for (name, value) in [("version", &target_version), ("size", &size), ("scenario", &scenario)] {
                query.extend(value.clone().map(|value| (name, value)));
            }
            let request = connection.client.request(Method::POST, "api/v1/runs/import").query(&query).body(bytes);
            let sent = connection.client.json::<RunList>(request).await;
            runs.extend(sent.with_context(|| format!("{} was not imported", file.display()))?.runs);
        }
        common.print(&RunList { runs }, |list| table::runs(&list.runs))
    }
}
