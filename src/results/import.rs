//! Imports a file, an archive or a folder with an index, all or nothing.
//!
//! After an error the user fixes it and imports the same folder again. Had a part been stored, its runs would exist
//! twice, as repetitions that were never measured.

pub mod about;
pub mod folder;
pub mod guess;
mod in_turn;

use std::collections::BTreeMap;

use brewbench_wire::{
    hex,
    name::{BadName, Name},
    now_ms,
    reports::{
        archive::{self, ArchivedFile},
        encoding,
        hints::Hints,
        parts::{Choice, Part, parts},
        summary::{Fault, Summary},
    },
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

use super::blob;
use crate::{
    app::{
        error::{Error, Result},
        ids::RunId,
        state::AppState,
    },
    auth::checks::checked_line,
    catalog::{model::Engine, store::names},
    results::{
        import::{
            about::About,
            folder::{Folder, FoundFile, INDEX, MAX_FILES},
        },
        store::{
            imports::{self, NewImport},
            verdicts,
        },
        verdict::{input::VerdictInput, model::Judgement},
    },
    runs::{
        lookup,
        model::{Run, RunSpec},
        remarks::{checked_label, checked_note},
    },
};

/// Maximum number of parameters of a run.
const MAX_PARAMETERS: usize = 20;

/// Imported files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Imported {
    /// One for each file, in their order.
    pub runs: Vec<Run>,
    /// How each file was read.
    #[serde(default)]
    pub files: Vec<ImportedFile>,
    /// Files of an archive that are no results.
    #[serde(default)]
    pub skipped: Vec<Skipped>,
    /// Why the runs of a folder do not count as measured in turn; null if they do, or if no order could be given.
    #[serde(default)]
    pub order_fault: Option<String>,
}

/// A file that was not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Skipped {
    /// Its path.
    pub file: String,
    /// Why.
    pub why: String,
}

/// How a file was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportedFile {
    /// Its name, if it has one.
    pub file: Option<String>,
    /// The run that it was stored as.
    #[schema(value_type = String)]
    pub run: RunId,
    /// E.g. `wrk's output`.
    pub kind: String,
    /// Metrics that it does not have; they stay empty.
    pub missing_metrics: Vec<String>,
    /// Whether its values were rounded for display.
    pub rounded: bool,
}

impl ImportedFile {
    /// Describes how a summary was read.
    pub fn from_summary(file: Option<&str>, run: &RunId, summary: &Summary) -> Self {
        Self {
            file: file.map(str::to_owned),
            run: run.clone(),
            kind: summary.shape.name().to_owned(),
            missing_metrics: summary.missing().into_iter().map(str::to_owned).collect(),
            rounded: summary.shape.is_text(),
        }
    }

    /// Describes the file in a sentence.
    pub fn describe(&self) -> String {
        let Self { kind, missing_metrics, rounded, .. } = self;
        let rounded = if *rounded { ", values rounded as printed" } else { "" };
        match missing_metrics.as_slice() {
            [] => format!("read as {kind}{rounded}; it has all metrics"),
            missing_metrics => format!("read as {kind}{rounded}; missing metrics: {}", missing_metrics.join(", ")),
        }
    }
}

/// A file that is judged, compressed and ready to be stored: the work before the transaction.
struct Ready {
    file: Option<String>,
    summary: Summary,
    import: NewImport,
}

/// An uploaded file.
#[derive(Clone, Debug)]
pub struct Upload {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What is known of its runs. Without a target, the heading or the name of a report names it, or else the file. The
    /// reports of a target are counted from its repetition.
    pub about: About,
    /// Information that the file lacks.
    pub hints: Hints,
    /// Chooses its reports by their names.
    pub only: Option<String>,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A report that becomes a run.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The name of its file.
    pub file: Option<String>,
    /// What is known of it.
    pub about: About,
    /// What the file says.
    pub part: Part,
    /// The text that is stored.
    pub bytes: Vec<u8>,
}

/// What becomes runs.
enum Found {
    /// A folder whose index describes its files.
    Folder(Vec<ArchivedFile>),
    /// Reports, and files that are none.
    Reports(Vec<Chosen>, Vec<Skipped>),
}

/// Imports a file or an archive as runs, one for each report, all or none; committed when this returns. An index in an
/// archive describes its files; without one, files of no known format are skipped.
pub async fn import_file(state: &AppState, upload: Upload, by: &str) -> Result<Imported> {
    let found = spawn_blocking(move || upload.read()).await.map_err(Error::internal)?;
    match found.map_err(Error::Invalid)? {
        Found::Folder(files) => import_folder(state, &files, by).await,
        Found::Reports(chosen, skipped) => Ok(Imported { skipped, ..import_chosen(state, chosen, by).await? }),
    }
}

