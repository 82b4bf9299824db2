//! Measures what brewbench itself costs: ratios to doing the same without it, and response times at a rate. Both sides of a
//! ratio are measured in one run, because the machine below is never the same twice.

mod aa;
mod agent;
mod apart;
mod chaos;
mod connections;
mod figures;
mod fleet;
mod history;
mod ingest;
mod instructions;
mod live;
mod observer;
mod overload;
mod recorded;
mod self_check;
mod site;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{Parser, Subcommand};
use figures::Figure;

/// Measures what brewbench itself costs.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// Also write the figures to this file, as JSON.
    #[arg(long, value_name = "FILE", global = true)]
    json: Option<PathBuf>,
    /// Also append the medians to this file, as one line of JSON.
    #[arg(long, value_name = "FILE", global = true)]
    record: Option<PathBuf>,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Everything but aa, chaos, soak, self-check and instructions.
    All {
        /// Folder of the targets' manifests.
        manifests: PathBuf,
    },
    /// Runs with brewbench beside a bare k6.
    Observer {
        /// Folder of the targets' manifests.
        manifests: PathBuf,
    },
    /// Imports beside raw inserts.
    Ingest,
    /// Runs that many browsers watch.
    Live {
        /// Folder of the targets' manifests.
        manifests: PathBuf,
    },
    /// A thousand agents on one server.
    Fleet,
    /// Connections that send almost nothing.
    Connections,
    /// Pages of a long history.
    History {
        /// How many runs are stored.
        #[arg(default_value_t = history::RUNS)]
        runs: u32,
    },
    /// Three times as many pages as the server can answer.
    Overload {
        /// How many runs are stored.
        #[arg(default_value_t = history::RUNS)]
        runs: u32,
    },
    /// CPU instructions of pages and of an import, compared with the committed ones; needs valgrind.
    Instructions {
        /// Commit to them instead.
        #[arg(long)]
        write: bool,
    },
    /// The statistics on real runs: a target against itself, and against a slower one.
    Aa {
        /// Folder of the targets' manifests.
        manifests: PathBuf,
    },
    /// Failures around real runs; needs root.
    Chaos {
        /// Folder of the targets' manifests.
        manifests: PathBuf,
        /// How often each.
        #[arg(default_value_t = chaos::TIMES)]
        times: u32,
        /// Where the random moments start; a random one unless it is given.
        seed: Option<u64>,
    },
    /// Thousands of short runs.
    Soak {
        /// Folder of the targets' manifests.
        manifests: PathBuf,
        /// How many runs.
        #[arg(default_value_t = chaos::soak::RUNS)]
        runs: u32,
    },
    /// How often comparisons, gates and trends are wrong.
    SelfCheck {
        /// Simulations of each row.
        #[arg(default_value_t = self_check::ROUNDS)]
        rounds: usize,
    },
    /// What this program starts as a process of its own.
    #[command(name = apart::WORD, hide = true)]
    Apart { what: apart::What, arguments: Vec<OsString> },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // As the program that is measured: the server runs in a process of this program.
    brewbench::app::memory::return_at_once();
    let cli = Cli::parse();
    let figures = match cli.what {
        What::All { manifests } => all(&manifests).await?,
        What::Observer { manifests } => shown("runs beside a bare k6", observer::measure(&manifests).await?),
        What::Ingest => shown("imports", ingest::measure().await?),
        What::Live { manifests } => shown("live", live::measure(&manifests).await?),
        What::Fleet => shown(&fleet::title(), fleet::measure().await?),
        What::Connections => shown(&connections::title(), connections::measure().await?),
        What::History { runs } => shown(&history::title(runs), history::measure(runs).await?),
        What::Overload { runs } => shown(overload::TITLE, overload::measure(runs).await?),
        What::Instructions { write } => return instructions::check(write).await,
        What::Aa { manifests } => return aa::measure(&manifests).await,
        What::Chaos { manifests, times, seed } => return chaos::all(&manifests, times, seed).await,
        What::Soak { manifests, runs } => return chaos::soak::measure(&manifests, runs).await,
        What::SelfCheck { rounds } => return self_check::print(rounds),
        What::Apart { what, arguments } => return what.run(arguments).await,
    };
    if let Some(file) = cli.json {
        figures::write(&file, &figures)?;
    }
    cli.record.map_or(Ok(()), |file| figures::record(&file, &figures))
}

async fn all(manifests: &Path) -> anyhow::Result<Vec<Figure>> {
    let mut all = shown("runs beside a bare k6", observer::measure(manifests).await?);
    all.extend(shown("imports", ingest::measure().await?));
    all.extend(shown("live", live::measure(manifests).await?));
    all.extend(shown(&fleet::title(), fleet::measure().await?));
    all.extend(shown(&connections::title(), connections::measure().await?));
    all.extend(shown(&history::title(history::RUNS), history::measure(history::RUNS).await?));
    all.extend(shown(overload::TITLE, overload::measure(history::RUNS).await?));
    Ok(all)
}

/// Prints a table at once: the next one takes minutes.
fn shown(title: &str, figures: Vec<Figure>) -> Vec<Figure> {
    figures::print(title, &figures);
    figures
}
