//! `/runs/import/{id}`: what uploaded files contain, and what each report becomes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    extract::{Path, RawForm, RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use brewbench_wire::reports::{
    archive::ArchivedFile,
    hints::Hints,
    parts::{Choice, Part, parts},
    preview::{ColumnPreview, FilePreview, ReportPreview},
};
use tokio::task::spawn_blocking;
use url::form_urlencoded;

use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::caller::{Caller, Submit},
    catalog::model::{MachineSize, find_size, parse_size, size_name},
    results::{
        api::import::{hints, pair},
        import::{
            Chosen,
            about::About,
            guess::{self, Guess},
            import_chosen,
        },
        store::uploads,
    },
    runs::model::{RunSize, RunSpec},
    web::shell::{Section, Shell},
};

/// Maximum number of rows that are shown; a filter chooses others.
const MAX_ROWS: usize = 200;

/// The preview.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "runs/import_preview.html")]
pub struct PreviewPage {
    shell: Shell,
    fields: Arc<Fields>,
    rows: Vec<Row>,
    /// How many reports there are, with those that the filter hides.
    total: usize,
    /// Files that can't be read, and why.
    faults: Vec<(String, String)>,
    /// What was removed before the reports were read.
    stripped: Vec<&'static str>,
    columns: Vec<ColumnPreview>,
    sizes: Vec<String>,
    fault: Option<String>,
}

impl PreviewPage {
    /// Whether a result lacks what a run needs.
    fn has_faults(&self) -> bool {
        self.rows.iter().any(|row| !row.is_possible())
    }
}

/// A report that becomes a run.
#[derive(Debug)]
struct Row {
    /// `FILE:REPORT`, the places of both.
    key: String,
    file: String,
    report: ReportPreview,
    is_chosen: bool,
    target: String,
    version: String,
    size: String,
    parameters: String,
    repetition: String,
}

impl Row {
    fn is_possible(&self) -> bool {
        self.report.fault.is_none()
    }

    /// Where it is: its file, with its line or name.
    fn place(&self) -> String {
        let ReportPreview { line, name, heading, .. } = &self.report;
        let within = name.clone().or_else(|| heading.clone()).or_else(|| line.map(|line| format!("line {line}")));
        within.map_or_else(|| self.file.clone(), |within| format!("{within} ({})", self.file))
    }
}

/// The fields of the form, by their names.
#[derive(Debug, Default)]
struct Fields(BTreeMap<String, String>);

