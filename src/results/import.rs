//! What somebody brings: one file, or a folder of them. All of it is stored, or nothing.
//!
//! All or nothing, because the way out of a fault is to mend it and to bring the same folder again: had a part been taken,
//! its runs would be there twice, as repetitions that nobody made.

pub mod about;
pub mod folder;

use std::collections::BTreeMap;

use brewbench_agent::{
    reports::{summary, summary::Summary},
    wire::{
        name::{BadName, Name},
        now_ms,
    },
};
use serde::{Deserialize, Serialize};
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
        import::{about::About, folder::Found},
        store::{
            imports::{self, NewImport},
            verdicts,
        },
        verdict::{input::Material, model::Judgement},
    },
    runs::{
        lookup,
        model::Run,
        remarks::{checked_label, checked_note},
    },
};

/// More parameters than this are none that tell a load from another.
const MOST_PARAMETERS: usize = 20;

/// What became of files that were brought.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Imported {
    /// One for each file, in their order.
    pub runs: Vec<Run>,
    /// What each file was taken for.
    #[serde(default)]
    pub files: Vec<ImportedFile>,
}

/// What a file was taken for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportedFile {
    /// Its name, where it has one.
    pub file: Option<String>,
    /// The run that it became.
    #[schema(value_type = String)]
    pub run: RunId,
    /// E.g. `wrk's output`.
    pub kind: String,
    /// The figures that it does not have; they stay empty.
    pub lacks: Vec<String>,
    /// Whether its figures were rounded for people.
    pub rounded: bool,
}

impl ImportedFile {
    /// What a summary was taken for.
    pub fn of(file: Option<&str>, run: &RunId, summary: &Summary) -> Self {
        Self {
            file: file.map(str::to_owned),
            run: run.clone(),
            kind: summary.shape.name().to_owned(),
            lacks: summary.lacks().into_iter().map(str::to_owned).collect(),
            rounded: summary.shape.is_text(),
        }
    }

    /// The same as a sentence.
    pub fn sentence(&self) -> String {
        let Self { kind, lacks, rounded, .. } = self;
        let rounded = if *rounded { ", rounded as it was printed" } else { "" };
        match lacks.as_slice() {
            [] => format!("taken for {kind}{rounded}; it has every figure"),
            lacks => format!("taken for {kind}{rounded}; it does not have: {}", lacks.join(", ")),
        }
    }
}

/// A file to be stored, judged and packed: what can be done before anybody has to wait.
struct Ready {
    file: Option<String>,
    summary: Summary,
    import: NewImport,
}

/// Stores one summary as a run. Committed when this returns.
pub async fn one(state: &AppState, file: Option<&str>, about: About, bytes: &[u8], by: &str) -> Result<Imported> {
    let told = |fault: summary::Fault| match file {
        Some(file) => Error::Invalid(format!("{file:?}: {fault}")),
        None => Error::Invalid(fault.to_string()),
    };
    let summary = brewbench_agent::reports::read::parse(bytes).map_err(told)?;
    let ready = ready(state, file.map(str::to_owned), about, summary, bytes, by).await?;
    store(state, vec![ready]).await
}

/// Stores files as runs, each described apart: all or none. Committed when this returns.
pub async fn several(state: &AppState, files: Vec<(String, About, Vec<u8>)>, by: &str) -> Result<Imported> {
    let mut all = Vec::with_capacity(files.len());
    for (name, about, bytes) in files {
        let summary = brewbench_agent::reports::read::parse(&bytes)
            .map_err(|fault| Error::Invalid(format!("{name:?}: {fault}")))?;
        all.push(ready(state, Some(name), about, summary, &bytes, by).await?);
    }
    store(state, all).await
}

/// Stores a folder with an index as runs: all or none. Committed when this returns.
pub async fn whole_folder(
    state: &AppState,
    index: &str,
    files: &BTreeMap<String, String>,
    by: &str,
) -> Result<Imported> {
    let mut all = Vec::new();
    for Found { name, about, summary } in folder::read(index, files).map_err(Error::Invalid)? {
        let bytes = files.get(&name).map(String::as_bytes).unwrap_or_default();
        let place = format!("{}: {name:?}", folder::INDEX);
        let ready = ready(state, Some(name), about, summary, bytes, by).await;
        all.push(ready.map_err(|fault| match fault {
            Error::Invalid(what) => Error::Invalid(format!("{place}: {what}")),
            other => other,
        })?);
    }
    store(state, all).await
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
    // Without it a run of wrk would be held against one of k6 with as many virtual users.
    let threads = summary.metrics.get("wrk_threads").and_then(|metric| metric.values.get("value"));
    if let Some(threads) = threads {
        about.parameters.entry("threads".to_owned()).or_insert_with(|| threads.to_string());
    }
    let limits = verdicts::limits(&state.db.read, about.scenario.as_deref()).await?.limits;
    let material = Material { figures: summary.figures(), made: None };
    let Judgement { verdict, reasons } = material.judge(&limits);
    let import = NewImport {
        id: RunId::now(),
        about,
        created_by: by.to_owned(),
        figures: material.figures,
        verdict,
        reasons,
        limits,
        engine: Engine { name: summary.shape.engine().to_owned(), version: summary.k6_version.clone() },
        summary: blob::pack(bytes),
        now: now_ms(),
    };
    Ok(Ready { file, summary, import })
}

/// The names and texts as they are kept; fails with a sentence that says which is at fault.
fn checked(about: About) -> Result<About> {
    let named = |what: &str, text: &str| {
        text.parse().map(Name::into_string).map_err(|fault: BadName| Error::Invalid(format!("{what}: {fault}")))
    };
    let line = |what: &str, text: &str| {
        checked_line(text).map(str::to_owned).map_err(|_| Error::Invalid(format!("{what}: {}", BadName::Length)))
    };
    if about.parameters.len() > MOST_PARAMETERS {
        return Err(Error::Invalid(format!("parameters: at most {MOST_PARAMETERS}")));
    }
    let parameter = |(name, value): (String, String)| Ok((line("parameter", &name)?, line(&name, &value)?));
    Ok(About {
        target: named("target", &about.target)?,
        version: about.version.map(|text| line("version", &text)).transpose()?,
        scenario: about.scenario.map(|text| named("scenario", &text)).transpose()?,
        parameters: about.parameters.into_iter().map(parameter).collect::<Result<_>>()?,
        labels: about.labels.iter().map(|label| checked_label(label).map(str::to_owned)).collect::<Result<_>>()?,
        note: about.note.as_deref().map(checked_note).transpose()?.flatten(),
        repetition: about.repetition.max(1),
        ..about
    })
}

async fn store(state: &AppState, all: Vec<Ready>) -> Result<Imported> {
    let targets = all.iter().map(|ready| ready.import.about.target.as_str());
    if let Some(fault) = names::target_fault(&mut *state.db.read.acquire().await?, targets).await? {
        return Err(Error::Conflict(format!("target: {fault}")));
    }
    let (told, imports): (Vec<_>, Vec<_>) = all
        .into_iter()
        .map(|Ready { file, summary, import }| (ImportedFile::of(file.as_deref(), &import.id, &summary), import))
        .unzip();
    let runs = imports::insert(&state.db, &state.uploads, imports).await?;
    for run in &runs {
        lookup::tell(state, run);
    }
    Ok(Imported { runs, files: told })
}
