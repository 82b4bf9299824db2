//! The page of users and invitations, for administrators.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Form,
    extract::{Path, State},
    response::{IntoResponse, Redirect, Response},
};
use brewbench_wire::now_ms;
use serde::Deserialize;

use crate::{
    app::{
        error::{Error, Result},
        input::Input,
        state::AppState,
    },
    auth::{
        api::users as api,
        caller::{Admin, Caller},
        model::Role,
        pages::parts::{Places, ShownSecret, shell},
        proven::Proven,
        store::invites,
        users::{Invite, NewInvite, NewRole, OpenInvite, UserInfo},
    },
    web::{address::segment, confirm::Confirm, shell::Shell, time_ago},
};

const HERE: &str = "/users";

/// Encodes a name as a URL path segment.
pub fn encoded(name: &str) -> String {
    segment(name)
}

/// The page of users.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/users.html")]
pub struct Page {
    shell: Shell,
    places: Places,
    users: Vec<UserInfo>,
    invites: Vec<OpenInvite>,
    me: String,
}

impl Page {
    /// Returns whether this user is the last administrator, who cannot be demoted or removed.
    fn is_last_admin(&self, person: &UserInfo) -> bool {
        person.role == Role::Admin && self.users.iter().filter(|other| other.role == Role::Admin).count() == 1
    }
}

/// `GET /users`
pub async fn show(Admin(caller): Admin, State(state): State<AppState>) -> Result<Page> {
    let users = crate::auth::store::users(&state.db.read).await?;
    let invites = invites::open_invites(&state.db.read, now_ms()).await?;
    let (shell, places) = (shell("Users", &caller), Places::new(HERE, &caller));
    Ok(Page { shell, places, users, invites, me: caller.name })
}

/// `POST /users/{name}/role`
pub async fn role(
    admin: Proven<Admin>,
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

/// The form of a role; `confirmed` is set after the user has seen what ends with the previous role.
#[derive(Debug, Deserialize)]
pub struct Chosen {
    role: Role,
    confirmed: Option<String>,
}

/// The confirmation of a role change that ends something.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/role.html")]
struct AskRole {
    shell: Shell,
    person: String,
    role: Role,
    consequences: Vec<String>,
}

/// `GET /users/{name}/remove`
pub async fn ask_remove(
    admin: Proven<Admin>,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<Confirm> {
    let user = crate::auth::store::user(&state.db.read, &name).await?;
    let mut consequences = api::would_end(&state.db, &name, None).await?.sentences();
    consequences.push("Runs and audit log entries stay, with the name.".to_owned());
    consequences.push("To come back, the user needs a new invitation.".to_owned());
    Ok(Confirm {
        shell: shell("Remove this user", &admin.0),
        action: "Remove this user",
        what: format!("{}, {}", user.name, user.role.as_str()),
        consequences,
        back: HERE.to_owned(),
    })
}

/// `POST /users/invites`
pub async fn invite(
    admin: Proven<Admin>,
    State(state): State<AppState>,
    Form(form): Form<NewRole>,
) -> Result<ShownSecret> {
    let request = NewInvite { role: form.role, ..NewInvite::default() };
    let invite = api::create_invite(&state.db, &state.public_url, &request, &admin.by()).await?;
    let effect = format!("The first person to open it creates a passkey and becomes {}.", a_role(request.role));
    Ok(once(&admin.0, "Invitation".to_owned(), effect, invite))
}

/// Returns the role with its article.
pub fn a_role(role: Role) -> &'static str {
    match role {
        Role::Viewer => "a viewer",
        Role::Member => "a member",
        Role::Admin => "an administrator",
    }
}

fn once(caller: &Caller, title: String, effect: String, invite: Invite) -> ShownSecret {
    let expiry = format!("It works once and expires {}.", time_ago::exact(Some(invite.expires_at_ms)));
    ShownSecret {
        shell: shell("Registration link", caller),
        places: Places::new(HERE, caller),
        title,
        instructions: vec!["It is shown only once. Send it only to the person it is for.".to_owned(), effect, expiry],
        label: "Registration link",
        secret: invite.url,
        back: HERE,
    }
}

/// The page that creates a recovery link for a user who lost a passkey.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/replace_passkey.html")]
pub struct RecoveryPage {
    shell: Shell,
    person: String,
}

/// `GET /users/{name}/reset-passkeys`
pub async fn confirm_recovery(
    admin: Proven<Admin>,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<RecoveryPage> {
    let user = crate::auth::store::user(&state.db.read, &name).await?;
    Ok(RecoveryPage { shell: shell("Replace a lost passkey", &admin.0), person: user.name })
}

/// The form of a recovery link. Browsers do not send an unticked box.
#[derive(Clone, Debug, Deserialize)]
pub struct RecoveryForm {
    resets_passkeys: Option<String>,
}

/// `POST /users/{name}/reset-passkeys`
pub async fn recover(
    admin: Proven<Admin>,
    State(state): State<AppState>,
    Path(name): Path<String>,
    Form(form): Form<RecoveryForm>,
) -> Result<ShownSecret> {
    let resets_passkeys = form.resets_passkeys.is_some();
    let request = NewInvite { user: Some(name.clone()), resets_passkeys, ..NewInvite::default() };
    let invite = api::create_invite(&state.db, &state.public_url, &request, &admin.by()).await?;
    let effect = if resets_passkeys {
        "Using it registers a new passkey and removes the user's earlier passkeys and sessions."
    } else {
        "Using it registers one more passkey for this user."
    };
    Ok(once(&admin.0, format!("Recovery link for {name}"), effect.to_owned(), invite))
}

/// `GET /users/invites/{id}/withdraw`
pub async fn ask_withdraw(Admin(caller): Admin, State(state): State<AppState>, Path(id): Path<i64>) -> Result<Confirm> {
    let open = invites::open_invites(&state.db.read, now_ms()).await?;
    let missing = || Error::NotFound(format!("open invitation {id}"));
    let invite = open.into_iter().find(|invite| invite.id == id).ok_or_else(missing)?;
    let whom = invite.user.unwrap_or_else(|| "a new user".to_owned());
    Ok(Confirm {
        shell: shell("Withdraw this invitation", &caller),
        action: "Withdraw this invitation",
        what: format!("For {whom}, as {}", invite.role),
        consequences: vec!["Its link stops working. You can create another invitation.".to_owned()],
        back: HERE.to_owned(),
    })
}
