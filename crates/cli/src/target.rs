//! `brewbench target …`

mod new;

use std::{path::PathBuf, process::ExitCode};

use brewbench::{
    catalog::{
        identity::describe_code,
        model::{Target as TargetData, TargetList},
    },
    fleet::targets::RemovedTargets,
};
use brewbench_agent::{
    connection::daemon::CGROUPS,
    doctor::{self, Finding, Rank},
};
use clap::Subcommand;
use reqwest::Method;

use super::{
    agent::format_findings,
    table::{cut, plain, table},
};
use crate::{common::Common, connection::encoded};

/// Manage targets.
#[derive(Debug, Subcommand)]
pub enum Target {
    /// List the targets that agents have offered
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
    },
    /// Write the manifest of a new target
    New(Box<new::New>),
    /// Start a target once without a server, and show what works. Exits with 1 if it cannot be measured
    Check {
        /// The manifest
        #[arg(value_name = "FILE")]
        manifest: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Where control groups are mounted
        #[arg(long, hide = true, default_value = CGROUPS)]
        cgroups: PathBuf,
        /// Socket of the container engine [default: the only one found on this machine]
        #[arg(long, value_name = "SOCKET", env = "BREWBENCH_CONTAINER_ENGINE")]
        container_engine: Option<PathBuf>,
    },
    /// Delete targets that no connected agent offers and no run uses
    #[command(alias = "remove")]
    Delete {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// Names of the targets
        #[arg(required_unless_present = "unused")]
        names: Vec<String>,
        /// Delete all unused targets
        #[arg(long, conflicts_with = "names")]
        unused: bool,
    },
}

impl Target {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Check { manifest, json, cgroups, container_engine } => {
                let findings = doctor::check_target(&manifest, &cgroups, container_engine.as_deref()).await;
                return print_findings(&findings, json);
            }
            Self::New(new) => new.run()?,
            Self::List { common } => list(&common).await?,
            Self::Delete { common, unused: true, .. } => {
                let client = common.connect()?.client;
                let removed: RemovedTargets = client.json(client.request(Method::DELETE, "api/v1/targets")).await?;
                let lines =
                    |all: &RemovedTargets| all.removed.iter().flat_map(|name| [plain(name), "\n".to_owned()]).collect();
                common.print(&removed, lines)?;
            }
            Self::Delete { common, names, .. } => {
                let client = common.connect()?.client;
                for name in names {
                    client.delete(&format!("api/v1/targets/{}", encoded(&name))).await?;
                    eprintln!("removed target {}", plain(&name));
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print_findings(findings: &[Finding], json: bool) -> anyhow::Result<ExitCode> {
    let is_bad = doctor::worst(findings) == Rank::Bad;
    if json {
        println!("{}", serde_json::to_string_pretty(findings)?);
    } else {
        let verdict = if is_bad { "this target cannot be measured yet" } else { "this target can be measured" };
        println!("{}{verdict}", format_findings(findings));
    }
    Ok(if is_bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Lists all targets, page by page.
async fn list(common: &Common) -> anyhow::Result<()> {
    let client = common.connect()?.client;
    let (mut targets, mut after) = (Vec::new(), String::new());
    loop {
        let request =
            client.request(Method::GET, "api/v1/targets").query(&[("after", after.as_str()), ("limit", "1000")]);
        let page: TargetList = client.json(request).await?;
        targets.extend(page.targets);
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    common.print(&TargetList { targets, next: None }, |list| {
        let row = |target: &TargetData| {
            let other = if target.has_other_code { ", changed" } else { "" };
            let identity = format!("{}{other}", cut(&describe_code(Some(&target.identity)), 32));
            let kind = target.kind.to_string();
            vec![cut(&target.name, 24), cut(&target.version, 12), kind, identity, target.description.clone()]
        };
        let head = ["name", "version", "kind", "identity", "description"];
        table(&head, &list.targets, row)
    })
}
