//! Collects the files of a scenario: of a folder, of an archive, or of a script and what it needs.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail, ensure};
use brewbench_load::request_list;
use brewbench_wire::scenario::{
    Content, MAX_BYTES, MAX_FILES, REMOTE, REQUESTS, entry, imports,
    unpack::{self, Unpacked},
};
use tokio::process::Command;

use crate::files;

/// The files of a scenario, and the path of its script among them.
#[derive(Debug)]
pub struct Collected {
    pub entry: String,
    pub files: BTreeMap<String, Content>,
}

/// Collects a folder, an archive or a script. `others` are files next to the script.
pub async fn collect(path: &Path, others: &[PathBuf], defaults: &[(String, String)]) -> anyhow::Result<Collected> {
    let mut collected = if path.is_dir() { folder(path, defaults).await? } else { script(path, defaults).await? };
    let above = path.parent().filter(|_| !path.is_dir()).unwrap_or(path);
    for other in others {
        let inside = other.strip_prefix(above).ok();
        let name = inside.or_else(|| other.file_name().map(Path::new)).unwrap_or(other);
        let name = files::utf8(name)?.to_owned();
        if collected.files.insert(name.clone(), files::bytes(other)?.into()).is_some() {
            bail!(
                "{} and another file are both {name:?}; name the folder of the script, or rename one",
                other.display()
            );
        }
    }
    Ok(collected)
}

/// Collects everything below a folder but hidden files and packages, and modules from the network.
async fn folder(path: &Path, defaults: &[(String, String)]) -> anyhow::Result<Collected> {
    let mut all = BTreeMap::new();
    let mut bytes = 0;
    files::walk(path, path, &mut |name, file| {
        let content = files::bytes(file)?;
        bytes += content.len();
        ensure!(
            bytes <= MAX_BYTES,
            "{} has more than {} MiB; name the script, or a folder below",
            path.display(),
            MAX_BYTES >> 20
        );
        all.insert(name, Content::from(content));
        ensure!(
            all.len() <= MAX_FILES,
            "{} has more than {MAX_FILES} files; name the script, or a folder below",
            path.display()
        );
        Ok(())
    })?;
    let entry = entry::find(&all)
        .map_err(|fault| anyhow!("{}: {fault}: brewbench scenario new {}/FILE", path.display(), path.display()))?;
    if all.values().filter_map(Content::text).any(imports::has_remote)
        && let Some(packed) = pack(&path.join(&entry), defaults).await
    {
        all.extend(packed?.files.into_iter().filter(|(name, _)| name.starts_with(REMOTE)));
    }
    Ok(Collected { entry, files: all })
}

/// Collects a script with what k6 needs for it; the script alone if there is no k6.
async fn script(path: &Path, defaults: &[(String, String)]) -> anyhow::Result<Collected> {
    let bytes = files::bytes(path)?;
    if unpack::is_archive(&bytes) {
        let unpacked = unpack::unpack(&bytes).map_err(|fault| anyhow!("{}: {fault}", path.display()))?;
        let Unpacked { entry, files } = unpacked;
        let entry = entry.map_or_else(|| entry::find(&files), Ok);
        return Ok(Collected { entry: entry.map_err(|fault| anyhow!("{}: {fault}", path.display()))?, files });
    }
    if path.extension().is_some_and(|ending| ending == "toml") {
        return list(path, bytes, defaults);
    }
    if let Some(packed) = pack(path, defaults).await {
        let Unpacked { entry, files } = packed?;
        return Ok(Collected { entry: entry.context("k6 archive names no script")?, files });
    }
    let name = files::utf8(path.file_name().map_or(path, Path::new))?.to_owned();
    Ok(Collected { files: BTreeMap::from([(name.clone(), bytes.into())]), entry: name })
}

