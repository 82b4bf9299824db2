//! `brewbench preset …`

use clap::{Args, Subcommand};
use reqwest::Method;

use super::table::{Align, cut, left, plain, table, with_below};
use crate::{
    cli::{common::Common, connection::encoded, run::new::PlanFlags},
    experiments::presets::model::{Preset as Saved, PresetList, summary},
};

/// Manage saved presets for new runs.
#[derive(Debug, Subcommand)]
pub enum Preset {
    /// List saved presets; `run new --preset NAME` uses one
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
    },
    /// Save settings for new runs under a name, for all users
    Save(Box<Save>),
    /// Delete a preset; runs are kept
    Delete {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The preset's name
        name: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
}

/// Save a preset.
#[derive(Debug, Args)]
pub struct Save {
    #[command(flatten)]
    common: Common,
    /// The preset's name
    #[arg(value_name = "NAME")]
    preset: String,
    /// Replace your preset with this name
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    plan: PlanFlags,
}

impl Preset {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List { common } => {
                let list: PresetList = common.connect()?.client.get("api/v1/presets").await?;
                common.print(&list, |list| rows(&list.presets))
            }
            Self::Save(save) => {
                let Save { common, preset, replace, plan } = *save;
                let client = common.connect()?.client;
                let request = client.request(Method::PUT, &path(&preset)).query(&[("replace", replace)]);
                let saved: Saved = client.json(request.json(&plan.preset()?)).await?;
                common.print(&saved, |saved| rows(std::slice::from_ref(saved)))
            }
            Self::Delete { common, name, yes } => {
                if !yes {
                    confirm(&format!("Delete the preset {} for all users?", plain(&name)))?;
                }
                common.connect()?.client.delete(&path(&name)).await?;
                eprintln!("deleted preset {}", plain(&name));
                Ok(())
            }
        }
    }
}

fn confirm(question: &str) -> anyhow::Result<()> {
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    anyhow::ensure!(matches!(answer.trim(), "y" | "Y" | "yes"), "not confirmed; nothing was deleted");
    Ok(())
}

/// Returns the path of a preset in the API.
pub fn path(name: &str) -> String {
    format!("api/v1/presets/{}", encoded(name))
}

fn rows(presets: &[Saved]) -> String {
    if presets.is_empty() {
        return "no presets yet; `brewbench preset save NAME --vus 10 --duration 10s` saves one\n".to_owned();
    }
    let head = [("name", Align::Left), ("targets", Align::Left), ("saved by", Align::Left), ("saved", Align::Right)];
    let now = brewbench_agent::wire::now_ms();
    let row = |saved: &Saved| {
        let targets = if saved.plan.targets.is_empty() { "any".to_owned() } else { saved.plan.targets.join(", ") };
        let age = format!("{} ago", left(now - saved.saved_at_ms));
        vec![cut(&saved.name, 24), cut(&targets, 26), cut(&saved.created_by, 14), age]
    };
    let rows = table(&head, &presets.iter().map(row).collect::<Vec<_>>());
    with_below(&rows, presets.iter().map(|saved| plain(&summary(&saved.plan).replace('\u{a0}', " "))))
}
