//! `brewbench scenario …`

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::bail;
use brewbench::{
    catalog::model::{Revision, RevisionList, ScenarioInfo, ScenarioList, ScenarioText, ScriptCheck},
    web::time_ago::exact,
};
use clap::Subcommand;

use super::{
    files,
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
        /// The k6 script; it reads the target's URL from `__ENV.BASE_URL`
        script: PathBuf,
        /// Name of the scenario [default: file name without extension]
        #[arg(long)]
        name: Option<String>,
        /// A data file that the script opens; repeatable
        #[arg(long = "file")]
        files: Vec<PathBuf>,
        /// A parameter with its default; repeatable
        #[arg(long = "default", value_name = "NAME=VALUE", value_parser = crate::common::pair)]
        defaults: Vec<(String, String)>,
    },
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
            Self::New { common, script, name, files, defaults } => {
                let stem = || script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let text = ScenarioText {
                    name: name.unwrap_or_else(stem),
                    script: files::text(&script)?,
                    files: by_name(&files)?,
                    defaults: defaults.into_iter().collect(),
                };
                let added: ScenarioInfo = common.connect()?.client.post("api/v1/scenarios", &text).await?;
                common.print(&added, |added| rows(std::slice::from_ref(added)))
            }
            Self::Limits(limits) => limits.run().await,
            Self::Check { common, name, revision } => {
                let client = common.connect()?.client;
                let path = format!("api/v1/scenarios/{}/check", encoded(&name));
                let query: Vec<_> = revision.iter().map(|sha256| ("revision", sha256)).collect();
                let request = client.request(reqwest::Method::POST, &path).query(&query);
                let revision: Revision = client.json(request).await?;
                common.print(&revision, |revision| {
                    let note = revision.note.as_ref().map_or_else(String::new, |note| format!("{note}\n"));
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

/// Reads files by their names without folders, which must differ.
fn by_name(paths: &[PathBuf]) -> anyhow::Result<BTreeMap<String, String>> {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut all = BTreeMap::new();
    for (place, path) in paths.iter().enumerate() {
        if let Some(other) = paths[..place].iter().find(|other| name(other) == name(path)) {
            bail!(
                "{} and {} are both called {:?}; a script opens its files by name, so rename one of them",
                other.display(),
                path.display(),
                name(path)
            );
        }
        all.insert(name(path), files::text(path)?);
    }
    Ok(all)
}

fn rows(scenarios: &[ScenarioInfo]) -> String {
    let head = ["name", "sha256", ">revisions", "checked"];
    let row = |scenario: &ScenarioInfo| {
        let digest = scenario.sha256.chars().take(12).collect();
        vec![cut(&scenario.name, 50), digest, scenario.revisions.to_string(), check_text(scenario.check.as_ref())]
    };
    let notes =
        scenarios.iter().filter_map(|one| Some(format!("{}: {}\n", cut(&plain(&one.name), 50), one.note.as_ref()?)));
    table(&head, scenarios, row) + &notes.collect::<String>()
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
    let files = text.files.iter().map(|(name, text)| format!("file {} ({} bytes)\n", plain(name), text.len()));
    let script = text.script.lines().map(|line| plain(&line.replace('\t', "    ")) + "\n");
    parameters.chain(files).chain(["\n".to_owned()]).chain(script).collect()
}
