//! `brewbench user …`

use brewbench_agent::wire::now_ms;
use clap::Subcommand;
use reqwest::Method;

use super::{
    Common,
    scenario::encoded,
    table::{Align, cut, left, table},
};
use crate::auth::{NewRole, Person, PersonList, Role};

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
    },
    /// Remove a person: passkeys, sessions and tokens end at once, runs stay
    Remove {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The person's name
        name: String,
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
            Self::Role { common, name, role } => {
                let client = common.connect()?.client;
                let path = format!("api/v1/people/{}", encoded(&name));
                client.send(client.request(Method::PUT, &path).json(&NewRole { role })).await?;
                eprintln!("{name}: {} from now on", role.as_str());
                Ok(())
            }
            Self::Remove { common, name } => {
                common.connect()?.client.delete(&format!("api/v1/people/{}", encoded(&name))).await?;
                eprintln!("{name} is removed");
                Ok(())
            }
        }
    }
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
