//! Prepares what the crate embeds or needs to compile: a scratch database for the build-time check of every query, the
//! folder of static files, and the documentation.

use std::{
    env,
    fmt::Write,
    fs, io,
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
    check(check_queries(&out), "migrations");
    println!("cargo::rustc-env=BREWBENCH_BUILT_AT_MS={}", built_at_ms());
    check(embed_assets(&out), "static files");
    check(embed_docs(&out), "documentation");
}

/// The time of the build: a clock that shows an earlier time is wrong. `SOURCE_DATE_EPOCH`, in seconds, makes builds
/// reproducible.
fn built_at_ms() -> u64 {
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let fixed = env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse::<u64>().ok());
    let now = || UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    fixed.unwrap_or_else(now) * 1_000
}

/// Ends the build if a step failed.
fn check<T, E: std::fmt::Display>(result: Result<T, E>, step: &str) {
    if let Err(fault) = result {
        println!("cargo::error={step}: {fault}");
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

/// Writes a table of our own files and those of packages for `src/web/assets.rs`: name below `/static/`, and content.
fn embed_assets(out: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    for (folder, prefix) in [("static", ""), ("docs/images", "images/")] {
        println!("cargo::rerun-if-changed={folder}");
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            files.push((format!("{prefix}{name}"), fs::canonicalize(&path)?.display().to_string()));
        }
    }
    for (from, to) in [(PLOTLY, "plotly.js"), (DATASTAR, "datastar.js")] {
        println!("cargo::rerun-if-changed={from}");
        let path = fs::canonicalize(from)
            .map_err(|fault| io::Error::other(format!("{from}: {fault}; `make assets` fetches it")))?;
        files.push((to.to_owned(), path.display().to_string()));
    }
    files.sort();
    let mut table = String::from("&[\n");
    for (name, path) in files {
        let _ = writeln!(table, "({name:?}, include_bytes!({path:?})),");
    }
    fs::write(out.join("assets.rs"), table + "]")
}

/// Writes a table of the documentation's files for `src/docs/book.rs`: path without `.md`, and text.
fn embed_docs(out: &Path) -> io::Result<()> {
    println!("cargo::rerun-if-changed=docs");
    let mut files = Vec::new();
    find_markdown(Path::new("docs"), &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix("docs").map_err(io::Error::other)?.with_extension("");
        let _ = writeln!(table, "(\"{}\", {:?}),", name.display(), fs::read_to_string(&file)?);
    }
    fs::write(out.join("docs.rs"), table + "]")
}

fn find_markdown(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find_markdown(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "md") {
            files.push(path);
        }
    }
    Ok(())
}
