//! People and invitations, for administrators.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Form,
    extract::{Path, State},
    response::{IntoResponse, Redirect, Response},
};
use brewbench_agent::wire::now_ms;
use serde::Deserialize;

use crate::{
    app::{
        error::{Error, Input, Result},
        state::AppState,
    },
    auth::{
        api::people as api,
        caller::{Admin, Caller},
        model::Role,
        pages::parts::{Once, Places, shell},
        people::{Invite, NewInvite, NewRole, OpenInvite, Person},
        store::invites,
    },
    web::{address::segment, confirm::Confirm, shell::Shell, time_ago},
};

const HERE: &str = "/people";

/// A name as one step of an address.
pub fn encoded(name: &str) -> String {
    segment(name)
}

/// The people.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/people.html")]
pub struct Page {
    shell: Shell,
    places: Places,
    people: Vec<Person>,
    invites: Vec<OpenInvite>,
    me: String,
}

impl Page {
    /// Whether this one must stay what she is.
    fn is_last_admin(&self, person: &Person) -> bool {
        person.role == Role::Admin && self.people.iter().filter(|other| other.role == Role::Admin).count() == 1
    }
}

/// `GET /people`
pub async fn show(Admin(caller): Admin, State(state): State<AppState>) -> Result<Page> {
    let people = crate::auth::store::people(&state.db.read).await?;
    let invites = invites::open_invites(&state.db.read, now_ms()).await?;
    let (shell, places) = (shell("People", &caller), Places::new(HERE, &caller));
    Ok(Page { shell, places, people, invites, me: caller.name })
}

/// `POST /people/{name}/role`
pub async fn role(
    admin: Admin,
    state: State<AppState>,
    name: Path<String>,
    Form(Chosen { role, confirmed }): Form<Chosen>,
) -> Result<Response> {
    let ends = api::would_end(&state.db, &name, Some(role)).await?;
    if !ends.ends.is_empty() && confirmed.is_none() {
        let (shell, person) = (shell("Change this role", &admin.0), name.0);
        return Ok(AskRole { shell, person, role, consequences: ends.sentences() }.into_response());
    }
    let _ended = api::change_role(admin, state, name, Input(NewRole { role })).await?;
    Ok(Redirect::to(HERE).into_response())
}

/// A role as a form has it; `confirmed` once somebody has seen what ends with the role of before.
#[derive(Debug, Deserialize)]
pub struct Chosen {
    role: Role,
    confirmed: Option<String>,
}

/// The question before a role that ends something.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/role.html")]
struct AskRole {
    shell: Shell,
    person: String,
    role: Role,
    consequences: Vec<String>,
}

/// `GET /people/{name}/remove`
pub async fn ask_remove(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<Confirm> {
    let user = crate::auth::store::user(&state.db.read, &name).await?;
    let mut consequences = api::would_end(&state.db, &name, None).await?.sentences();
    consequences.push("Runs and what the audit log says stay, with the name.".to_owned());
    consequences.push("Coming back takes a new invitation.".to_owned());
    Ok(Confirm {
        shell: shell("Remove this person", &caller),
        deed: "Remove this person",
        what: format!("{}, {}", user.name, user.role.as_str()),
        consequences,
        back: HERE.to_owned(),
    })
}

/// `POST /people/{name}/remove`
pub async fn remove(admin: Admin, state: State<AppState>, name: Path<String>) -> Result<Redirect> {
    let _ended = api::remove(admin, state, name).await?;
    Ok(Redirect::to(HERE))
}

/// `POST /people/invites`
pub async fn invite(Admin(caller): Admin, State(state): State<AppState>, Form(asked): Form<NewRole>) -> Result<Once> {
    let asked = NewInvite { role: asked.role, ..NewInvite::default() };
    let made = api::make_invite(&state.db, &state.public_url, &asked, &caller).await?;
    let told = format!("Whoever opens it first makes a passkey and becomes {}.", a_role(asked.role));
    Ok(once(&caller, "An invitation".to_owned(), told, made))
}

/// A role with its article.
pub fn a_role(role: Role) -> &'static str {
    match role {
        Role::Viewer => "a viewer",
        Role::Member => "a member",
        Role::Admin => "an administrator",
    }
}

fn once(caller: &Caller, title: String, told: String, made: Invite) -> Once {
    let life = format!("It works once and ends {}.", time_ago::exact(Some(made.expires_at_ms)));
    Once {
        shell: shell("A registration link", caller),
        places: Places::new(HERE, caller),
        title,
        told: vec!["It is shown this once: send it to nobody but the person whom it is for.".to_owned(), told, life],
        label: "Registration link",
        secret: made.url,
        back: HERE,
    }
}

/// A link for somebody who lost a passkey.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/mend.html")]
pub struct Mend {
    shell: Shell,
    person: String,
}

/// `GET /people/{name}/mend`
pub async fn ask_mend(Admin(caller): Admin, State(state): State<AppState>, Path(name): Path<String>) -> Result<Mend> {
    let user = crate::auth::store::user(&state.db.read, &name).await?;
    Ok(Mend { shell: shell("Mend a lost passkey", &caller), person: user.name })
}

/// What is chosen for such a link; a box that is not ticked is not sent.
#[derive(Clone, Debug, Deserialize)]
pub struct Mending {
    ends_passkeys: Option<String>,
}

/// `POST /people/{name}/mend`
pub async fn mend(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Path(name): Path<String>,
    Form(asked): Form<Mending>,
) -> Result<Once> {
    let ends_passkeys = asked.ends_passkeys.is_some();
    let asked = NewInvite { person: Some(name.clone()), ends_passkeys, ..NewInvite::default() };
    let made = api::make_invite(&state.db, &state.public_url, &asked, &caller).await?;
    let told = if ends_passkeys {
        "Its use gives this person a new passkey and ends the ones of before, with all sessions."
    } else {
        "Its use gives this person one more passkey."
    };
    Ok(once(&caller, format!("A link for {name}"), told.to_owned(), made))
}

/// `GET /people/invites/{id}/withdraw`
pub async fn ask_withdraw(Admin(caller): Admin, State(state): State<AppState>, Path(id): Path<i64>) -> Result<Confirm> {
    let open = invites::open_invites(&state.db.read, now_ms()).await?;
    let missing = || Error::NotFound(format!("invitation {id} that could still be used"));
    let invite = open.into_iter().find(|invite| invite.id == id).ok_or_else(missing)?;
    let whom = invite.person.unwrap_or_else(|| "somebody new".to_owned());
    Ok(Confirm {
        shell: shell("Withdraw this invitation", &caller),
        deed: "Withdraw this invitation",
        what: format!("For {whom}, as {}", invite.role),
        consequences: vec!["Its link opens nothing any more. You can make another.".to_owned()],
        back: HERE.to_owned(),
    })
}

/// `POST /people/invites/{id}/withdraw`
pub async fn withdraw(admin: Admin, state: State<AppState>, id: Path<i64>) -> Result<Redirect> {
    api::withdraw_invite(admin, state, id).await?;
    Ok(Redirect::to(HERE))
}
