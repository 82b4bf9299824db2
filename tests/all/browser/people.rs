//! Several passkeys, invitations with roles, sessions of other devices, and a token from the page to a command.

use brewbench::auth::{
    api::people::make_invite,
    caller::{Caller, SESSION_COOKIE},
    model::Role,
    people::NewInvite,
};
use chromiumoxide::cdp::browser_protocol::{
    network::ClearBrowserCookiesParams,
    web_authn::{
        AddVirtualAuthenticatorParams, AuthenticatorProtocol, AuthenticatorTransport, RemoveVirtualAuthenticatorParams,
        SetResponseOverrideBitsParams, VirtualAuthenticatorOptions,
    },
};
use serde_json::Value;

use super::{
    Tab,
    passkeys::{ALERT, device, registers},
};
use crate::harness::{App, program::as_user};

/// How many passkeys the page shows.
const PASSKEYS: &str = "document.querySelectorAll('section[aria-labelledby=passkeys] tbody tr').length";

/// A second device, apart from the one that the browser has built in.
async fn stick(tab: &Tab) -> String {
    let mut options = VirtualAuthenticatorOptions::new(AuthenticatorProtocol::Ctap2, AuthenticatorTransport::Usb);
    options.has_resident_key = Some(true);
    options.has_user_verification = Some(true);
    options.is_user_verified = Some(true);
    options.automatic_presence_simulation = Some(true);
    tab.ask(AddVirtualAuthenticatorParams::new(options)).await.authenticator_id.inner().clone()
}

#[tokio::test]
async fn a_second_passkey_opens_the_site_and_the_last_one_stays() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    let first = device(&tab).await;
    registers(&tab, &app.invite(Role::Viewer).await, "Ada").await;
    tab.lands_at("/").await;
    tab.click(".who .name").await;
    tab.lands_at("/account").await;
    tab.says(".note", "You have one passkey").await;
    assert_eq!(tab.eval::<usize>("document.querySelectorAll('a[href$=\"/remove\"]').length").await, 0);

    // The device that has one already takes no other.
    tab.click("form[data-passkey=add] button").await;
    tab.says(ALERT, "This device already has a passkey for this account.").await;
    tab.ask(RemoveVirtualAuthenticatorParams::new(first)).await;
    stick(&tab).await;
    tab.click("form[data-passkey=add] input").await;
    tab.write("Stick").await;
    tab.click("form[data-passkey=add] button").await;
    tab.until(&format!("{PASSKEYS} === 2")).await;

    tab.click("form[action='/logout'] button").await;
    tab.lands_at("/login").await;
    tab.click("[data-passkey=login]").await;
    tab.lands_at("/").await;
    tab.go("/account").await;
    tab.click("section[aria-labelledby=passkeys] tbody tr:first-child a[href$='/remove']").await;
    tab.says("main", "your 1 other passkey still will").await;
    tab.click("form.row .btn.danger").await;
    tab.lands_at("/account").await;
    tab.until(&format!("{PASSKEYS} === 1")).await;
    tab.says("tbody th", "Stick").await;
    assert_eq!(tab.eval::<usize>("document.querySelectorAll('a[href$=\"/remove\"]').length").await, 0);

    tab.click("details.inline summary").await;
    tab.eval::<Value>("document.querySelector('details.inline input').select()").await;
    tab.write("Key ring").await;
    tab.click("details.inline button").await;
    tab.says("section[aria-labelledby=passkeys] tbody th", "Key ring").await;
    tab.is_quiet().await;
}

#[tokio::test]
async fn an_invitation_makes_what_it_says_and_no_more() {
    let app = App::start().await;
    for (role, places) in [
        (Role::Viewer, vec!["Account", "Tokens"]),
        (Role::Member, vec!["Account", "Tokens"]),
        (Role::Admin, vec!["Account", "Tokens", "People", "Audit log"]),
    ] {
        let tab = Tab::open(&app).await;
        device(&tab).await;
        registers(&tab, &app.invite(role).await, role.as_str()).await;
        tab.lands_at("/").await;
        tab.go("/account").await;
        let shown: Vec<String> = tab.eval("[...document.querySelectorAll('.places a')].map((a) => a.innerText)").await;
        assert_eq!(shown, places);
        let scopes: usize = {
            tab.go("/tokens").await;
            tab.eval("document.querySelectorAll('select[name=scope] option').length").await
        };
        assert_eq!(scopes, role as usize + 1);
        tab.is_quiet().await;
    }
}

