//! `brewbench user …`

use anyhow::bail;
use brewbench::auth::{
    authority::EndingList,
    model::Role,
    users::{NewRole, UserInfo, UserList},
};
use brewbench_wire::now_ms;
use clap::Subcommand;
use reqwest::Method;

use super::table::{cut, left, plain, table};
use crate::{common::Common, connection::encoded};

/// Manage users.
#[derive(Debug, Subcommand)]
pub enum User {
    /// List users
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
    },
    /// Set the role of a user
    Role {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The user's name
        name: String,
        /// Role: viewer, member or admin
        role: Role,
        /// Skip the confirmation, even if links, tokens or webhooks end with the previous role
        #[arg(long)]
        yes: bool,
    },
    /// Delete a user with all passkeys, sessions, tokens and share links; runs are kept
    #[command(alias = "remove")]
    Delete {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The user's name
        name: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
}

impl User {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List { common } => common.show("api/v1/users", |list: &UserList| rows(&list.users)).await,
            Self::Role { common, name, role, yes } => {
                let client = common.connect()?.client;
                let path = format!("api/v1/users/{}", encoded(&name));
                if !yes {
                    let request = client.request(Method::GET, &format!("{path}/ends"));
                    let ends: EndingList = client.json(request.query(&[("role", role.as_str())])).await?;
                    if !ends.ends.is_empty() {
                        confirm(&format!("Set the role of {name} to {}", role.as_str()), &ends)?;
                    }
                }
                let ended: EndingList = client.json(client.request(Method::PUT, &path).json(&NewRole { role })).await?;
                eprintln!("{} is now {}", plain(&name), role.as_str());
                common.print(&ended, describe)
            }
            Self::Delete { common, name, yes } => {
                let client = common.connect()?.client;
                let path = format!("api/v1/users/{}", encoded(&name));
                if !yes {
                    confirm(&format!("Remove {name}"), &client.get(&format!("{path}/ends")).await?)?;
                }
                let ended: EndingList = client.json(client.request(Method::DELETE, &path)).await?;
                eprintln!("removed user {}", plain(&name));
                common.print(&ended, describe)
            }
        }
    }
}

/// Describes what ends, one line per kind.
fn describe(ended: &EndingList) -> String {
    ended.sentences().iter().flat_map(|sentence| [plain(sentence), "\n".to_owned()]).collect()
}

/// Shows what ends and asks for confirmation.
fn confirm(action: &str, ends: &EndingList) -> anyhow::Result<()> {
    eprint!("{}{}? [y/N] ", describe(ends), plain(action));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if !matches!(answer.trim(), "y" | "Y" | "yes") {
        bail!("not confirmed; nothing was changed");
    }
    Ok(())
}

fn rows(users: &[UserInfo]) -> String {
    if users.is_empty() {
        return "no users yet; `brewbench invite` creates a registration link\n".to_owned();
    }
    let head = ["name", "role", ">passkeys", ">last seen"];
    let row = |person: &UserInfo| {
        let seen = person.last_seen_at_ms.map_or("never".to_owned(), |at| format!("{} ago", left(now_ms() - at)));
        vec![cut(&person.name, 50), person.role.as_str().to_owned(), person.passkeys.to_string(), seen]
    };
    table(&head, users, row)
}
