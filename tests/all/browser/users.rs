//! Several passkeys, invitations with roles, sessions of other devices, and tokens created on the page.

use brewbench::auth::{
    api::users::create_invite, caller::SESSION_COOKIE, model::Role, proven::Proven, users::NewInvite,
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
    passkeys::{ALERT, device, register},
};
use crate::harness::{App, program::as_user};

/// Number of passkeys on the page.
const PASSKEYS: &str = "document.querySelectorAll('section[aria-labelledby=passkeys] tbody tr').length";

/// Adds a second device, besides the built-in one. Returns its id.
async fn usb_key(tab: &Tab) -> String {
    let mut options = VirtualAuthenticatorOptions::new(AuthenticatorProtocol::Ctap2, AuthenticatorTransport::Usb);
    options.has_resident_key = Some(true);
    options.has_user_verification = Some(true);
    options.is_user_verified = Some(true);
    options.automatic_presence_simulation = Some(true);
    tab.execute(AddVirtualAuthenticatorParams::new(options)).await.authenticator_id.inner().clone()
}

#[tokio::test]
async fn a_second_passkey_logs_in_and_the_last_one_cannot_be_removed() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    let first = device(&tab).await;
    register(&tab, &app.invite(Role::Viewer).await, "Ada").await;
    tab.wait_for_path("/").await;
    tab.click(".who summary").await;
    tab.click(".who a[href='/account']").await;
    tab.wait_for_path("/account").await;
    tab.shows(".note", "You have one passkey").await;
    assert_eq!(tab.eval::<usize>("document.querySelectorAll('a[href$=\"/remove\"]').length").await, 0);

    // A device stores one passkey per account.
    tab.click("form[data-passkey=add] button").await;
    tab.shows(ALERT, "This device already has a passkey for this account.").await;
    tab.execute(RemoveVirtualAuthenticatorParams::new(first)).await;
    usb_key(&tab).await;
    tab.click("form[data-passkey=add] input").await;
    tab.type_text("Stick").await;
    tab.click("form[data-passkey=add] button").await;
    tab.until(&format!("{PASSKEYS} === 2")).await;

    tab.click(".who summary").await;
    tab.click(".who form[action='/logout'] button").await;
    tab.wait_for_path("/login").await;
    tab.click("[data-passkey=login]").await;
    tab.wait_for_path("/").await;
    tab.go("/account").await;
    tab.click("section[aria-labelledby=passkeys] tbody tr:first-child a[href$='/remove']").await;
    tab.shows("main", "You keep 1 other passkey").await;
    tab.click("form.row .btn.danger").await;
    tab.wait_for_path("/account").await;
    tab.until(&format!("{PASSKEYS} === 1")).await;
    tab.shows("tbody th", "Stick").await;
    assert_eq!(tab.eval::<usize>("document.querySelectorAll('a[href$=\"/remove\"]').length").await, 0);

    tab.click("details.inline summary").await;
    tab.eval::<Value>("document.querySelector('details.inline input').select()").await;
    tab.type_text("Key ring").await;
    tab.click("details.inline button").await;
    tab.shows("section[aria-labelledby=passkeys] tbody th", "Key ring").await;
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn an_invitation_grants_its_role_only() {
    let app = App::start().await;
    for (role, places) in [
        (Role::Viewer, vec!["Account", "Tokens"]),
        (Role::Member, vec!["Account", "Tokens"]),
        (Role::Admin, vec!["Account", "Tokens", "Users", "Audit log"]),
    ] {
        let tab = Tab::open(&app).await;
        device(&tab).await;
        register(&tab, &app.invite(role).await, role.as_str()).await;
        tab.wait_for_path("/").await;
        tab.go("/account").await;
        let shown: Vec<String> = tab.eval("[...document.querySelectorAll('.places a')].map((a) => a.innerText)").await;
        assert_eq!(shown, places);
        let scopes: usize = {
            tab.go("/tokens").await;
            tab.eval("document.querySelectorAll('select[name=scope] option').length").await
        };
        assert_eq!(scopes, role as usize + 1);
        tab.assert_no_errors().await;
    }
}

