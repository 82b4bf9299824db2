//! `/runs/import`: the import form; `/runs/imported`: how the files were read.

pub mod limits;
pub mod run;

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    extract::{Multipart, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use brewbench_wire::reports::encoding;
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
        api::import::{pair, requested_size},
        blob,
        import::{
            self, Imported, ImportedFile,
            about::About,
            folder::{INDEX, MAX_FILES},
        },
    },
    runs::{
        model::{Origin, Run, RunSpec},
        pages::row::ListedRun,
    },
    web::shell::{Section, Shell},
};

/// The import form.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "runs/import.html")]
pub struct ImportPage {
    shell: Shell,
    sizes: Vec<String>,
    form: Form,
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

    /// Whether the user may create an experiment from all of them.
    fn may_create_experiment(&self) -> bool {
        let is_free = |run: &Run| run.origin == Origin::Import && run.experiment.is_none();
        self.scope >= Scope::Submit && self.imported.iter().all(|(line, _)| is_free(&line.run))
    }
}

/// Input of the form.
#[derive(Debug, Default)]
struct Form {
    target: String,
    version: String,
    size: String,
    scenario: String,
    parameters: String,
    files: Vec<(String, Vec<u8>)>,
}

/// `GET /runs/import`
pub async fn form(Submit(caller): Submit, State(state): State<AppState>) -> Result<ImportPage> {
    page(&state, &caller, Form::default(), None).await
}

/// `POST /runs/import`
pub async fn import(
    Submit(caller): Submit,
    State(state): State<AppState>,
    _room: UploadPermit,
    parts: Multipart,
) -> Result<Response> {
    let form = Form::read(parts).await?;
    match form.store(&state, &caller.name).await {
        Ok(imported) => {
            let ids: Vec<&str> = imported.runs.iter().map(|run| run.id.as_str()).collect();
            Ok(Redirect::to(&format!("/runs/imported?runs={}", ids.join(","))).into_response())
        }
        Err(Error::Invalid(fault)) => {
            let page = page(&state, &caller, form, Some(fault)).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
        Err(other) => Err(other),
    }
}

async fn page(state: &AppState, caller: &Caller, form: Form, fault: Option<String>) -> Result<ImportPage> {
    let shell = Shell::signed_in("Import results", Section::Runs, &caller.name).explained_in("guide/importing");
    let sizes = crate::catalog::store::sizes(&state.db.read).await?;
    Ok(ImportPage { shell, sizes: sizes.into_iter().map(|size| size.name).collect(), form, fault })
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

impl Form {
    async fn read(mut parts: Multipart) -> Result<Self> {
        let mut form = Self::default();
        while let Some(part) = parts.next_field().await? {
            let field = part.name().unwrap_or_default().to_owned();
            let file = part.file_name().map(str::to_owned);
            let bytes = part.bytes().await?.to_vec();
            if field == "files" {
                // Browsers send an unused file field as an empty file without a name, and a folder's files with the
                // folder in their names.
                let name = file.unwrap_or_default();
                let name = name.rsplit('/').next().unwrap_or_default().to_owned();
                if !name.is_empty() {
                    form.files.push((name, bytes));
                }
                continue;
            }
            let text = encoding::text(bytes).map_err(|fault| Error::Invalid(format!("{field}: {fault}")))?;
            let text = text.trim().to_owned();
            match field.as_str() {
                "target" => form.target = text,
                "version" => form.version = text,
                "size" => form.size = text,
                "scenario" => form.scenario = text,
                "parameters" => form.parameters = text,
                _ => {}
            }
        }
        Ok(form)
    }

    async fn store(&self, state: &AppState, by: &str) -> Result<Imported> {
        if self.files.is_empty() || self.files.len() > MAX_FILES {
            return Err(Error::Invalid(format!("choose 1 to {MAX_FILES} files")));
        }
        match self.files.iter().find(|(name, _)| name == INDEX) {
            Some((_, index)) => self.store_folder(state, index, by).await,
            None => self.store_each(state, by).await,
        }
    }

    async fn store_folder(&self, state: &AppState, index: &[u8], by: &str) -> Result<Imported> {
        let text = |name: &str, bytes: &[u8]| {
            encoding::text(bytes.to_vec()).map_err(|fault| Error::Invalid(format!("{name:?} {fault}")))
        };
        let index = text(INDEX, index)?;
        let files = self.files.iter().map(|(name, bytes)| Ok((name.clone(), text(name, bytes)?)));
        let files = files.collect::<Result<BTreeMap<_, _>>>()?;
        import::import_folder(state, &index, &files, by).await
    }

    async fn store_each(&self, state: &AppState, by: &str) -> Result<Imported> {
        let non_empty = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let parameters = self.parameters.split_whitespace().map(pair).collect::<Result<BTreeMap<_, _>>>()?;
        let size = requested_size(state, non_empty(&self.size).as_deref()).await?;
        let mut files = Vec::new();
        for (place, (name, bytes)) in (1..).zip(&self.files) {
            let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
            let spec = RunSpec {
                target: non_empty(&self.target).unwrap_or_else(|| stem.to_owned()),
                size: size.clone(),
                scenario: non_empty(&self.scenario),
                parameters: parameters.clone(),
                ..RunSpec::default()
            };
            let about = About {
                spec,
                version: non_empty(&self.version),
                // Several files of one target are repetitions.
                repetition: if self.target.is_empty() { 1 } else { place },
                ..About::default()
            };
            files.push((name.clone(), about, bytes.clone()));
        }
        import::import_files(state, files, by).await
    }
}
