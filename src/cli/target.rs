//! `brewbench target …`

use clap::Subcommand;
use reqwest::Method;

use super::table::{Align, cut, plain, table};
use crate::{
    catalog::model::{Target as TargetData, TargetList},
    cli::{common::Common, connection::encoded},
    fleet::targets::RemovedTargets,
};

/// Commands about targets.
#[derive(Debug, Subcommand)]
pub enum Target {
    /// List the targets that agents offered
    List {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
    },
    /// Remove targets that no connected agent offers and no run uses
    Remove {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// Their names
        #[arg(required_unless_present = "unused")]
        names: Vec<String>,
        /// All of them
        #[arg(long, conflicts_with = "names")]
        unused: bool,
    },
}

impl Target {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List { common } => list(&common).await,
            Self::Remove { common, unused: true, .. } => {
                let client = common.connect()?.client;
                let removed: RemovedTargets = client.json(client.request(Method::DELETE, "api/v1/targets")).await?;
                common
                    .print(&removed, |all| all.removed.iter().flat_map(|name| [plain(name), "\n".to_owned()]).collect())
            }
            Self::Remove { common, names, .. } => {
                let client = common.connect()?.client;
                for name in names {
                    client.delete(&format!("api/v1/targets/{}", encoded(&name))).await?;
                    eprintln!("the target {} is removed", plain(&name));
                }
                Ok(())
            }
        }
    }
}

/// All of them, page by page.
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
            let digest = target.sha256.chars().take(12).collect();
            vec![cut(&target.name, 24), cut(&target.version, 12), digest, cut(&target.description, 28)]
        };
        let head =
            [("name", Align::Left), ("version", Align::Left), ("sha256", Align::Left), ("description", Align::Left)];
        table(&head, &list.targets.iter().map(row).collect::<Vec<_>>())
    })
}
