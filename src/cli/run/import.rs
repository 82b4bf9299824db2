//! `brewbench run import`

use std::{
    collections::BTreeMap,
    future::ready,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use anyhow::{Context, bail};
use clap::Args;
use futures_util::{StreamExt, TryFutureExt, stream};
use reqwest::Method;

use crate::{
    cli::{
        common::{Common, pair},
        connection::Connection,
        files, table,
    },
    experiments::{from_imports::Gathering, model::ExperimentWithRuns},
    results::{
        api::import::FolderBody,
        import::{Imported, ImportedFile, folder::INDEX},
    },
};

/// Files that are sent at a time: the server stores what arrives together in one transaction.
const AT_ONCE: usize = 16;

/// `run import`
#[derive(Debug, Args)]
#[command(after_long_help = FORMAT)]
pub struct Import {
    #[command(flatten)]
    common: Common,
    /// Files with k6's end-of-test JSON or text report or wrk's output, or one folder with an index.json
    #[arg(required = true, value_name = "FILE|DIR")]
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
    /// What else tells its load from another, as NAME=VALUE such as payload=10K; repeat for several
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    parameters: Vec<(String, String)>,
    /// Make an experiment of this name of what is imported
    #[arg(long, value_name = "NAME")]
    experiment: Option<String>,
}

const FORMAT: &str = "\
What a file is, is told from what is in it, and said. What a text does not have stays empty.

A folder is imported whole or not at all. Its index.json is a list with one object a file:

  file                 name of a file beside the index; needed
  target               name of the target; needed
  version              its version
  tool                 k6 or wrk; refused if the file is something else
  vcpus, memory_mib    the machine size that the target had: both or neither
  machine              what it ran on, where that was not held to a size
  scenario             what was run
  payload              what was asked for, where that makes a load another one, e.g. 10K
  vus                  virtual users, constant
  connections, threads wrk's
  duration_s           how long the load was to last
  repetition           from 1; counted in the order of the index if absent
  source               where the file is from; becomes a label
  note                 what there is to say of it, as Markdown

Other fields are refused. What file and index both say must agree.";

impl Import {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        let connection = self.common.connect()?;
        let imported = match self.files.as_slice() {
            [folder] if folder.is_dir() => self.folder(&connection, folder).await?,
            files => match files.iter().find(|file| file.is_dir()) {
                Some(folder) => bail!("{} is a folder: import it by itself", folder.display()),
                None => self.each(&connection, files).await?,
            },
        };
        say(&imported);
        if let Some(name) = &self.experiment {
            let runs = imported.runs.iter().map(|run| run.id.clone()).collect();
            let gathering = Gathering { name: name.clone(), runs };
            let made: ExperimentWithRuns = connection.client.post("api/v1/experiments/gathered", &gathering).await?;
            eprintln!("the experiment: {}", made.url);
            return self.common.print(&Imported { runs: made.runs, ..imported }, |made| table::runs(&made.runs));
        }
        self.common.print(&imported, |imported| table::runs(&imported.runs))
    }

    async fn each(&self, connection: &Connection, files: &[PathBuf]) -> anyhow::Result<Imported> {
        let failed = AtomicBool::new(false);
        let until_one_fails = stream::iter(files.iter().enumerate()).take_while(|_| ready(!failed.load(Relaxed)));
        let sent = until_one_fails.map(|(index, file)| {
            self.one(connection, index, file)
                .inspect_err(|_| failed.store(true, Relaxed))
                .map_err(|fault| fault.context(format!("{} was not imported", file.display())))
        });
        let sent: Vec<anyhow::Result<Imported>> = sent.buffered(AT_ONCE).collect().await;
        let (mut all, mut fault) = (Imported::default(), None);
        for sent in sent {
            match sent {
                Ok(Imported { runs, files }) => {
                    all.runs.extend(runs);
                    all.files.extend(files);
                }
                Err(other) => fault = fault.or(Some(other)),
            }
        }
        let Some(fault) = fault else { return Ok(all) };
        if all.runs.is_empty() {
            return Err(fault);
        }
        // To import the rest, one needs to know which files are left.
        say(&all);
        Err(fault.context(format!("{} of {} files were imported, those listed above", all.runs.len(), files.len())))
    }

    async fn one(&self, connection: &Connection, index: usize, file: &Path) -> anyhow::Result<Imported> {
        let Self { target, target_version, size, scenario, parameters, .. } = self;
        let bytes = files::bytes(file)?;
        let stem = || file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // Several files for one named target are its repetitions.
        let repetition = if target.is_some() { index + 1 } else { 1 };
        let mut query = vec![("target", target.clone().unwrap_or_else(stem)), ("repetition", repetition.to_string())];
        for (name, value) in [("version", target_version), ("size", size), ("scenario", scenario)] {
            query.extend(value.clone().map(|value| (name, value)));
        }
        query.extend(parameters.iter().map(|(name, value)| ("parameter", format!("{name}={value}"))));
        let request = connection.client.request(Method::POST, "api/v1/runs/import").query(&query).body(bytes);
        let Imported { runs, files } = connection.client.json(request).await?;
        let named = |kind: ImportedFile| ImportedFile { file: Some(file.display().to_string()), ..kind };
        Ok(Imported { runs, files: files.into_iter().map(named).collect() })
    }

    async fn folder(&self, connection: &Connection, folder: &Path) -> anyhow::Result<Imported> {
        let given = [&self.target, &self.target_version, &self.size, &self.scenario];
        if given.iter().any(|flag| flag.is_some()) || !self.parameters.is_empty() {
            bail!("of a folder, {INDEX} says what each file is: leave the flags out, or name the files");
        }
        let index = folder.join(INDEX);
        if !index.is_file() {
            bail!(
                "{} has no {INDEX} that says what its files are; `run import --help` tells its fields",
                folder.display()
            );
        }
        let index = files::text(&index)?;
        let mut files = BTreeMap::new();
        for name in named_files(&index) {
            let path = folder.join(&name);
            // What is not there is told by the server, with the place in the index.
            if is_plain(&name) && path.is_file() {
                files.insert(name, files::text(&path)?);
            }
        }
        let body = FolderBody { index, files };
        let sent = connection.client.post("api/v1/runs/import/folder", &body).await;
        sent.with_context(|| format!("nothing of {} was imported", folder.display()))
    }
}

/// Prints what each file was taken for.
fn say(imported: &Imported) {
    for (file, run) in imported.files.iter().zip(&imported.runs) {
        let name = file.file.as_deref().unwrap_or(&run.target);
        eprintln!("{}: {}", table::plain(name), table::plain(&file.sentence()));
    }
}

/// The files that an index names; none of one that can't be read, of which the server says what is wrong.
fn named_files(index: &str) -> Vec<String> {
    let entries: Vec<serde_json::Value> =
        serde_json::from_str(index.trim_start_matches('\u{feff}')).unwrap_or_default();
    entries.iter().filter_map(|entry| entry["file"].as_str().map(str::to_owned)).collect()
}

/// Whether a name stays within its folder.
fn is_plain(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|plain| plain == name)
}