#[tokio::test]
async fn an_administrator_resets_a_lost_passkey() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    let lost = device(&tab).await;
    register(&tab, &app.invite(Role::Member).await, "Ada").await;
    tab.wait_for_path("/").await;
    let thief = tab.page.get_cookies().await.expect("cookies").remove(0).value;
    tab.execute(ClearBrowserCookiesParams::default()).await;
    tab.execute(RemoveVirtualAuthenticatorParams::new(lost)).await;

    let admin = Tab::signed_in(&app, Role::Admin).await;
    admin.go("/users").await;
    admin.click("a[href='/users/Ada/reset-passkeys']").await;
    admin.wait_for_path("/users/Ada/reset-passkeys").await;
    admin.click("form .btn.go").await;
    admin.shows("h1", "Recovery link for Ada").await;
    let link: String = admin.eval("document.getElementById('secret').value").await;
    admin.assert_no_errors().await;

    usb_key(&tab).await;
    tab.go(&link).await;
    tab.shows("main", "You are Ada").await;
    tab.click("form[data-passkey] button").await;
    tab.wait_for_path("/").await;
    tab.go("/account").await;
    tab.until(&format!("{PASSKEYS} === 1")).await;
    tab.shows(".lead", "You are a member").await;
    app.anonymous().with_session(&thief, &app.state.public_url).get("/api/v1/runs").await.refused(401);
    tab.go(&link).await;
    tab.shows("main", "this registration link was already used or has expired").await;
}

#[tokio::test]
async fn a_login_works_once_and_only_on_the_pages_of_the_site() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    let device = device(&tab).await;
    register(&tab, &app.invite(Role::Viewer).await, "Ada").await;
    tab.wait_for_path("/").await;
    tab.go("/login").await;
    // The final request of a login is replayed.
    let replayed: Vec<u16> = tab
        .eval(
            "(async () => {
                const send = (step, body) => fetch('/api/v1/auth/login/' + step, {method: 'POST',
                    headers: {'content-type': 'application/json'}, body: JSON.stringify(body)});
                const {ceremony, options} = await (await send('start', {})).json();
                const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options.publicKey);
                const credential = (await navigator.credentials.get({publicKey})).toJSON();
                const statuses = [];
                for (let n = 0; n < 2; n++) statuses.push((await send('finish', {ceremony, credential})).status);
                return statuses;
            })()",
        )
        .await;
    assert_eq!(replayed, [204, 409]);

    // The response was created for another site's page.
    let elsewhere: u16 = tab
        .eval(
            "(async () => {
                const send = (step, body) => fetch('/api/v1/auth/login/' + step, {method: 'POST',
                    headers: {'content-type': 'application/json'}, body: JSON.stringify(body)});
                const {ceremony, options} = await (await send('start', {})).json();
                const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options.publicKey);
                const credential = (await navigator.credentials.get({publicKey})).toJSON();
                const clientData = JSON.parse(atob(credential.response.clientDataJSON.replace(/-/g, '+').replace(/_/g, '/')));
                clientData.origin = 'https://evil.example';
                credential.response.clientDataJSON = btoa(JSON.stringify(clientData)).replace(/\\+/g, '-')
                    .replace(/\\//g, '_').replace(/=/g, '');
                return (await send('finish', {ceremony, credential})).status;
            })()",
        )
        .await;
    assert_eq!(elsewhere, 403);
    tab.errors();

    // Adding a passkey needs user verification as well.
    let mut overrides = SetResponseOverrideBitsParams::new(device.clone());
    overrides.is_bad_uv = Some(true);
    tab.execute(RemoveVirtualAuthenticatorParams::new(device)).await;
    overrides.authenticator_id = usb_key(&tab).await.into();
    tab.execute(overrides).await;
    tab.go("/account").await;
    tab.click("form[data-passkey=add] button").await;
    tab.shows(ALERT, "the passkey was not accepted; try again or use another one").await;
    assert_eq!(tab.eval::<usize>(PASSKEYS).await, 1);
}