/// What reports of one upload are counted by: target, parameters and connections.
type ImportedCell = (String, BTreeMap<String, String>, Option<u64>);

impl Upload {
    /// Reads the file. The error is a sentence.
    fn read(self) -> std::result::Result<Found, String> {
        let mut counts = BTreeMap::new();
        let Some(files) = archive::files(&self.bytes).map_err(|fault| fault.to_string())? else {
            let chosen = self.reports(self.name.as_deref(), &self.bytes, &mut counts);
            return Ok(Found::Reports(chosen.map_err(|fault| fault.to_string())?, Vec::new()));
        };
        if files.iter().any(|file| file.path == INDEX) {
            let is_described = self.about != About::default() || self.hints != Hints::default() || self.only.is_some();
            return if is_described {
                Err(format!("{INDEX} already describes the files: omit the target and other options"))
            } else {
                Ok(Found::Folder(files))
            };
        }
        let (mut chosen, mut skipped) = (Vec::new(), Vec::new());
        for ArchivedFile { path, bytes } in files {
            match self.reports(Some(&path), &bytes, &mut counts) {
                Ok(found) => chosen.extend(found),
                Err(fault) if fault.is_of_no_format => skipped.push(Skipped { file: path, why: fault.to_string() }),
                Err(fault) => return Err(format!("{path:?}: {fault}")),
            }
        }
        if chosen.is_empty() {
            Err("the archive has no results".to_owned())
        } else {
            Ok(Found::Reports(chosen, skipped))
        }
    }

    /// Returns the reports of a file that is no archive. `counts` has the last repetition of each cell.
    fn reports(
        &self,
        name: Option<&str>,
        bytes: &[u8],
        counts: &mut BTreeMap<ImportedCell, u32>,
    ) -> std::result::Result<Vec<Chosen>, Fault> {
        let parts = parts(bytes, &self.hints, self.only.as_deref().map_or(Choice::All, Choice::Named))?;
        let chosen = |part: Part| {
            let mut about = self.about.clone();
            if about.spec.target.is_empty() {
                about.spec.target = target_name(name, &part);
            }
            for (name, value) in &part.report.parameters {
                about.spec.parameters.entry(name.clone()).or_insert_with(|| value.clone());
            }
            let cell = (about.spec.target.clone(), about.spec.parameters.clone(), part.report.load.connections);
            let last = counts.entry(cell).or_insert(about.repetition.saturating_sub(1));
            *last += 1;
            about.repetition = *last;
            Chosen::new(name, about, part, bytes)
        };
        Ok(parts.into_iter().map(chosen).collect())
    }
}

impl Chosen {
    /// Chooses a report of a file.
    pub fn new(file: Option<&str>, about: About, part: Part, bytes: &[u8]) -> Self {
        let place = match (&part.text, part.report.line) {
            (None, _) => None,
            (Some(_), Some(line)) => Some(format!("line {line}")),
            (Some(_), None) => part.title().map(str::to_owned),
        };
        let file = [file.map(str::to_owned), place].into_iter().flatten().collect::<Vec<_>>().join(", ");
        let bytes = part.text.as_ref().map_or(bytes, |text| text.as_bytes()).to_vec();
        Self { file: Some(file).filter(|file| !file.is_empty()), about, part, bytes }
    }
}

/// Imports reports as runs, all or none; committed when this returns.
pub async fn import_chosen(state: &AppState, chosen: Vec<Chosen>, by: &str) -> Result<Imported> {
    let mut all = Vec::with_capacity(chosen.len());
    if chosen.len() > MAX_FILES {
        let what = format!("{} reports; one import takes 1 to {MAX_FILES}: choose some by their names", chosen.len());
        return Err(Error::Invalid(what));
    }
    for Chosen { file, about, part, bytes } in chosen {
        all.push(ready(state, file, about, part.summary, &bytes, by).await?);
    }
    store(state, all).await
}

/// Names a target after a report, or else after its file; empty without both.
fn target_name(file: Option<&str>, part: &Part) -> String {
    let stem = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()
    };
    let title = part.report.target.as_deref().or(part.title()).filter(|_| part.text.is_some());
    title.map(str::to_owned).or_else(|| file.map(stem)).unwrap_or_default()
}

/// Imports the files that the index among them describes as runs, all or none; committed when this returns.
pub async fn import_folder(state: &AppState, files: &[ArchivedFile], by: &str) -> Result<Imported> {
    let content = |path: &str| files.iter().find(|file| file.path == path).map_or(&[][..], |file| &file.bytes);
    let index = encoding::text(content(INDEX).to_vec());
    let index = index.map_err(|fault| Error::Invalid(format!("{INDEX:?} {fault}")))?;
    let mut all = Vec::new();
    let Folder { found, order_fault } = folder::read(&index, files).map_err(Error::Invalid)?;
    for FoundFile { name, about, summary } in found {
        let bytes = content(&name);
        let place = format!("{}: {name:?}", folder::INDEX);
        let ready = ready(state, Some(name), about, summary, bytes, by).await;
        all.push(ready.map_err(|fault| match fault {
            Error::Invalid(what) => Error::Invalid(format!("{place}: {what}")),
            other => other,
        })?);
    }
    Ok(Imported { order_fault, ..store(state, all).await? })
}