#[tokio::test]
async fn an_administrator_mends_a_lost_passkey() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    let lost = device(&tab).await;
    registers(&tab, &app.invite(Role::Member).await, "Ada").await;
    tab.lands_at("/").await;
    let thief = tab.page.get_cookies().await.expect("cookies").remove(0).value;
    tab.ask(ClearBrowserCookiesParams::default()).await;
    tab.ask(RemoveVirtualAuthenticatorParams::new(lost)).await;

    let admin = Tab::of(&app, Role::Admin).await;
    admin.go("/people").await;
    admin.click("a[href='/people/Ada/mend']").await;
    admin.lands_at("/people/Ada/mend").await;
    admin.click("form .btn.go").await;
    admin.says("h1", "A link for Ada").await;
    let link: String = admin.eval("document.getElementById('secret').value").await;
    admin.is_quiet().await;

    stick(&tab).await;
    tab.go(&link).await;
    tab.says("main", "You are Ada").await;
    tab.click("form[data-passkey] button").await;
    tab.lands_at("/").await;
    tab.go("/account").await;
    tab.until(&format!("{PASSKEYS} === 1")).await;
    tab.says(".lead", "You are a member").await;
    app.nobody().with_session(&thief, &app.state.public_url).get("/api/v1/runs").await.refused(401);
    tab.go(&link).await;
    tab.says("main", "this registration link was used or has expired").await;
}

#[tokio::test]
async fn a_ceremony_counts_once_and_only_on_our_own_pages() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    let device = device(&tab).await;
    registers(&tab, &app.invite(Role::Viewer).await, "Ada").await;
    tab.lands_at("/").await;
    tab.go("/login").await;
    // What the page sends at the end of the ceremony is sent once more, word for word.
    let replayed: Vec<u16> = tab
        .eval(
            "(async () => {
                const ask = (step, body) => fetch('/api/v1/auth/login/' + step, {method: 'POST',
                    headers: {'content-type': 'application/json'}, body: JSON.stringify(body)});
                const {ceremony, options} = await (await ask('start', {})).json();
                const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options.publicKey);
                const credential = (await navigator.credentials.get({publicKey})).toJSON();
                const answers = [];
                for (let n = 0; n < 2; n++) answers.push((await ask('finish', {ceremony, credential})).status);
                return answers;
            })()",
        )
        .await;
    assert_eq!(replayed, [204, 409]);

    // A device that vouches for another site's page.
    let elsewhere: u16 = tab
        .eval(
            "(async () => {
                const ask = (step, body) => fetch('/api/v1/auth/login/' + step, {method: 'POST',
                    headers: {'content-type': 'application/json'}, body: JSON.stringify(body)});
                const {ceremony, options} = await (await ask('start', {})).json();
                const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options.publicKey);
                const credential = (await navigator.credentials.get({publicKey})).toJSON();
                const said = JSON.parse(atob(credential.response.clientDataJSON.replace(/-/g, '+').replace(/_/g, '/')));
                said.origin = 'https://evil.example';
                credential.response.clientDataJSON = btoa(JSON.stringify(said)).replace(/\\+/g, '-')
                    .replace(/\\//g, '_').replace(/=/g, '');
                return (await ask('finish', {ceremony, credential})).status;
            })()",
        )
        .await;
    assert_eq!(elsewhere, 403);
    tab.complaints();

    // Another passkey needs the owner before the device as well.
    let mut lies = SetResponseOverrideBitsParams::new(device.clone());
    lies.is_bad_uv = Some(true);
    tab.ask(RemoveVirtualAuthenticatorParams::new(device)).await;
    lies.authenticator_id = stick(&tab).await.into();
    tab.ask(lies).await;
    tab.go("/account").await;
    tab.click("form[data-passkey=add] button").await;
    tab.says(ALERT, "the passkey was not accepted; try again, or with another").await;
    assert_eq!(tab.eval::<usize>(PASSKEYS).await, 1);
}