impl Fields {
    fn read(body: &[u8]) -> Self {
        let pairs = form_urlencoded::parse(body).into_owned();
        Self(pairs.map(|(name, text)| (name, text.trim().to_owned())).filter(|(_, text)| !text.is_empty()).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The places of the reports of a file that are selected.
    fn wanted(&self, file: usize) -> BTreeSet<usize> {
        let prefix = format!("row:{file}:");
        self.0.keys().filter_map(|name| name.strip_prefix(&prefix)?.parse().ok()).collect()
    }

    /// Information that the files lack.
    fn hints(&self) -> Result<Hints> {
        let columns = self.0.iter().filter_map(|(name, is)| Some(format!("{}={is}", name.strip_prefix("column:")?)));
        let seconds = self.get("duration").map(|text| text.trim_end_matches('s').trim().parse());
        let seconds =
            seconds.transpose().map_err(|_| Error::Invalid("duration: not a number of seconds".to_owned()))?;
        hints(&columns.collect::<Vec<_>>(), seconds)
    }
}

/// `GET /runs/import/{id}?only=…&duration=…&column:NAME=…`
pub async fn preview(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response> {
    let fields = Arc::new(Fields::read(query.unwrap_or_default().as_bytes()));
    let files = found(&state, &id, &caller).await?;
    match page(&state, &caller, &files, fields, None).await {
        Ok(page) => Ok(page.into_response()),
        Err(Error::Invalid(fault)) => refused(&state, &caller, &files, Arc::default(), fault).await,
        Err(other) => Err(other),
    }
}

/// `POST /runs/import/{id}`
pub async fn import(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<String>,
    RawForm(body): RawForm,
) -> Result<Response> {
    let fields = Arc::new(Fields::read(&body));
    let files = found(&state, &id, &caller).await?;
    match store(&state, &caller, &files, &fields).await {
        Ok(runs) => {
            uploads::remove(&state.db.write, &id).await?;
            Ok(Redirect::to(&format!("/runs/imported?runs={runs}")).into_response())
        }
        Err(Error::Invalid(fault) | Error::Conflict(fault)) => refused(&state, &caller, &files, fields, fault).await,
        Err(other) => Err(other),
    }
}

async fn refused(
    state: &AppState,
    caller: &Caller,
    files: &Arc<[ArchivedFile]>,
    fields: Arc<Fields>,
    fault: String,
) -> Result<Response> {
    let page = page(state, caller, files, fields, Some(fault)).await?;
    Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
}

async fn found(state: &AppState, id: &str, caller: &Caller) -> Result<Arc<[ArchivedFile]>> {
    let files = uploads::files(&state.db.read, id, &caller.name).await?;
    if files.is_empty() {
        return Err(Error::NotFound(
            "upload of yours with this id: it was imported, replaced or is too old".to_owned(),
        ));
    }
    Ok(files.into())
}

async fn page(
    state: &AppState,
    caller: &Caller,
    files: &Arc<[ArchivedFile]>,
    fields: Arc<Fields>,
    fault: Option<String>,
) -> Result<PreviewPage> {
    let shell = Shell::signed_in("Import results", Section::Runs, &caller.name).explained_in("guide/importing");
    let sizes = crate::catalog::store::sizes(&state.db.read).await?.into_iter().map(|size| size.name).collect();
    let (files, hints) = (Arc::clone(files), fields.hints()?);
    let read = spawn_blocking(move || read(&files, &hints)).await.map_err(Error::internal)?;
    let Read { mut rows, faults, stripped, columns } = read;
    let total = rows.len();
    let only = fields.get("only").map(str::to_lowercase);
    rows.retain(|row| only.as_ref().is_none_or(|only| row.place().to_lowercase().contains(only)));
    let is_few = rows.len() <= MAX_ROWS;
    rows.truncate(MAX_ROWS);
    let mut repetitions = BTreeMap::new();
    for row in &mut rows {
        let cell =
            (row.target.clone(), row.version.clone(), row.size.clone(), row.parameters.clone(), row.report.connections);
        let count = repetitions.entry(cell).or_insert(0);
        *count += 1;
        row.repetition = count.to_string();
        row.is_chosen = is_few && row.is_possible() && row.report.same_as.is_none();
        row.restore(&fields);
    }
    let stripped = stripped.into_iter().collect();
    Ok(PreviewPage { shell, fields, rows, total, faults, stripped, columns, sizes, fault })
}

/// What the files contain.
#[derive(Default)]
struct Read {
    rows: Vec<Row>,
    faults: Vec<(String, String)>,
    stripped: BTreeSet<&'static str>,
    columns: Vec<ColumnPreview>,
}

fn read(files: &[ArchivedFile], hints: &Hints) -> Read {
    let mut read = Read::default();
    let preview = |file: &ArchivedFile| FilePreview {
        file: Some(file.path.clone()),
        ..FilePreview::of(&file.bytes, &hints.applying_to(&file.bytes))
    };
    let mut previews: Vec<FilePreview> = files.iter().map(preview).collect();
    FilePreview::note_other_forms(&mut previews);
    for (place, (file, found)) in files.iter().zip(previews).enumerate() {
        read.stripped.extend(found.stripped);
        read.faults.extend(found.faults.into_iter().map(|fault| (file.path.clone(), fault)));
        if read.columns.is_empty() {
            read.columns = found.columns;
        }
        let is_one = found.reports.len() == 1;
        let row = |(at, report)| Row::new(format!("{place}:{at}"), file, report, is_one);
        read.rows.extend(found.reports.into_iter().enumerate().map(row));
    }
    read
}

impl Row {
    fn new(key: String, file: &ArchivedFile, report: ReportPreview, is_one: bool) -> Self {
        let title = report.name.as_deref().or(report.heading.as_deref()).filter(|_| !is_one);
        let Guess { target, version, size } = match report.target.as_deref().or(title) {
            Some(title) if report.name.is_some() => Guess { target: title.to_owned(), ..Guess::default() },
            Some(title) => guess::of_heading(title),
            None => guess::of_path(&file.path),
        };
        Self {
            key,
            file: file.path.clone(),
            parameters: report
                .parameters
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join(" "),
            report,
            is_chosen: false,
            target: target.chars().take(80).collect(),
            version: version.unwrap_or_default(),
            size: size.map(|size| size.name).unwrap_or_default(),
            repetition: String::new(),
        }
    }

    /// Restores what was entered before.
    fn restore(&mut self, fields: &Fields) {
        if !fields.0.keys().any(|name| name.starts_with("target:")) {
            return;
        }
        self.is_chosen = fields.get(&format!("row:{}", self.key)).is_some();
        let inputs = [
            ("target", &mut self.target),
            ("version", &mut self.version),
            ("size", &mut self.size),
            ("parameters", &mut self.parameters),
            ("repetition", &mut self.repetition),
        ];
        for (name, input) in inputs {
            fields.get(&format!("{name}:{}", self.key)).unwrap_or_default().clone_into(input);
        }
    }
}

/// Imports the selected rows; returns the ids of the runs, separated by commas.
async fn store(state: &AppState, caller: &Caller, files: &Arc<[ArchivedFile]>, fields: &Arc<Fields>) -> Result<String> {
    let sizes = crate::catalog::store::sizes(&state.db.read).await?;
    let (files, fields) = (Arc::clone(files), Arc::clone(fields));
    let chosen = spawn_blocking(move || choose(&files, &fields, &sizes)).await.map_err(Error::internal)??;
    let imported = import_chosen(state, chosen, &caller.name).await?;
    Ok(imported.runs.iter().map(|run| run.id.as_str()).collect::<Vec<_>>().join(","))
}

/// Reads the selected rows.
fn choose(files: &[ArchivedFile], fields: &Fields, sizes: &[MachineSize]) -> Result<Vec<Chosen>> {
    let hints = fields.hints()?;
    let size = |text: &str| {
        find_size(sizes, text).map(RunSize::from).or_else(|| {
            let (vcpus, memory_bytes, replicas) = parse_size(text)?;
            Some(RunSize { name: size_name(vcpus, memory_bytes, replicas), vcpus, memory_bytes, replicas })
        })
    };
    let mut chosen = Vec::new();
    for (place, ArchivedFile { path, bytes }) in files.iter().enumerate() {
        let wanted = fields.wanted(place);
        if wanted.is_empty() {
            continue;
        }
        let found = parts(bytes, &hints.applying_to(bytes), Choice::Places(&wanted));
        let found = found.map_err(|fault| Error::Invalid(format!("{path:?}: {fault}")))?;
        for (at, part) in wanted.iter().zip(found) {
            let about = about(fields, &format!("{place}:{at}"), size).map_err(|fault| within(path, &part, fault))?;
            chosen.push(Chosen::new(Some(path), about, part, bytes));
        }
    }
    if chosen.is_empty() { Err(Error::Invalid("no result is selected".to_owned())) } else { Ok(chosen) }
}

fn within(file: &str, part: &Part, fault: Error) -> Error {
    match fault {
        Error::Invalid(what) => Error::Invalid(format!("{}: {what}", part.title().unwrap_or(file))),
        other => other,
    }
}

/// Returns what was entered for a row.
fn about(fields: &Fields, key: &str, size: impl Fn(&str) -> Option<RunSize>) -> Result<About> {
    let field = |name: &str| fields.get(&format!("{name}:{key}"));
    let invalid = |what: &str| Error::Invalid(what.to_owned());
    let size = field("size").map(|text| size(text).ok_or_else(|| invalid("size: write it as 2/4GiB"))).transpose()?;
    let repetition =
        field("repetition").map(str::parse).transpose().map_err(|_| invalid("repetition: not a number"))?;
    let parameters = field("parameters").unwrap_or_default().split_whitespace().map(pair).collect::<Result<_>>()?;
    let spec = RunSpec {
        target: field("target").unwrap_or_default().to_owned(),
        size,
        scenario: fields.get("scenario").map(str::to_owned),
        parameters,
        ..RunSpec::default()
    };
    Ok(About {
        spec,
        version: field("version").map(str::to_owned),
        repetition: repetition.unwrap_or(1),
        ..About::default()
    })
}
