//! `brewbench scenario …`

mod collect;
mod convert;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use brewbench::{
    catalog::model::{Revision, RevisionList, ScenarioInfo, ScenarioList, ScenarioText, ScriptCheck, address_note},
    web::time_ago::exact,
};
use brewbench_wire::scenario::Content;
use clap::Subcommand;
use collect::{Collected, collect};
use convert::ConvertCommand;

use super::{
    limits::LimitsCommand,
    table::{cut, plain, table},
};
use crate::{common::Common, connection::encoded};

/// Manage scenarios.
#[derive(Debug, Subcommand)]
pub enum Scenario {
    /// List scenarios
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
    },
    /// Show a scenario's parameters, files and script
    Show {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The scenario's name
        name: String,
        /// Hash of the revision [default: the latest]
        #[arg(long, value_name = "SHA256")]
        revision: Option<String>,
    },
    /// List the revisions of a scenario, latest first
    Revisions {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The scenario's name
        name: String,
    },
    /// Add a scenario, or a new revision of an existing one
    #[command(alias = "add")]
    New {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// A folder with a k6 script and its files, a script, a request list (TOML), or an archive (`k6 archive`, or the
        /// tar or zip of a folder). With k6 in PATH, what a script imports and opens is found. The script reads the target's URL from
        /// `__ENV.BASE_URL`
        path: PathBuf,
        /// Name of the scenario [default: that of the file or folder, without extension]
        #[arg(long)]
        name: Option<String>,
        /// Another file next to the script; repeatable
        #[arg(long = "file")]
        files: Vec<PathBuf>,
        /// A parameter with its default; repeatable
        #[arg(long = "default", value_name = "NAME=VALUE", value_parser = crate::common::pair)]
        defaults: Vec<(String, String)>,
    },
    /// Make a request list from a URL, a HAR file, an OpenAPI description or a k6 script
    Convert(ConvertCommand),
    /// Check a scenario with the k6 of an idle agent
    Check {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The scenario's name
        name: String,
        /// Hash of the revision [default: the latest]
        #[arg(long, value_name = "SHA256")]
        revision: Option<String>,
    },
    /// Show or set the limits that make runs of a scenario suspect or invalid
    Limits(LimitsCommand),
}

impl Scenario {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List { common } => common.show("api/v1/scenarios", |list: &ScenarioList| rows(&list.scenarios)).await,
            Self::Show { common, name, revision } => {
                let client = common.connect()?.client;
                let request = client.request(reqwest::Method::GET, &format!("api/v1/scenarios/{}", encoded(&name)));
                let query: Vec<_> = revision.iter().map(|sha256| ("revision", sha256)).collect();
                let text: ScenarioText = client.json(request.query(&query)).await?;
                common.print(&text, show)
            }
            Self::Revisions { common, name } => {
                let path = format!("api/v1/scenarios/{}/revisions", encoded(&name));
                common.show(&path, revisions).await
            }
            Self::New { common, path, name, files, defaults } => {
                let Collected { entry, files } = collect(&path, &files, &defaults).await?;
                let name = match name {
                    Some(name) => name,
                    None => name_of(&path)?,
                };
                let defaults = defaults.into_iter().collect();
                let text = ScenarioText { name, entry, script: None, files, defaults };
                let added: ScenarioInfo = common.connect()?.client.post("api/v1/scenarios", &text).await?;
                common.print(&added, |added| rows(std::slice::from_ref(added)))
            }
            Self::Convert(convert) => convert.run(),
            Self::Limits(limits) => limits.run().await,
            Self::Check { common, name, revision } => {
                let client = common.connect()?.client;
                let path = format!("api/v1/scenarios/{}/check", encoded(&name));
                let query: Vec<_> = revision.iter().map(|sha256| ("revision", sha256)).collect();
                let request = client.request(reqwest::Method::POST, &path).query(&query);
                let revision: Revision = client.json(request).await?;
                common.print(&revision, |revision| {
                    let note = revision.addresses.as_ref().map(|all| format!("{}\n", plain(&address_note(all))));
                    let note = note.unwrap_or_default();
                    format!("{}\n{note}", check_text(revision.check.as_ref()))
                })?;
                match revision.check.and_then(|check| check.fault) {
                    Some(_) => bail!("k6 cannot run this scenario"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Returns the name of a file or folder without its extension.
fn name_of(path: &Path) -> anyhow::Result<String> {
    let path = path.canonicalize().with_context(|| format!("cannot read {}", path.display()))?;
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    Ok(name.unwrap_or_default().to_string_lossy().into_owned())
}

fn rows(scenarios: &[ScenarioInfo]) -> String {
    let head = ["name", "sha256", ">revisions", "checked"];
    let row = |scenario: &ScenarioInfo| {
        let digest = scenario.sha256.chars().take(12).collect();
        vec![cut(&scenario.name, 50), digest, scenario.revisions.to_string(), check_text(scenario.check.as_ref())]
    };
    let notes = scenarios.iter().filter_map(|one| {
        let note = plain(&address_note(one.addresses.as_ref()?));
        Some(format!("{}: {note}\n", cut(&plain(&one.name), 50)))
    });
    let hints = scenarios.iter().flat_map(|one| {
        let hints = one.check.iter().flat_map(|check| &check.report.hints);
        hints.map(|hint| format!("{}: {}\n", cut(&plain(&one.name), 50), plain(hint)))
    });
    table(&head, scenarios, row) + &notes.chain(hints).collect::<String>()
}

/// Summarizes the result of a check.
fn check_text(check: Option<&ScriptCheck>) -> String {
    match check {
        None => "not checked".to_owned(),
        Some(ScriptCheck { agent, engine, fault: None, .. }) => {
            format!("by {} with {}", plain(agent), plain(&engine.to_string()))
        }
        Some(ScriptCheck { fault: Some(fault), .. }) => cut(&plain(fault), 100),
    }
}

fn revisions(list: &RevisionList) -> String {
    let row = |revision: &Revision| {
        vec![revision.sha256.clone(), exact(Some(revision.created_at_ms)), check_text(revision.check.as_ref())]
    };
    let head = ["sha256", "stored", "checked"];
    table(&head, &list.revisions, row)
}

fn show(text: &ScenarioText) -> String {
    let parameters = text.defaults.iter().map(|(name, value)| format!("parameter {name}={}\n", plain(value)));
    let others = text.files.iter().filter(|(path, _)| **path != text.entry);
    let files = others.map(|(path, file)| format!("file {} ({} bytes)\n", plain(path), file.bytes().len()));
    let script = text.files.get(&text.entry).and_then(Content::text).unwrap_or_default();
    let script = script.lines().map(|line| plain(&line.replace('\t', "    ")) + "\n");
    let head = format!("\n{}:\n", plain(&text.entry));
    parameters.chain(files).chain([head]).chain(script).collect()
}
