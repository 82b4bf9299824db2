//! `brewbench run import`

use std::{
    collections::BTreeMap,
    future::ready,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use anyhow::{Context, bail, ensure};
use brewbench::{
    experiments::{from_imports::FromImports, model::ExperimentWithRuns},
    results::import::{Imported, ImportedFile, Skipped, folder::INDEX},
};
use brewbench_wire::reports::{
    archive,
    hints::Hints,
    tables::{Column, column::BadColumn},
};
use clap::Args;
use futures_util::{StreamExt, TryFutureExt, stream};
use reqwest::Method;

use super::preview;
use crate::{
    common::{Common, pair},
    connection::Connection,
    duration, files, table,
};

/// Runs that a command to delete them names.
const UNDO: usize = 20;

/// Concurrent uploads. The server stores files that arrive together in one transaction.
const AT_ONCE: usize = 16;

/// Import runs.
#[derive(Debug, Args)]
#[command(after_long_help = FORMAT)]
pub struct Import {
    #[command(flatten)]
    common: Common,
    /// Files with results: of load generators, collections, tables, and archives of them; or one folder
    #[arg(required = true, value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// Name of the target [default: file name without extension]
    #[arg(long)]
    target: Option<String>,
    /// Version of the target
    #[arg(long)]
    target_version: Option<String>,
    /// Machine size of the target
    #[arg(long)]
    size: Option<String>,
    /// Name of the scenario
    #[arg(long)]
    scenario: Option<String>,
    /// A parameter that distinguishes the load, e.g. payload=10K; repeatable
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    parameters: Vec<(String, String)>,
    /// Meaning of a column of a table, e.g. "Slowest=max ms", or "*=requests/s" if each target has a column; repeatable
    /// [default: guessed from its name]
    #[arg(long = "column", value_name = "NAME=COLUMN", value_parser = column)]
    columns: Vec<(String, Column)>,
    /// Duration of each load, for files that lack it, e.g. 30s
    #[arg(long, value_parser = duration::seconds)]
    duration: Option<f64>,
    /// Import only results with these words in their names or headings
    #[arg(long, value_name = "WORDS")]
    only: Option<String>,
    /// Print what the files contain, and import nothing
    #[arg(long, conflicts_with = "experiment")]
    dry_run: bool,
    /// Create an experiment with this name from the imported runs
    #[arg(long, value_name = "NAME")]
    experiment: Option<String>,
}

const FORMAT: &str = "\
The format of each file is detected from its content and printed. Missing figures stay empty. A file with several results, such as a README \
or a table, becomes several runs, named after their headings or rows, or repetitions of --target.

COLUMN is name, requests, failed, failed %, requests/s, connections, duration, cpu, memory, ignore, or a latency: min, mean, max, stddev, p99. \
Add the unit of times, e.g. \"p99 ms\", unless the cells have it.

A folder or an archive (tar, zip) is imported completely or not at all; files that are no results are skipped, and so are symbolic links. \
An index.json in it is a list with one object per file:

  file                 name of a file in the folder; required
  target               name of the target; required
  version              version of the target
  tool                 k6 or wrk; an error if the file has another format
  vcpus, memory_mib    machine size of the target: both or neither
  machine              the machine it ran on, if it was not limited to a size
  scenario             name of the scenario
  payload              payload, if it distinguishes the load, e.g. 10K
  vus                  constant virtual users
  connections, threads connections and threads of wrk
  duration_s           planned duration of the load
  repetition           from 1; counted in the order of the index if absent
  order                place in the order of measurement, from 1; for all files or none
  source               origin of the file; becomes a label
  note                 note, as Markdown

Other fields are errors. Values in both the file and the index must agree.";

impl Import {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        if self.dry_run {
            if !preview::print(&self.files, &self.hints(), self.only.as_deref(), self.common.json)? {
                bail!("not all of it can be imported");
            }
            return Ok(());
        }
        let connection = self.common.connect()?;
        let imported = match self.files.as_slice() {
            [folder] if folder.is_dir() => {
                let sent = self.import_file(&connection, None, folder, archived(folder)?).await;
                sent.with_context(|| format!("nothing was imported from {}", folder.display()))?
            }
            files => match files.iter().find(|file| file.is_dir()) {
                Some(folder) => bail!("{} is a folder; import it in a separate command", folder.display()),
                None => self.each(&connection, files).await?,
            },
        };
        report(&imported);
        if let Some(name) = &self.experiment {
            let runs = imported.runs.iter().map(|run| run.id.clone()).collect();
            let gathering = FromImports { name: name.clone(), runs };
            let created: ExperimentWithRuns =
                connection.client.post("api/v1/experiments/from-imports", &gathering).await?;
            eprintln!("experiment: {}", created.url);
            return self.common.print(&Imported { runs: created.runs, ..imported }, |shown| table::runs(&shown.runs));
        }
        self.common.print(&imported, |imported| table::runs(&imported.runs))
    }

    async fn each(&self, connection: &Connection, files: &[PathBuf]) -> anyhow::Result<Imported> {
        let failed = AtomicBool::new(false);
        let until_one_fails = stream::iter(files.iter().enumerate()).take_while(|_| ready(!failed.load(Relaxed)));
        let sent = until_one_fails.map(|(index, file)| {
            // Several files of one target are its repetitions.
            let repetition = self.target.as_ref().map(|_| index + 1);
            ready(files::bytes(file))
                .and_then(move |bytes| self.import_file(connection, repetition, file, bytes))
                .inspect_err(|_| failed.store(true, Relaxed))
                .map_err(|fault| fault.context(format!("{} was not imported", file.display())))
        });
        let sent: Vec<anyhow::Result<Imported>> = sent.buffered(AT_ONCE).collect().await;
        let (mut all, mut fault) = (Imported::default(), None);
        for sent in sent {
            match sent {
                Ok(Imported { runs, files, skipped, .. }) => {
                    all.runs.extend(runs);
                    all.files.extend(files);
                    all.skipped.extend(skipped);
                }
                Err(other) => fault = fault.or(Some(other)),
            }
        }
        let Some(fault) = fault else { return Ok(all) };
        if all.runs.is_empty() {
            return Err(fault);
        }
        // Lists the imported files, so that the user can import the rest.
        report(&all);
        Err(fault.context(format!("{} of {} files were imported, listed above", all.runs.len(), files.len())))
    }

    fn hints(&self) -> Hints {
        let columns = self.columns.iter().cloned().collect();
        Hints { columns, duration_ms: self.duration.map(|seconds| seconds * 1e3) }
    }

    async fn import_file(
        &self,
        connection: &Connection,
        repetition: Option<usize>,
        file: &Path,
        bytes: Vec<u8>,
    ) -> anyhow::Result<Imported> {
        let Self { target, target_version, size, scenario, only, .. } = self;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut query = vec![("file", name)];
        query.extend(repetition.map(|number| ("repetition", number.to_string())));
        let about = [
            ("target", target),
            ("version", target_version),
            ("size", size),
            ("scenario", scenario),
            ("only", only),
            ("duration", &self.duration.map(|seconds| seconds.to_string())),
        ];
        for (name, value) in about {
            query.extend(value.clone().map(|value| (name, value)));
        }
        query.extend(self.parameters.iter().map(|(name, value)| ("parameter", format!("{name}={value}"))));
        query.extend(self.columns.iter().map(|(name, column)| ("column", format!("{name}={column}"))));
        let request = connection.client.request(Method::POST, "api/v1/runs/import").query(&query).body(bytes);
        let Imported { runs, files, skipped, order_fault } = connection.client.json(request).await?;
        // The server names the places of several reports.
        let is_one = files.len() == 1 && file.is_file();
        let named = |one: ImportedFile| {
            if is_one { ImportedFile { file: Some(file.display().to_string()), ..one } } else { one }
        };
        Ok(Imported { runs, files: files.into_iter().map(named).collect(), skipped, order_fault })
    }
}