#[tokio::test]
async fn a_session_is_ended_from_another_device() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    device(&tab).await;
    registers(&tab, &app.invite(Role::Viewer).await, "Ada").await;
    tab.lands_at("/").await;
    let cookies = tab.page.get_cookies().await.expect("cookies");
    let phone = cookies.into_iter().find(|cookie| cookie.name == SESSION_COOKIE).expect("a session").value;
    let phone = app.nobody().with_session(&phone, &app.state.public_url);
    phone.get("/api/v1/runs").await.ok();
    // A page that follows would ask once more without a session.
    tab.go("/account").await;
    tab.ask(ClearBrowserCookiesParams::default()).await;
    tab.go("/login").await;
    tab.click("[data-passkey=login]").await;
    tab.lands_at("/").await;
    tab.go("/account").await;
    tab.says("section[aria-labelledby=sessions] tbody th", "Chrome on Linux").await;
    tab.says("section[aria-labelledby=sessions] tbody th", "This session").await;
    tab.click("form[action$='/end'] button").await;
    tab.until("document.querySelectorAll('section[aria-labelledby=sessions] tbody tr').length === 1").await;
    phone.get("/api/v1/runs").await.refused(401);
    tab.is_quiet().await;
}

#[tokio::test]
async fn a_token_that_the_page_makes_is_taken_by_the_command_until_the_page_revokes_it() {
    let app = App::start().await;
    let tab = Tab::of(&app, Role::Member).await;
    tab.go("/tokens").await;
    tab.click("input[name=name]").await;
    tab.write("laptop").await;
    tab.click("form.fields button").await;
    tab.says("h1", "The token laptop").await;
    let secret: String = tab.eval("document.getElementById('secret').value").await;
    tab.until("!document.querySelector('.once button').hidden").await;
    as_user(&app, &secret, &["run", "list"]).await.ok();
    tab.go("/tokens").await;
    tab.click("a[href='/tokens/laptop/revoke']").await;
    tab.says("h1", "Revoke this token?").await;
    tab.click("form.row .btn.danger").await;
    tab.says("tbody", "revoked").await;
    as_user(&app, &secret, &["run", "list"]).await.refused(1);
    tab.is_quiet().await;
}

#[tokio::test]
async fn a_link_that_was_withdrawn_or_has_expired_or_is_for_somebody_who_is_gone_opens_nothing() {
    let app = App::start().await;
    let admin = Tab::of(&app, Role::Admin).await;
    admin.go("/people").await;
    admin.click("form[action='/people/invites'] button").await;
    admin.says("h1", "An invitation").await;
    let link: String = admin.eval("document.getElementById('secret').value").await;
    admin.go("/people").await;
    admin.click("a[href$='/withdraw']").await;
    admin.click("form.row .btn.danger").await;
    admin.lands_at("/people").await;
    admin.is_quiet().await;

    let eve = app.named("Eve", Role::Viewer, i64::MAX).await;
    let asked = NewInvite { person: Some("Eve".to_owned()), ..NewInvite::default() };
    let (db, site) = (&app.state.db, &app.state.public_url);
    let gone = make_invite(db, site, &asked, &Caller::owner()).await.expect("an invitation").url;
    app.admin().await.delete("/api/v1/people/Eve").await.ok();
    eve.get("/api/v1/runs").await.refused(401);
    let expired = app.invite(Role::Admin).await;
    let all = sqlx::query("update invite set expires_at = created_at where user_id is null and withdrawn_at is null");
    all.execute(&app.state.db.write).await.expect("it has expired");
    let tab = Tab::open(&app).await;
    for link in [link, gone, expired] {
        tab.go(&link).await;
        tab.says("main", "this registration link was used or has expired; ask for another").await;
    }
}
