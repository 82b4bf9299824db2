//! `/runs/import`: the import form; `/runs/import/ID`: the preview; `/runs/imported`: how the files were read.

pub mod limits;
pub mod preview;
pub mod run;

use std::collections::BTreeSet;

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    extract::{Multipart, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use brewbench_wire::{
    now_ms,
    reports::archive::{self, ArchivedFile},
};
use serde::Deserialize;

use crate::{
    app::{
        error::{Error, QueryParams, Result},
        ids::RunId,
        rate_limit::uploads::UploadPermit,
        state::AppState,
    },
    auth::{
        caller::{Caller, Read, Submit},
        model::Scope,
    },
    results::{
        blob,
        import::{
            self, ImportedFile,
            folder::{INDEX, MAX_FILES},
        },
        store::uploads,
    },
    runs::{
        model::{Origin, Run},
        pages::row::ListedRun,
    },
    web::shell::{Section, Shell},
};

/// The import form.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "runs/import.html")]
pub struct ImportPage {
    shell: Shell,
    fault: Option<String>,
}

/// The imported runs.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "runs/imported.html")]
pub struct ImportedPage {
    shell: Shell,
    imported: Vec<(ListedRun, Option<ImportedFile>)>,
    scope: Scope,
}

impl ImportedPage {
    fn ids(&self) -> String {
        self.imported.iter().map(|(line, _)| line.run.id.as_str()).collect::<Vec<_>>().join(",")
    }

    /// Whether they are repetitions of several targets whose index does not prove a balanced order.
    fn is_of_unknown_order(&self) -> bool {
        let runs = || self.imported.iter().map(|(line, _)| &line.run);
        let targets: BTreeSet<&str> = runs().map(|run| run.spec.target.as_str()).collect();
        targets.len() > 1 && runs().any(|run| run.repetition > 1 && !run.interleaved)
    }

    fn may_undo(&self) -> bool {
        self.scope >= Scope::Submit && self.imported.iter().all(|(line, _)| line.run.origin == Origin::Import)
    }

    /// Whether the user may create an experiment from all of them.
    fn may_create_experiment(&self) -> bool {
        let is_free = |run: &Run| run.origin == Origin::Import && run.experiment.is_none();
        self.scope >= Scope::Submit && self.imported.iter().all(|(line, _)| is_free(&line.run))
    }
}

/// `GET /runs/import`
pub async fn form(Submit(caller): Submit) -> ImportPage {
    page(&caller, None)
}

/// `POST /runs/import`: goes on to the preview; a folder with an index is imported by it.
pub async fn upload(
    Submit(caller): Submit,
    State(state): State<AppState>,
    _room: UploadPermit,
    parts: Multipart,
) -> Result<Response> {
    match take(&state, &caller, parts).await {
        Ok(address) => Ok(Redirect::to(&address).into_response()),
        Err(Error::Invalid(fault)) => {
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page(&caller, Some(fault))).into_response())
        }
        Err(other) => Err(other),
    }
}

fn page(caller: &Caller, fault: Option<String>) -> ImportPage {
    let shell = Shell::signed_in("Import results", Section::Runs, &caller.name).explained_in("guide/importing");
    ImportPage { shell, fault }
}

/// Takes the files; returns where to go on.
async fn take(state: &AppState, caller: &Caller, parts: Multipart) -> Result<String> {
    let files = uploaded(parts).await?;
    if files.is_empty() || files.len() > MAX_FILES {
        return Err(Error::Invalid(format!("choose 1 to {MAX_FILES} files")));
    }
    if !files.iter().any(|file| file.path == INDEX) {
        return Ok(format!("/runs/import/{}", uploads::insert(&state.db.write, &files, &caller.name, now_ms()).await?));
    }
    let imported = import::import_folder(state, &files, &caller.name).await?;
    let ids: Vec<&str> = imported.runs.iter().map(|run| run.id.as_str()).collect();
    Ok(format!("/runs/imported?runs={}", ids.join(",")))
}

/// Reads the files of a form, those of archives among them.
async fn uploaded(mut parts: Multipart) -> Result<Vec<ArchivedFile>> {
    let mut files = Vec::new();
    while let Some(part) = parts.next_field().await? {
        // Browsers send an unused file field as an empty file without a name, and a folder's files with the folder in
        // their names.
        let name = part.file_name().unwrap_or_default().to_owned();
        let path = name.rsplit('/').next().unwrap_or_default().to_owned();
        let bytes = part.bytes().await?.to_vec();
        if path.is_empty() {
            continue;
        }
        let archive = archive::files(&bytes).map_err(|fault| Error::Invalid(format!("{path:?}: {fault}")))?;
        files.extend(archive.unwrap_or_else(|| vec![ArchivedFile { path, bytes }]));
    }
    Ok(files)
}

/// Query of `/runs/imported`.
#[derive(Debug, Deserialize)]
pub struct ImportedQuery {
    /// Ids, separated by commas.
    #[serde(default)]
    runs: String,
}

/// `GET /runs/imported?runs=…`
pub async fn imported(
    Read(caller): Read,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<ImportedQuery>,
) -> Result<ImportedPage> {
    let ids: Vec<RunId> =
        query.runs.split(',').filter(|id| !id.is_empty()).take(MAX_FILES).map(|id| id.to_owned().into()).collect();
    let runs = crate::runs::store::by_ids(&state.db.rows, &ids).await?;
    if runs.is_empty() {
        return Err(Error::NotFound("run with these ids".to_owned()));
    }
    let targets: Vec<&str> = runs.iter().map(|run| run.spec.target.as_str()).collect();
    let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
    let mut imported = Vec::with_capacity(runs.len());
    for run in runs {
        let body =
            crate::runs::store::summary(&state.db.read, &run.id).await?.and_then(|body| blob::unpack(&body).ok());
        let read = body.and_then(|body| brewbench_wire::reports::read::parse(&body).ok());
        let file = read.map(|summary| ImportedFile::from_summary(None, &run.id, &summary));
        imported.push((ListedRun::new(run, &marks), file));
    }
    Ok(ImportedPage { shell: Shell::signed_in("Imported", Section::Runs, &caller.name), imported, scope: caller.scope })
}
