//! `brewbench invite …`

use std::path::PathBuf;

use brewbench::{
    app::local_admin,
    auth::{
        model::Role,
        users::{Invite as CreatedInvite, InviteList, NewInvite, OpenInvite},
    },
};
use brewbench_wire::now_ms;
use clap::{Args, Subcommand};

use super::table::{cut, left, table};
use crate::common::Common;

/// Create a one-time registration link; or list and withdraw unused ones.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Invite {
    #[command(subcommand)]
    command: Option<InviteCommand>,
    #[command(flatten)]
    common: Common,
    /// Role of the new user: viewer, member or admin; the first user of a server is an administrator
    #[arg(long, default_value = "member")]
    role: Role,
    /// Create the link for an existing user who lost a passkey, instead of a new user
    #[arg(long = "for", value_name = "NAME", conflicts_with = "role")]
    user: Option<String>,
    /// Delete that user's previous passkeys and sessions when the link is used
    #[arg(long, requires = "user")]
    reset_passkeys: bool,
    /// The data folder of a server on this machine; makes a login unnecessary
    #[arg(long)]
    data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum InviteCommand {
    /// List unused links
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Withdraw an unused link
    #[command(alias = "withdraw")]
    Delete {
        #[command(flatten)]
        common: Common,
        /// Id of the invitation
        id: i64,
    },
}

impl Invite {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { command, common, role, user, reset_passkeys, data } = self;
        match command {
            Some(InviteCommand::List { common }) => {
                common.show("api/v1/invites", |list: &InviteList| rows(&list.invites)).await
            }
            Some(InviteCommand::Delete { common, id }) => {
                common.connect()?.client.delete(&format!("api/v1/invites/{id}")).await?;
                eprintln!("withdrew invitation {id}");
                Ok(())
            }
            None => {
                let request = NewInvite { role, user, resets_passkeys: reset_passkeys };
                let role = request.role;
                let created: CreatedInvite = match data {
                    Some(data) => local_admin::invite(&data, &request).await?,
                    None => common.connect()?.client.post("api/v1/invites", &request).await?,
                };
                if created.user.is_none() && created.role != role {
                    eprintln!("no users yet: the first one is an administrator");
                }
                common.print(&created, |created| format!("{}\n", created.url))
            }
        }
    }
}

fn rows(invites: &[OpenInvite]) -> String {
    if invites.is_empty() {
        return "no unused invitations; `brewbench invite` creates one\n".to_owned();
    }
    let head = [">id", "for", "role", "created by", ">expires in"];
    let row = |invite: &OpenInvite| {
        vec![
            invite.id.to_string(),
            cut(invite.user.as_deref().unwrap_or("new user"), 30),
            invite.role.clone(),
            cut(invite.created_by.as_deref().unwrap_or("–"), 30),
            left(invite.expires_at_ms - now_ms()),
        ]
    };
    table(&head, invites, row)
}
