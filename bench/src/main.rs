//! Measures the overhead of brewbench: ratios to the same work without it, and response times at a given rate. Both
//! sides of a ratio are measured in one run, because the machine's performance varies.

mod aa;
mod agent;
mod apart;
mod chaos;
mod connections;
mod figures;
mod fleet;
mod generators;
mod history;
mod ingest;
mod instructions;
mod kinds;
mod live;
mod manifests;
mod observer;
mod overload;
mod profiles;
mod recorded;
mod self_check;
mod site;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{Parser, Subcommand};
use figures::Figure;

/// Measure the overhead of brewbench.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// Also write the figures to FILE, as JSON
    #[arg(long, value_name = "FILE", global = true)]
    json: Option<PathBuf>,
    /// Also append the medians to FILE, as one line of JSON
    #[arg(long, value_name = "FILE", global = true)]
    record: Option<PathBuf>,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Measure everything but aa, kinds, profiles, chaos, soak, self-check and instructions
    All {
        /// Folder of the targets' manifests
        manifests: PathBuf,
    },
    /// Compare runs of brewbench with a bare k6
    Observer {
        /// Folder of the targets' manifests
        manifests: PathBuf,
    },
    /// Compare load generators: native, wrk and k6
    Generators {
        /// Folder of the targets' manifests
        manifests: PathBuf,
    },
    /// Compare imports with raw inserts
    Ingest,
    /// Measure runs that many browsers watch
    Live {
        /// Folder of the targets' manifests
        manifests: PathBuf,
    },
    /// Measure a thousand agents on one server
    Fleet,
    /// Measure thousands of connections that send almost nothing
    Connections,
    /// Measure pages with a long history
    History {
        /// Number of stored runs
        #[arg(default_value_t = history::RUNS)]
        runs: u32,
    },
    /// Request three times as many pages as the server can answer
    Overload {
        /// Number of stored runs
        #[arg(default_value_t = history::RUNS)]
        runs: u32,
    },
    /// Compare CPU instructions of pages and of an import with the committed counts; needs valgrind
    Instructions {
        /// Write the counts instead
        #[arg(long)]
        write: bool,
    },
    /// Check the statistics on real runs: a target against itself and against a slower one
    Aa {
        /// Folder of the targets' manifests
        manifests: PathBuf,
    },
    /// Compare one server as program, in containers, in a virtual machine and running already; needs root
    Kinds {
        /// Folder of the targets' manifests
        manifests: PathBuf,
        /// Folder of the reports
        reports: PathBuf,
        /// Runs of each
        #[arg(default_value_t = 8)]
        repetitions: u32,
    },
    /// Profile targets: compare each with itself, and with unprofiled runs; needs perf
    Profiles {
        /// Folder of the targets' manifests
        manifests: PathBuf,
    },
    /// Inject failures into real runs; needs root
    Chaos {
        /// Folder of the targets' manifests
        manifests: PathBuf,
        /// Number of kills per victim
        #[arg(default_value_t = chaos::TIMES)]
        times: u32,
        /// Seed of the random moments; random by default
        seed: Option<u64>,
    },
    /// Perform thousands of short runs and check for leaks
    Soak {
        /// Folder of the targets' manifests
        manifests: PathBuf,
        /// Number of runs
        #[arg(default_value_t = chaos::soak::RUNS)]
        runs: u32,
    },
    /// Simulate how often comparisons, gates and trends are wrong
    SelfCheck {
        /// Simulations per row
        #[arg(default_value_t = self_check::ROUNDS)]
        rounds: usize,
    },
    /// Run a part of the benchmark in a child process
    #[command(name = apart::WORD, hide = true)]
    Apart { what: apart::What, arguments: Vec<OsString> },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // As in the real server, because the measured server runs in a child process of this program.
    brewbench::app::memory::return_at_once();
    let cli = Cli::parse();
    let figures = match cli.what {
        What::All { manifests } => all(&manifests).await?,
        What::Observer { manifests } => printed("runs beside a bare k6", observer::measure(&manifests).await?),
        What::Generators { manifests } => printed(&generators::title(), generators::measure(&manifests)?),
        What::Ingest => printed("imports", ingest::measure().await?),
        What::Live { manifests } => printed("live", live::measure(&manifests).await?),
        What::Fleet => printed(&fleet::title(), fleet::measure().await?),
        What::Connections => printed(&connections::title(), connections::measure().await?),
        What::History { runs } => printed(&history::title(runs), history::measure(runs).await?),
        What::Overload { runs } => printed(overload::TITLE, overload::measure(runs).await?),
        What::Instructions { write } => return instructions::check(write).await,
        What::Aa { manifests } => return aa::measure(&manifests).await,
        What::Kinds { manifests, reports, repetitions } => {
            printed("containers and virtual machines", kinds::measure(&manifests, &reports, repetitions).await?)
        }
        What::Profiles { manifests } => printed("profiles", profiles::measure(&manifests).await?),
        What::Chaos { manifests, times, seed } => return chaos::all(&manifests, times, seed).await,
        What::Soak { manifests, runs } => return chaos::soak::measure(&manifests, runs).await,
        What::SelfCheck { rounds } => return self_check::print(rounds),
        What::Apart { what, arguments } => return part(what, arguments.into_iter()).await,
    };
    if let Some(file) = cli.json {
        figures::write(&file, &figures)?;
    }
    cli.record.map_or(Ok(()), |file| figures::record(&file, &figures))
}

/// Runs a part of the benchmark until it ends.
async fn part(what: apart::What, arguments: impl Iterator<Item = OsString>) -> anyhow::Result<()> {
    match what {
        apart::What::Site => site::run_child(arguments).await,
        apart::What::Agent => agent::run_child(arguments).await,
        apart::What::Counted => instructions::run_child(arguments).await,
        apart::What::Cuts => chaos::run_child(arguments).await,
    }
}

async fn all(manifests: &Path) -> anyhow::Result<Vec<Figure>> {
    let mut all = printed("runs beside a bare k6", observer::measure(manifests).await?);
    all.extend(printed(&generators::title(), generators::measure(manifests)?));
    all.extend(printed("imports", ingest::measure().await?));
    all.extend(printed("live", live::measure(manifests).await?));
    all.extend(printed(&fleet::title(), fleet::measure().await?));
    all.extend(printed(&connections::title(), connections::measure().await?));
    all.extend(printed(&history::title(history::RUNS), history::measure(history::RUNS).await?));
    all.extend(printed(overload::TITLE, overload::measure(history::RUNS).await?));
    Ok(all)
}

/// Prints a table at once, because the next one takes minutes.
fn printed(title: &str, figures: Vec<Figure>) -> Vec<Figure> {
    figures::print(title, &figures);
    figures
}
