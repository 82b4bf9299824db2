//! `brewbench scenario convert`

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};
use brewbench_load::convert::{Converted, convert};
use brewbench_wire::scenario::REQUESTS;
use clap::Args;

use crate::{files, table::hanging};

/// The source, and where the list goes.
#[derive(Debug, Args)]
pub struct ConvertCommand {
    /// A URL, or a file: HAR, OpenAPI 3 (JSON or YAML), or a k6 script
    source: String,
    /// The folder to write to; must not exist [default: the source's name without its extension]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

impl ConvertCommand {
    /// Writes the list and its files into a folder, and says what was left out.
    pub fn run(self) -> anyhow::Result<()> {
        let Self { source, out } = self;
        let is_url = source.starts_with("http://") || source.starts_with("https://");
        let text = if is_url { source.clone() } else { files::text(Path::new(&source))? };
        let converted = convert(&text, &source).map_err(|fault| anyhow!(fault))?;
        let folder = out.map_or_else(|| folder_of(&source, is_url), Ok)?;
        if folder.exists() {
            bail!("{} exists; name another folder with --out", folder.display());
        }
        write(&folder, &converted)?;
        for sentence in &converted.left_out {
            eprintln!("{}", hanging(&format!("- {sentence}"), 2));
        }
        println!("{}", next(&folder, &converted));
        Ok(())
    }
}

/// Returns the name of a file without its extension, or the host of a URL.
fn folder_of(source: &str, is_url: bool) -> anyhow::Result<PathBuf> {
    let url = is_url.then(|| source.parse::<reqwest::Url>()).transpose()?;
    let name = match &url {
        Some(url) => url.host_str().map(Path::new),
        None => Path::new(source).file_stem().map(Path::new),
    };
    Ok(name.context("name a folder with --out")?.to_owned())
}

fn write(folder: &Path, Converted { list, files, .. }: &Converted) -> anyhow::Result<()> {
    let all = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (name, bytes) in all.chain([(REQUESTS, list.as_bytes())]) {
        let path = folder.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Returns the command that adds the scenario.
fn next(folder: &Path, Converted { parameters, .. }: &Converted) -> String {
    let default = |(name, value): (&String, &Option<String>)| {
        format!(" --default '{name}={}'", value.as_deref().unwrap_or_default().replace('\'', r"'\''"))
    };
    let defaults: String = parameters.iter().map(default).collect();
    format!("wrote {0}/{REQUESTS}; add it with:\n  brewbench scenario new {0}{defaults}", folder.display())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn command(source: &Path, out: &Path) -> ConvertCommand {
        ConvertCommand { source: source.display().to_string(), out: Some(out.to_owned()) }
    }

    #[test]
    fn a_script_becomes_a_folder_that_is_never_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let (script, out) = (folder.path().join("a.js"), folder.path().join("list"));
        let text = "import http from 'k6/http'; export default function () { http.get(`${__ENV.BASE_URL}/a`); }";
        fs::write(&script, text).expect("written");
        command(&script, &out).run().expect("converted");
        let list = fs::read_to_string(out.join(REQUESTS)).expect("a list");
        assert!(list.contains("path = \"/a\""), "{list}");
        let fault = command(&script, &out).run().expect_err("it exists").to_string();
        assert!(fault.ends_with("list exists; name another folder with --out"), "{fault}");
        fs::write(&script, "no script").expect("written");
        let fault = command(&script, &folder.path().join("b")).run().expect_err("unknown").to_string();
        assert!(fault.contains("a.js: neither a URL"), "{fault}");
    }

    #[test]
    fn the_next_command_has_all_parameters() {
        let parameters = [("TOKEN".to_owned(), None), ("SIZE".to_owned(), Some("it's".to_owned()))].into();
        let converted =
            Converted { list: String::new(), files: BTreeMap::new(), parameters, base_url: None, left_out: Vec::new() };
        let line = r"brewbench scenario new shop --default 'SIZE=it'\''s' --default 'TOKEN='";
        assert!(next(Path::new("shop"), &converted).ends_with(line));
        assert_eq!(folder_of("https://example.org/a", true).expect("a host"), Path::new("example.org"));
        assert_eq!(folder_of("logs/shop.har", false).expect("a name"), Path::new("shop"));
    }
}
