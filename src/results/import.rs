//! Imports one file or a folder of files, all or nothing.
//!
//! After an error the user fixes it and imports the same folder again. Had a part been stored, its runs would exist
//! twice, as repetitions that were never measured.

pub mod about;
pub mod folder;
mod in_turn;

use std::collections::BTreeMap;

use brewbench_wire::{
    hex,
    name::{BadName, Name},
    now_ms,
    reports::summary::{self, Summary},
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
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
            folder::{Folder, FoundFile},
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
    /// Why the runs of a folder do not count as measured in turn; null if they do, or if no order could be given.
    #[serde(default)]
    pub order_fault: Option<String>,
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

/// Imports one summary as a run; committed when this returns.
pub async fn import_file(
    state: &AppState,
    file: Option<&str>,
    about: About,
    bytes: &[u8],
    by: &str,
) -> Result<Imported> {
    let invalid = |fault: summary::Fault| match file {
        Some(file) => Error::Invalid(format!("{file:?}: {fault}")),
        None => Error::Invalid(fault.to_string()),
    };
    let summary = brewbench_wire::reports::read::parse(bytes).map_err(invalid)?;
    let ready = ready(state, file.map(str::to_owned), about, summary, bytes, by).await?;
    store(state, vec![ready]).await
}

/// Imports files with their metadata as runs, all or none; committed when this returns.
pub async fn import_files(state: &AppState, files: Vec<(String, About, Vec<u8>)>, by: &str) -> Result<Imported> {
    let mut all = Vec::with_capacity(files.len());
    for (name, about, bytes) in files {
        let summary = brewbench_wire::reports::read::parse(&bytes)
            .map_err(|fault| Error::Invalid(format!("{name:?}: {fault}")))?;
        all.push(ready(state, Some(name), about, summary, &bytes, by).await?);
    }
    store(state, all).await
}

/// Imports a folder with an index as runs, all or none; committed when this returns.
pub async fn import_folder(
    state: &AppState,
    index: &str,
    files: &BTreeMap<String, String>,
    by: &str,
) -> Result<Imported> {
    let mut all = Vec::new();
    let Folder { found, order_fault } = folder::read(index, files).map_err(Error::Invalid)?;
    for FoundFile { name, about, summary } in found {
        let bytes = files.get(&name).map(String::as_bytes).unwrap_or_default();
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
    let file = files.iter().find(|file| file.run == again.run).and_then(|file| file.file.as_deref());
    Error::Conflict(file.map_or_else(String::new, |file| format!("{file:?}: ")) + &again.to_string())
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
    Ok(Imported { runs, files, order_fault: None })
}
