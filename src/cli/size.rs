//! `brewbench size …`

use clap::Subcommand;

use super::table::{Align, cut, plain, short_size, table};
use crate::{
    catalog::model::{MachineSize, SizeList, parse_memory, size_name},
    cli::{common::Common, connection::encoded},
};

/// Commands about machine sizes.
#[derive(Debug, Subcommand)]
pub enum Size {
    /// List the machine sizes
    List {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
    },
    /// Add a machine size
    Add {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// Cores; 0.5 is half of one
        #[arg(long)]
        vcpus: f64,
        /// Memory without swap, e.g. 256MiB or 4GiB
        #[arg(long, value_parser = parse_memory)]
        memory: u64,
        /// What to call it [default: e.g. "2 vCPU / 4 GiB"]
        #[arg(long)]
        name: Option<String>,
    },
    /// Remove a machine size that no run has had
    Remove {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// Its name
        name: String,
    },
}

impl Size {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List { common } => {
                let list: SizeList = common.connect()?.client.get("api/v1/sizes").await?;
                common.print(&list, |list| rows(&list.sizes))
            }
            Self::Add { common, vcpus, memory, name } => {
                let name = name.unwrap_or_else(|| size_name(vcpus, memory));
                let size = MachineSize { name, vcpus, memory_bytes: memory };
                let made: MachineSize = common.connect()?.client.post("api/v1/sizes", &size).await?;
                common.print(&made, |made| rows(std::slice::from_ref(made)))
            }
            Self::Remove { common, name } => {
                common.connect()?.client.delete(&format!("api/v1/sizes/{}", encoded(&name))).await?;
                eprintln!("the size {} is removed", plain(&name));
                Ok(())
            }
        }
    }
}

fn rows(sizes: &[MachineSize]) -> String {
    let head = [("name", Align::Left), ("short", Align::Left), ("vCPUs", Align::Right), ("memory MiB", Align::Right)];
    let row = |size: &MachineSize| {
        let memory = super::table::thousands((size.memory_bytes / (1024 * 1024)) as f64);
        vec![cut(&size.name, 40), short_size(size.vcpus, size.memory_bytes), size.vcpus.to_string(), memory]
    };
    table(&head, &sizes.iter().map(row).collect::<Vec<_>>())
}
