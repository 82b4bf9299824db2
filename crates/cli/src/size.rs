//! `brewbench size …`

use brewbench::catalog::model::{MachineSize, SizeList, parse_memory, short_size, size_name};
use brewbench_wire::job::MAX_REPLICAS;
use clap::Subcommand;

use super::table::{cut, plain, table};
use crate::{common::Common, connection::encoded};

/// Manage machine sizes.
#[derive(Debug, Subcommand)]
pub enum Size {
    /// List machine sizes
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
    },
    /// Add a machine size
    #[command(alias = "add")]
    New {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// CPU cores, e.g. 2 or 0.5
        #[arg(long)]
        vcpus: f64,
        /// Memory without swap, e.g. 256MiB or 4GiB
        #[arg(long, value_parser = parse_memory)]
        memory: u64,
        /// Instances on Kubernetes that share the load, each with these cores and this memory
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MAX_REPLICAS.into()))]
        replicas: u32,
        /// Name of the size [default: like "2 vCPU / 4 GiB"]
        #[arg(long)]
        name: Option<String>,
    },
    /// Delete a machine size that no run uses
    #[command(alias = "remove")]
    Delete {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The size's name
        name: String,
    },
}

impl Size {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List { common } => common.show("api/v1/sizes", |list: &SizeList| rows(&list.sizes)).await,
            Self::New { common, vcpus, memory, replicas, name } => {
                let name = name.unwrap_or_else(|| size_name(vcpus, memory, replicas));
                let size = MachineSize { name, vcpus, memory_bytes: memory, replicas };
                let added: MachineSize = common.connect()?.client.post("api/v1/sizes", &size).await?;
                common.print(&added, |added| rows(std::slice::from_ref(added)))
            }
            Self::Delete { common, name } => {
                common.connect()?.client.delete(&format!("api/v1/sizes/{}", encoded(&name))).await?;
                eprintln!("removed size {}", plain(&name));
                Ok(())
            }
        }
    }
}

fn rows(sizes: &[MachineSize]) -> String {
    let head = ["name", "short", ">vCPUs", ">memory MiB", ">replicas"];
    let row = |size: &MachineSize| {
        let memory = super::table::thousands((size.memory_bytes / (1024 * 1024)) as f64);
        let short = short_size(size.vcpus, size.memory_bytes, size.replicas);
        vec![cut(&size.name, 40), short, size.vcpus.to_string(), memory, size.replicas.to_string()]
    };
    table(&head, sizes, row)
}
