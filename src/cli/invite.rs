//! `brewbench invite …`

use std::path::PathBuf;

use brewbench_agent::wire::now_ms;
use clap::{Args, Subcommand};

use super::table::{Align, cut, left, table};
use crate::{
    app::local_admin,
    auth::{
        model::Role,
        people::{Invite as Made, InviteList, NewInvite, OpenInvite},
    },
    cli::common::Common,
};

/// Makes a one-time registration link; or lists and withdraws those that can still be used.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Invite {
    #[command(subcommand)]
    act: Option<Act>,
    #[command(flatten)]
    common: Common,
    /// What somebody new becomes: viewer, member or admin
    #[arg(long, default_value = "member")]
    role: Role,
    /// Somebody who lost a passkey: gives that person a new one and leaves the role as it is
    #[arg(long = "for", value_name = "NAME", conflicts_with = "role")]
    person: Option<String>,
    /// End that person's passkeys and sessions of before when the link is used
    #[arg(long, requires = "person")]
    end_passkeys: bool,
    /// The server's data folder: its owner needs no login
    #[arg(long)]
    data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// List the links that can still be used
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Withdraw a link: it opens nothing any more
    Withdraw {
        #[command(flatten)]
        common: Common,
        /// Its number in the list
        id: i64,
    },
}

impl Invite {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { act, common, role, person, end_passkeys, data } = self;
        match act {
            Some(Act::List { common }) => {
                let list: InviteList = common.connect()?.client.get("api/v1/invites").await?;
                common.print(&list, |list| rows(&list.invites))
            }
            Some(Act::Withdraw { common, id }) => {
                common.connect()?.client.delete(&format!("api/v1/invites/{id}")).await?;
                eprintln!("invitation {id} is withdrawn");
                Ok(())
            }
            None => {
                let asked = NewInvite { role, person, ends_passkeys: end_passkeys };
                let made: Made = match data {
                    Some(data) => local_admin::invite(&data, &asked).await?,
                    None => common.connect()?.client.post("api/v1/invites", &asked).await?,
                };
                common.print(&made, |made| format!("{}\n", made.url))
            }
        }
    }
}

fn rows(invites: &[OpenInvite]) -> String {
    if invites.is_empty() {
        return "no invitation is open; `brewbench invite` makes one\n".to_owned();
    }
    let head = [
        ("number", Align::Right),
        ("for", Align::Left),
        ("role", Align::Left),
        ("made by", Align::Left),
        ("ends in", Align::Right),
    ];
    let row = |invite: &OpenInvite| {
        vec![
            invite.id.to_string(),
            cut(invite.person.as_deref().unwrap_or("somebody new"), 30),
            invite.role.clone(),
            cut(invite.created_by.as_deref().unwrap_or("–"), 30),
            left(invite.expires_at_ms - now_ms()),
        ]
    };
    table(&head, &invites.iter().map(row).collect::<Vec<_>>())
}
