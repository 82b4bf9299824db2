//! Gets two things ready before the crate compiles: a scratch database for the build-time check of every query, and
//! the folder of static files that is embedded into the binary.

use std::{
    env,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use sqlx::{
    ConnectOptions,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};

const PLOTLY: &str = "node_modules/plotly.js-cartesian-dist-min/plotly-cartesian.min.js";
const DATASTAR: &str = ".tools/assets/datastar.js";

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    tell(check_queries(&out), "migrations");
    println!("cargo::rustc-env=BREWBENCH_BUILT_AT_MS={}", built_at_ms());
    tell(gather_assets(&out.join("assets")), "static files");
}

/// A clock that is before this is wrong. Whoever builds the same twice says when: `SOURCE_DATE_EPOCH`, in seconds.
fn built_at_ms() -> u64 {
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let said = env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse::<u64>().ok());
    let now = || UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    said.unwrap_or_else(now) * 1_000
}

fn tell<T, E: std::fmt::Display>(result: Result<T, E>, of: &str) {
    if let Err(fault) = result {
        println!("cargo::error={of}: {fault}");
        std::process::exit(1);
    }
}

/// Applies the migrations to an empty database and points sqlx's macros at it.
#[tokio::main(flavor = "current_thread")]
async fn check_queries(out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=migrations");
    let file = out.join("schema.db");
    for part in ["schema.db", "schema.db-wal", "schema.db-shm"] {
        let _ = fs::remove_file(out.join(part));
    }
    let options =
        SqliteConnectOptions::new().filename(&file).create_if_missing(true).journal_mode(SqliteJournalMode::Delete);
    let mut connection = options.connect().await?;
    sqlx::migrate::Migrator::new(Path::new("migrations")).await?.run_direct(None, &mut connection, false).await?;
    println!("cargo::rustc-env=DATABASE_URL=sqlite://{}", file.display());
    Ok(())
}

/// Puts our own files and those of packages into one folder and has it embedded.
fn gather_assets(folder: &Path) -> io::Result<()> {
    let _ = fs::remove_dir_all(folder);
    let gathered = folder.join("static");
    fs::create_dir_all(&gathered)?;
    println!("cargo::rerun-if-changed=static");
    for entry in fs::read_dir("static")? {
        let entry = entry?;
        copy(&entry.path(), &gathered.join(entry.file_name()))?;
    }
    for (from, to) in [(PLOTLY, "plotly.js"), (DATASTAR, "datastar.js")] {
        println!("cargo::rerun-if-changed={from}");
        copy(Path::new(from), &gathered.join(to))
            .map_err(|fault| io::Error::other(format!("{from}: {fault}; `make assets` fetches it")))?;
    }
    for folder in [&gathered, folder] {
        File::open(folder)?.set_modified(UNIX_EPOCH)?;
    }
    memory_serve::load_directory(folder.to_str().ok_or_else(|| io::Error::other("the build folder is not UTF-8"))?);
    Ok(())
}

/// Copies a file with its age. The gathered folder is watched for changes by memory-serve's order; a file in it that is
/// younger than this script's start would have cargo build everything anew each time.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    File::options().write(true).open(to)?.set_modified(fs::metadata(from)?.modified()?)
}