/// Collects a request list with the files that it names.
fn list(path: &Path, bytes: Vec<u8>, defaults: &[(String, String)]) -> anyhow::Result<Collected> {
    let text = String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8", path.display()))?;
    let (folder, named) = (path.parent().unwrap_or(path), RefCell::new(BTreeMap::new()));
    let file = |name: &str| {
        let bytes = fs::read(folder.join(name)).map_err(|error| error.to_string())?;
        named.borrow_mut().insert(name.to_owned(), Content::from(bytes.clone()));
        Ok(bytes)
    };
    let value = |name: &str| defaults.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
    let filled = request_list::fill(&text, value).map_err(|fault| anyhow!("{}: {fault}", path.display()))?;
    request_list::read(&filled, file).map_err(|fault| anyhow!("{}: {fault}", path.display()))?;
    let mut files = named.into_inner();
    files.insert(REQUESTS.to_owned(), text.into());
    Ok(Collected { entry: REQUESTS.to_owned(), files })
}

/// Has k6 archive a script with all that it imports and opens; none if there is no k6 in `PATH`. This executes the
/// script's top-level code, as `k6 run` does.
async fn pack(script: &Path, defaults: &[(String, String)]) -> Option<anyhow::Result<Unpacked>> {
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => return Some(Err(error.into())),
    };
    let archive = folder.path().join("archive.tar");
    let mut k6 = Command::new("k6");
    k6.args(["archive", "--no-color", "--address", "", "--exclude-env-vars", "--archive-out"]).arg(&archive);
    k6.args(["--env", "BASE_URL=http://127.0.0.1:80"]);
    k6.args(defaults.iter().flat_map(|(name, value)| ["--env".to_owned(), format!("{name}={value}")]));
    k6.arg(script).env("K6_AUTO_EXTENSION_RESOLUTION", "false");
    let output = k6.output().await.ok()?;
    let read = || {
        ensure!(output.status.success(), "k6 archive: {}", fault(&String::from_utf8_lossy(&output.stderr)));
        let bytes = fs::read(&archive).context("k6 archive wrote no archive")?;
        unpack::unpack(&bytes).map_err(|fault| anyhow!("the archive of k6: {fault}"))
    };
    Some(read().with_context(|| format!("cannot read {}", script.display())))
}

/// Returns the message of k6's last error.
fn fault(log: &str) -> String {
    let last = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
    let message = last.split_once(" msg=").and_then(|(_, rest)| brewbench_wire::sanitize::unquoted(rest));
    brewbench_wire::sanitize::plain(&message.unwrap_or_else(|| last.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, files: &[(&str, &[u8])]) {
        for (path, bytes) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            fs::write(path, bytes).expect("written");
        }
    }

    #[tokio::test]
    async fn a_folder_is_collected_without_hidden_files_and_packages() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = b"import './lib/a.ts'; export default function () {}";
        write(
            folder.path(),
            &[("main.ts", script), ("lib/a.ts", b"1"), ("a.jpg", b"\xff"), (".git/x", b""), ("node_modules/y.js", b"")],
        );
        let Collected { entry, files } = collect(folder.path(), &[], &[]).await.expect("collected");
        assert_eq!(
            (entry.as_str(), files.keys().map(String::as_str).collect::<Vec<_>>()),
            ("main.ts", vec!["a.jpg", "lib/a.ts", "main.ts"])
        );
        write(folder.path(), &[("main.ts", b""), ("one.js", b"export default 1"), ("two.js", b"export default 2")]);
        let fault = collect(folder.path(), &[], &[]).await.expect_err("two scripts").to_string();
        assert!(fault.contains("several scripts: one.js, two.js; say which: brewbench scenario new /"), "{fault}");
    }

    #[tokio::test]
    async fn other_files_keep_their_place_beside_the_script() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), &[("x.js", b"export default function () {}"), ("data/a.csv", b"1"), ("a.csv", b"2")]);
        let other = |path: &str| folder.path().join(path);
        let collected = collect(&other("x.js"), &[other("data/a.csv"), other("a.csv")], &[]).await.expect("collected");
        assert_eq!(collected.files.into_keys().collect::<Vec<_>>(), ["a.csv", "data/a.csv", "x.js"]);
        let outside = tempfile::tempdir().expect("a folder");
        write(outside.path(), &[("a.csv", b"")]);
        let same = [other("a.csv"), outside.path().join("a.csv")];
        let fault = collect(&other("x.js"), &same, &[]).await.expect_err("twice").to_string();
        assert!(fault.contains("are both \"a.csv\""), "{fault}");
    }
}