async fn ready(
    state: &AppState,
    file: Option<String>,
    about: About,
    summary: Summary,
    bytes: &[u8],
    by: &str,
) -> Result<Ready> {
    let mut about = checked(about)?;
    // Without it a wrk run would be compared with a k6 run of as many virtual users.
    let threads = summary.metrics.get("threads").and_then(|metric| metric.values.get("value"));
    if let Some(threads) = threads {
        about.spec.parameters.entry("threads".to_owned()).or_insert_with(|| threads.to_string());
    }
    let limits = verdicts::limits(&state.db.read, about.spec.scenario.as_deref()).await?.limits;
    let input = VerdictInput { figures: summary.figures(), execution: None };
    let Judgement { verdict, reasons } = input.judge(&limits);
    let import = NewImport {
        id: RunId::now(),
        about,
        created_by: by.to_owned(),
        figures: input.figures,
        verdict,
        reasons,
        limits,
        engine: Engine { name: summary.shape.engine().to_owned(), version: summary.k6_version.clone() },
        summary: blob::pack(bytes),
        sha256: hex(&Sha256::digest(bytes)),
        now: now_ms(),
    };
    Ok(Ready { file, summary, import })
}

/// Returns the metadata as stored. The error names the invalid field.
fn checked(about: About) -> Result<About> {
    let named = |what: &str, text: &str| {
        text.parse().map(Name::into_string).map_err(|fault: BadName| Error::Invalid(format!("{what}: {fault}")))
    };
    let line = |what: &str, text: &str| {
        checked_line(text).map(str::to_owned).map_err(|_| Error::Invalid(format!("{what}: {}", BadName::Length)))
    };
    let RunSpec { target, scenario, parameters, .. } = about.spec.clone();
    if parameters.len() > MAX_PARAMETERS {
        return Err(Error::Invalid(format!("parameters: at most {MAX_PARAMETERS} are allowed")));
    }
    let parameter = |(name, value): (String, String)| Ok((line("parameter", &name)?, line(&name, &value)?));
    let spec = RunSpec {
        target: named("target", &target)?,
        scenario: scenario.map(|text| named("scenario", &text)).transpose()?,
        parameters: parameters.into_iter().map(parameter).collect::<Result<_>>()?,
        ..about.spec
    };
    Ok(About {
        spec,
        version: about.version.map(|text| line("version", &text)).transpose()?,
        labels: about.labels.iter().map(|label| checked_label(label).map(str::to_owned)).collect::<Result<_>>()?,
        note: about.note.as_deref().map(checked_note).transpose()?.flatten(),
        repetition: about.repetition.max(1),
        ..about
    })
}

/// Names the file that was imported before.
fn already_imported(fault: sqlx::Error, files: &[ImportedFile]) -> Error {
    let sqlx::Error::Decode(inner) = &fault else { return fault.into() };
    let Some(again) = inner.downcast_ref::<imports::AlreadyImported>() else { return fault.into() };
    let named = |run: &RunId| files.iter().find(|file| file.run == *run).and_then(|file| file.file.as_deref());
    let file = named(&again.run).map_or_else(String::new, |file| format!("{file:?}: "));
    let what = if again.is_same_file { "the same file" } else { "the same result, in another form," };
    Error::Conflict(match named(&again.of) {
        Some(first) => format!("{file}{what} as {first:?}: one measurement is no second repetition"),
        None => format!("{file}{again}"),
    })
}

async fn store(state: &AppState, all: Vec<Ready>) -> Result<Imported> {
    let targets = all.iter().map(|ready| ready.import.about.spec.target.as_str());
    if let Some(fault) = names::target_fault(&mut *state.db.read.acquire().await?, targets).await? {
        return Err(Error::Conflict(format!("target: {fault}")));
    }
    let (files, imports): (Vec<_>, Vec<_>) = all
        .into_iter()
        .map(|Ready { file, summary, import }| {
            (ImportedFile::from_summary(file.as_deref(), &import.id, &summary), import)
        })
        .unzip();
    let named = |fault| already_imported(fault, &files);
    let runs = imports::insert(&state.db, &state.memory(), imports).await.map_err(named)?;
    for run in &runs {
        lookup::announce(state, run);
    }
    Ok(Imported { runs, files, ..Imported::default() })
}
