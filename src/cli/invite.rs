//! `brewbench invite`

use std::path::PathBuf;

use clap::Args;

use super::Common;
use crate::{
    auth::{Invite as Made, NewInvite, Role},
    owner,
};

/// Makes a one-time registration link.
#[derive(Debug, Args)]
pub struct Invite {
    #[command(flatten)]
    common: Common,
    /// What the invited person becomes: viewer, member or admin
    #[arg(long, default_value = "member")]
    role: Role,
    /// The server's data folder: its owner needs no login
    #[arg(long)]
    data: Option<PathBuf>,
}

impl Invite {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { common, role, data } = self;
        let made: Made = match data {
            Some(data) => owner::invite(&data, role).await?,
            None => common.connect()?.client.post("api/v1/invites", &NewInvite { role }).await?,
        };
        common.print(&made, |made| format!("{}\n", made.url))
    }
}