/// Prints the detected format of each file, and why they do not count as measured in turn.
fn report(imported: &Imported) {
    for (file, run) in imported.files.iter().zip(&imported.runs) {
        let name = file.file.as_deref().unwrap_or(&run.spec.target);
        eprintln!("{}: {}", table::plain(name), table::plain(&file.describe()));
    }
    for Skipped { file, why } in &imported.skipped {
        eprintln!("skipped {}: {}", table::plain(file), table::plain(why));
    }
    let ids: Vec<String> = imported.runs.iter().map(|run| table::short_id(run.id.as_str())).collect();
    if !ids.is_empty() && ids.len() <= UNDO {
        eprintln!("to undo this: brewbench run delete {}", ids.join(" "));
    }
    if let Some(fault) = &imported.order_fault {
        eprintln!("not measured in turn: {}", table::plain(fault));
    }
}

/// Packs the files of a folder: those that its index names, or all.
fn archived(folder: &Path) -> anyhow::Result<Vec<u8>> {
    let files = if folder.join(INDEX).is_file() { named(folder)? } else { all(folder)? };
    ensure!(!files.is_empty(), "{} has no files", folder.display());
    Ok(archive::pack(files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())))?)
}

fn all(folder: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let mut all = BTreeMap::new();
    files::walk(folder, folder, &mut |name, path| {
        if path.is_symlink() {
            eprintln!("skipped {}: it is a link", table::plain(&name));
        } else {
            all.insert(name, files::bytes(path)?);
        }
        Ok(())
    })?;
    Ok(all)
}

/// Reads the index of a folder, and the files that it names.
fn named(folder: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let own = folder.canonicalize().with_context(|| format!("can't open {}", folder.display()))?;
    let index =
        inside(&own, INDEX).with_context(|| format!("{} is a link out of the folder", folder.join(INDEX).display()))?;
    let index = files::text(&index)?;
    let mut files = BTreeMap::new();
    for name in named_files(&index) {
        // The server reports missing files with their position in the index.
        if !is_plain(&name) || !own.join(&name).is_file() {
            continue;
        }
        match inside(&own, &name) {
            Some(path) => drop(files.insert(name, files::bytes(&path)?)),
            None => eprintln!("skipped {}: it is a link out of the folder", table::plain(&name)),
        }
    }
    files.insert(INDEX.to_owned(), index.into_bytes());
    Ok(files)
}

/// Parses the meaning of a column: `NAME=COLUMN`.
fn column(text: &str) -> Result<(String, Column), String> {
    let (name, column) = text.rsplit_once('=').ok_or_else(|| format!("write {text:?} as NAME=COLUMN"))?;
    Ok((name.to_owned(), column.parse().map_err(|fault: BadColumn| fault.to_string())?))
}

/// Returns the files listed in an index. Returns none if it is invalid: the server then reports why.
fn named_files(index: &str) -> Vec<String> {
    let entries: Vec<serde_json::Value> =
        serde_json::from_str(index.trim_start_matches('\u{feff}')).unwrap_or_default();
    entries.iter().filter_map(|entry| entry["file"].as_str().map(str::to_owned)).collect()
}

/// Returns the path of a file in a folder without symbolic links; `None` if one leads out of the folder.
fn inside(folder: &Path, name: &str) -> Option<PathBuf> {
    folder.join(name).canonicalize().ok().filter(|path| path.starts_with(folder))
}

/// Whether a name has no path components.
fn is_plain(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|plain| plain == name)
}
