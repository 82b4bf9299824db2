//! `brewbench user …`

use anyhow::bail;
use brewbench_agent::wire::now_ms;
use clap::Subcommand;
use reqwest::Method;

use super::table::{Align, cut, left, plain, table};
use crate::{
    auth::{
        authority::EndingList,
        model::Role,
        people::{NewRole, Person, PersonList},
    },
    cli::{common::Common, connection::encoded},
};

/// Commands about people.
#[derive(Debug, Subcommand)]
pub enum User {
    /// List the people
    List {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
    },
    /// Make somebody a viewer, a member or an administrator
    Role {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The person's name
        name: String,
        /// viewer, member or admin
        role: Role,
        /// Do not ask, whatever ends with the role of before
        #[arg(long)]
        yes: bool,
    },
    /// Remove a person with passkeys, sessions, tokens and what was made for others; runs stay
    Remove {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The person's name
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

impl User {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List { common } => {
                let list: PersonList = common.connect()?.client.get("api/v1/people").await?;
                common.print(&list, |list| rows(&list.people))
            }
            Self::Role { common, name, role, yes } => {
                let client = common.connect()?.client;
                let path = format!("api/v1/people/{}", encoded(&name));
                if !yes {
                    let request = client.request(Method::GET, &format!("{path}/ends"));
                    let ends: EndingList = client.json(request.query(&[("role", role.as_str())])).await?;
                    if !ends.ends.is_empty() {
                        ask(&format!("Make {name} {}", role.as_str()), &ends)?;
                    }
                }
                let ended: EndingList = client.json(client.request(Method::PUT, &path).json(&NewRole { role })).await?;
                eprintln!("{name}: {} from now on", role.as_str());
                common.print(&ended, told)
            }
            Self::Remove { common, name, yes } => {
                let client = common.connect()?.client;
                let path = format!("api/v1/people/{}", encoded(&name));
                if !yes {
                    ask(&format!("Remove {name}"), &client.get(&format!("{path}/ends")).await?)?;
                }
                let ended: EndingList = client.json(client.request(Method::DELETE, &path)).await?;
                eprintln!("{name} is removed");
                common.print(&ended, told)
            }
        }
    }
}

/// What ended, a line for each kind.
fn told(ended: &EndingList) -> String {
    ended.sentences().iter().flat_map(|sentence| [plain(sentence), "\n".to_owned()]).collect()
}

/// Shows what ends and goes on only with a yes.
fn ask(deed: &str, ends: &EndingList) -> anyhow::Result<()> {
    eprint!("{}{}? [y/N] ", told(ends), plain(deed));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if !matches!(answer.trim(), "y" | "Y" | "yes") {
        bail!("nothing was changed");
    }
    Ok(())
}

fn rows(people: &[Person]) -> String {
    if people.is_empty() {
        return "nobody has registered yet; `brewbench invite` makes a link\n".to_owned();
    }
    let head = [("name", Align::Left), ("role", Align::Left), ("passkeys", Align::Right), ("last seen", Align::Right)];
    let row = |person: &Person| {
        let seen = person.last_seen_at_ms.map_or("never".to_owned(), |at| format!("{} ago", left(now_ms() - at)));
        vec![cut(&person.name, 50), person.role.as_str().to_owned(), person.passkeys.to_string(), seen]
    };
    table(&head, &people.iter().map(row).collect::<Vec<_>>())
}