#[tokio::test]
async fn a_session_can_be_ended_from_another_device() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    device(&tab).await;
    register(&tab, &app.invite(Role::Viewer).await, "Ada").await;
    tab.wait_for_path("/").await;
    let cookies = tab.page.get_cookies().await.expect("cookies");
    let phone = cookies.into_iter().find(|cookie| cookie.name == SESSION_COOKIE).expect("a session").value;
    let phone = app.anonymous().with_session(&phone, &app.state.public_url);
    phone.get("/api/v1/runs").await.ok();
    // A page with live updates would send a request without a session.
    tab.go("/account").await;
    tab.execute(ClearBrowserCookiesParams::default()).await;
    tab.go("/login").await;
    tab.click("[data-passkey=login]").await;
    tab.wait_for_path("/").await;
    tab.go("/account").await;
    tab.shows("section[aria-labelledby=sessions] tbody th", "Chrome on Linux").await;
    tab.shows("section[aria-labelledby=sessions] tbody th", "Current session").await;
    tab.click("form[action$='/end'] button").await;
    tab.until("document.querySelectorAll('section[aria-labelledby=sessions] tbody tr').length === 1").await;
    phone.get("/api/v1/runs").await.refused(401);
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn a_token_created_on_the_page_works_on_the_command_line_until_revoked() {
    let app = App::start().await;
    let tab = Tab::signed_in(&app, Role::Member).await;
    tab.go("/tokens").await;
    tab.click("input[name=name]").await;
    tab.type_text("laptop").await;
    tab.click("form.fields button").await;
    tab.shows("h1", "Token laptop").await;
    let secret: String = tab.eval("document.getElementById('secret').value").await;
    tab.until("!document.querySelector('.once button').hidden").await;
    as_user(&app, &secret, &["run", "list"]).await.ok();
    tab.go("/tokens").await;
    tab.click("a[href='/tokens/laptop/revoke']").await;
    tab.shows("h1", "Revoke this token?").await;
    tab.click("form.row .btn.danger").await;
    tab.shows("tbody", "revoked").await;
    as_user(&app, &secret, &["run", "list"]).await.refused(1);
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn a_link_that_is_withdrawn_expired_or_for_a_removed_user_is_rejected() {
    let app = App::start().await;
    let admin = Tab::signed_in(&app, Role::Admin).await;
    admin.go("/users").await;
    admin.click("form[action='/users/invites'] button").await;
    admin.shows("h1", "Invitation").await;
    let link: String = admin.eval("document.getElementById('secret').value").await;
    admin.go("/users").await;
    admin.click("a[href$='/withdraw']").await;
    admin.click("form.row .btn.danger").await;
    admin.wait_for_path("/users").await;
    admin.assert_no_errors().await;

    let eve = app.signed_in_as("Eve", Role::Viewer, i64::MAX).await;
    let invite = NewInvite { user: Some("Eve".to_owned()), ..NewInvite::default() };
    let (db, site) = (&app.state.db, &app.state.public_url);
    let gone = create_invite(db, site, &invite, &Proven::owner()).await.expect("an invitation").url;
    app.admin().await.delete("/api/v1/users/Eve").await.ok();
    eve.get("/api/v1/runs").await.refused(401);
    let expired = app.invite(Role::Admin).await;
    let all = sqlx::query("update invite set expires_at = created_at where user_id is null and withdrawn_at is null");
    all.execute(&app.state.db.write).await.expect("expired");
    let tab = Tab::open(&app).await;
    for link in [link, gone, expired] {
        tab.go(&link).await;
        tab.shows("main", "this registration link was already used or has expired; ask for a new one").await;
    }
}
