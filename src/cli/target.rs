//! `brewbench target …`

use clap::Subcommand;

use super::{
    Common,
    table::{Align, cut, table},
};
use crate::catalog::TargetList;

/// Commands about targets.
#[derive(Debug, Subcommand)]
pub enum Target {
    /// List the targets that agents offered
    List {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
    },
}

impl Target {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self::List { common } = self;
        let list: TargetList = common.connect()?.client.get("api/v1/targets").await?;
        common.print(&list, |list| {
            let row = |target: &crate::catalog::Target| {
                let digest = target.sha256.chars().take(12).collect();
                vec![cut(&target.name, 24), cut(&target.version, 12), digest, cut(&target.description, 28)]
            };
            let head = [
                ("name", Align::Left),
                ("version", Align::Left),
                ("sha256", Align::Left),
                ("description", Align::Left),
            ];
            table(&head, &list.targets.iter().map(row).collect::<Vec<_>>())
        })
    }
}
