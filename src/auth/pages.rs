//! Login, registration and logout as pages.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Router,
    extract::State,
    response::Redirect,
    routing::{get, post},
};
use axum_extra::extract::{CookieJar, cookie::Cookie};
use brewbench_agent::wire::now_ms;
use serde::Deserialize;

use super::{Public, Read, caller::SESSION_COOKIE, queries, secret};
use crate::{
    error::{Asked, Error, Result},
    state::AppState,
    web::shell::Shell,
};

/// The pages of this slice.
pub fn router() -> Router<AppState> {
    Router::new().route("/login", get(login)).route("/register", get(register)).route("/logout", post(logout))
}

/// The login.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/login.html")]
struct Login {
    shell: Shell,
    next: String,
}

#[derive(Debug, Deserialize)]
struct LoginQuery {
    next: Option<String>,
}

async fn login(_: Public, Asked(query): Asked<LoginQuery>) -> Login {
    Login { shell: Shell::anonymous("Log in"), next: own_path(query.next) }
}

/// Only a path of our own: else a link to our login could end on somebody else's page.
fn own_path(next: Option<String>) -> String {
    next.filter(|next| next.starts_with('/') && !next.starts_with("//") && !next.contains(['\\', '\n', '\r', '\t']))
        .unwrap_or_else(|| "/".to_owned())
}

/// The registration by a one-time link.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/register.html")]
struct Register {
    shell: Shell,
    token: String,
    role: String,
}

#[derive(Debug, Deserialize)]
struct RegisterQuery {
    token: String,
}

async fn register(_: Public, State(state): State<AppState>, Asked(query): Asked<RegisterQuery>) -> Result<Register> {
    let role = queries::open_invite(&state.db.read, &secret::hash(&query.token), now_ms()).await?;
    let spent = || Error::Forbidden("this registration link was used or has expired; ask for another".to_owned());
    let role = role.ok_or_else(spent)?.as_str().to_owned();
    Ok(Register { shell: Shell::anonymous("Register"), token: query.token, role })
}

/// Ends the session. It takes somebody who is logged in, so that another site can't log people out.
async fn logout(_: Read, State(state): State<AppState>, jar: CookieJar) -> Result<(CookieJar, Redirect)> {
    if let Some(cookie) = jar.get(SESSION_COOKIE) {
        queries::delete_session(&state.db.write, &secret::hash(cookie.value())).await?;
    }
    Ok((jar.remove(Cookie::build(SESSION_COOKIE).path("/")), Redirect::to("/login")))
}

#[cfg(test)]
mod tests {
    use super::own_path;

    #[test]
    fn after_the_login_nobody_lands_elsewhere() {
        let next = |text: &str| own_path(Some(text.to_owned()));
        assert_eq!(next("/runs?x=1"), "/runs?x=1");
        for elsewhere in
            ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\t/evil"]
        {
            assert_eq!(next(elsewhere), "/", "{elsewhere}");
        }
    }
}
