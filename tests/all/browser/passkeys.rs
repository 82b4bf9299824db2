//! Registration and login, the whole ceremony.

use brewbench::auth::{caller::SESSION_COOKIE, model::Role};
use chromiumoxide::cdp::browser_protocol::{
    network::ClearBrowserCookiesParams,
    web_authn::{
        AddVirtualAuthenticatorParams, AuthenticatorId, AuthenticatorProtocol, AuthenticatorTransport, EnableParams,
        SetAutomaticPresenceSimulationParams, SetResponseOverrideBitsParams, SetUserVerifiedParams,
        VirtualAuthenticatorOptions,
    },
};

use super::Tab;
use crate::harness::App;

/// What went wrong with a passkey.
pub const ALERT: &str = "[data-passkey-alert]:not([hidden])";

/// A device that holds passkeys and knows its owner.
pub async fn device(tab: &Tab) -> AuthenticatorId {
    tab.ask(EnableParams::default()).await;
    let mut options = VirtualAuthenticatorOptions::new(AuthenticatorProtocol::Ctap2, AuthenticatorTransport::Internal);
    options.has_resident_key = Some(true);
    options.has_user_verification = Some(true);
    options.is_user_verified = Some(true);
    options.automatic_presence_simulation = Some(true);
    tab.ask(AddVirtualAuthenticatorParams::new(options)).await.authenticator_id
}

async fn link(app: &App) -> String {
    app.invite(Role::Member).await
}

/// Somebody registers by a link.
pub async fn registers(tab: &Tab, link: &str, name: &str) {
    tab.go(link).await;
    tab.click("input[name=name]").await;
    tab.write(name).await;
    tab.click("form[data-passkey] button").await;
}

#[tokio::test]
async fn a_person_registers_by_a_link_that_works_once_and_comes_back_with_the_passkey() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    device(&tab).await;
    let link = link(&app).await;
    registers(&tab, &link, "Ada").await;
    tab.lands_at("/").await;
    tab.says(".who .name", "Ada").await;
    tab.is_quiet().await;

    tab.click("form[action='/logout'] button").await;
    tab.lands_at("/login").await;
    tab.go("/runs?before=x").await;
    tab.lands_at("/login?next=%2Fruns%3Fbefore%3Dx").await;
    tab.click("[data-passkey=login]").await;
    tab.lands_at("/runs?before=x").await;
    tab.says(".who .name", "Ada").await;
    tab.is_quiet().await;

    tab.go(&link).await;
    tab.says("main", "this registration link was used or has expired; ask for another").await;
}

const CANCELLED: &str = "The passkey was not used: it was cancelled or took too long. Try again.";
const NOT_ACCEPTED: &str = "the passkey was not accepted; try again, or with another";

/// Nobody is logged in here: neither does the browser hold a session, nor has the server made one.
async fn is_nobody(app: &App, tab: &Tab) {
    let cookies = tab.page.get_cookies().await.expect("cookies");
    assert!(!cookies.iter().any(|cookie| cookie.name == SESSION_COOKIE), "{cookies:?}");
    let sessions: i64 =
        sqlx::query_scalar("select count(*) from session").fetch_one(&app.state.db.read).await.expect("a count");
    assert_eq!(sessions, 0);
}

#[tokio::test]
async fn who_is_not_verified_by_the_device_can_not_register() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    let device = device(&tab).await;
    let link = link(&app).await;
    tab.ask(SetUserVerifiedParams::new(device.clone(), false)).await;
    registers(&tab, &link, "Eve").await;
    tab.says(ALERT, CANCELLED).await;
    is_nobody(&app, &tab).await;

    // A device that pretends: the server looks for itself.
    tab.ask(SetUserVerifiedParams::new(device.clone(), true)).await;
    let mut lies = SetResponseOverrideBitsParams::new(device.clone());
    lies.is_bad_uv = Some(true);
    tab.ask(lies).await;
    registers(&tab, &link, "Eve").await;
    tab.says(ALERT, NOT_ACCEPTED).await;
    is_nobody(&app, &tab).await;
}

#[tokio::test]
async fn who_is_not_verified_by_the_device_can_not_log_in() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    let device = device(&tab).await;
    registers(&tab, &link(&app).await, "Ada").await;
    tab.lands_at("/").await;
    tab.click("form[action='/logout'] button").await;
    tab.lands_at("/login").await;

    tab.ask(SetUserVerifiedParams::new(device.clone(), false)).await;
    tab.click("[data-passkey=login]").await;
    tab.says(ALERT, CANCELLED).await;
    is_nobody(&app, &tab).await;

    tab.ask(SetUserVerifiedParams::new(device.clone(), true)).await;
    let mut lies = SetResponseOverrideBitsParams::new(device.clone());
    lies.is_bad_uv = Some(true);
    tab.ask(lies.clone()).await;
    tab.click("[data-passkey=login]").await;
    tab.says(ALERT, NOT_ACCEPTED).await;
    (lies.is_bad_uv, lies.is_bogus_signature) = (Some(false), Some(true));
    tab.ask(lies.clone()).await;
    tab.go("/login").await;
    tab.click("[data-passkey=login]").await;
    tab.says(ALERT, NOT_ACCEPTED).await;
    is_nobody(&app, &tab).await;

    // With everything in order the same device gets in, on the same page.
    lies.is_bogus_signature = Some(false);
    tab.ask(lies).await;
    tab.click("[data-passkey=login]").await;
    tab.lands_at("/").await;
}

#[tokio::test]
async fn who_takes_too_long_or_has_no_passkey_is_told_so_and_can_try_again() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    let device = device(&tab).await;
    tab.go("/login").await;
    tab.click("[data-passkey=login]").await;
    tab.says(ALERT, CANCELLED).await;

    // Nobody touches the device; the patience of five minutes is made a short one.
    tab.ask(SetAutomaticPresenceSimulationParams::new(device.clone(), false)).await;
    let hurry = "{ const parse = PublicKeyCredential.parseCreationOptionsFromJSON.bind(PublicKeyCredential);
        PublicKeyCredential.parseCreationOptionsFromJSON = (json) => parse({ ...json, timeout: 200 }); }";
    tab.page.evaluate_on_new_document(hurry).await.expect("a script");
    registers(&tab, &link(&app).await, "Ada").await;
    tab.says(ALERT, CANCELLED).await;
    is_nobody(&app, &tab).await;
    tab.ask(SetAutomaticPresenceSimulationParams::new(device, true)).await;
    tab.click("form[data-passkey] button").await;
    tab.lands_at("/").await;
}

#[tokio::test]
async fn a_passkey_that_the_server_does_not_know_opens_nothing() {
    // Both are on `localhost`: for the device they are one.
    let (app, other) = (App::start().await, App::start().await);
    let tab = Tab::open(&app).await;
    device(&tab).await;
    registers(&tab, &link(&other).await, "Eve").await;
    tab.until(&format!("location.href === '{}'", other.state.public_url)).await;
    tab.ask(ClearBrowserCookiesParams::default()).await;
    tab.go("/login").await;
    tab.click("[data-passkey=login]").await;
    tab.says(ALERT, "this passkey is not known here; ask for a registration link").await;
    is_nobody(&app, &tab).await;
}
