//! Registration and login with passkeys.

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
use crate::harness::{App, submit::interleaved};

/// The error message of a passkey request.
pub const ALERT: &str = "[data-passkey-alert]:not([hidden])";

/// Adds a device that stores passkeys and verifies its user.
pub async fn device(tab: &Tab) -> AuthenticatorId {
    tab.execute(EnableParams::default()).await;
    let mut options = VirtualAuthenticatorOptions::new(AuthenticatorProtocol::Ctap2, AuthenticatorTransport::Internal);
    options.has_resident_key = Some(true);
    options.has_user_verification = Some(true);
    options.is_user_verified = Some(true);
    options.automatic_presence_simulation = Some(true);
    tab.execute(AddVirtualAuthenticatorParams::new(options)).await.authenticator_id
}

async fn link(app: &App) -> String {
    app.invite(Role::Member).await
}

/// Registers a user with a link.
pub async fn register(tab: &Tab, link: &str, name: &str) {
    tab.go(link).await;
    tab.click("input[name=name]").await;
    tab.type_text(name).await;
    tab.click("form[data-passkey] button").await;
}

#[tokio::test]
async fn a_registration_link_works_once_and_its_passkey_logs_in() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    device(&tab).await;
    let link = link(&app).await;
    register(&tab, &link, "Ada").await;
    tab.wait_for_path("/").await;
    tab.shows(".who .sr", "Account of Ada").await;
    tab.assert_no_errors().await;

    tab.click(".who summary").await;
    tab.click(".who form[action='/logout'] button").await;
    tab.wait_for_path("/login").await;
    tab.go("/runs?after=x").await;
    tab.wait_for_path("/login?next=%2Fruns%3Fafter%3Dx").await;
    tab.click("[data-passkey=login]").await;
    tab.wait_for_path("/runs?after=x").await;
    tab.shows(".who .sr", "Account of Ada").await;
    tab.assert_no_errors().await;

    tab.go(&link).await;
    tab.shows("main", "this registration link was already used or has expired; ask for a new one").await;
}

const CANCELLED: &str = "The passkey request was cancelled or timed out. Try again.";
const NOT_ACCEPTED: &str = "the passkey was not accepted; try again or use another one";

/// Asserts that neither the browser nor the server has a session.
async fn assert_logged_out(app: &App, tab: &Tab) {
    let cookies = tab.page.get_cookies().await.expect("cookies");
    assert!(!cookies.iter().any(|cookie| cookie.name == SESSION_COOKIE), "{cookies:?}");
    let sessions: i64 =
        sqlx::query_scalar("select count(*) from session").fetch_one(&app.state.db.read).await.expect("a count");
    assert_eq!(sessions, 0);
}

#[tokio::test]
async fn an_unverified_user_cannot_register() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    let device = device(&tab).await;
    let link = link(&app).await;
    tab.execute(SetUserVerifiedParams::new(device.clone(), false)).await;
    register(&tab, &link, "Eve").await;
    tab.shows(ALERT, CANCELLED).await;
    assert_logged_out(&app, &tab).await;

    // The server checks the verification flag itself.
    tab.execute(SetUserVerifiedParams::new(device.clone(), true)).await;
    let mut overrides = SetResponseOverrideBitsParams::new(device.clone());
    overrides.is_bad_uv = Some(true);
    tab.execute(overrides).await;
    register(&tab, &link, "Eve").await;
    tab.shows(ALERT, NOT_ACCEPTED).await;
    assert_logged_out(&app, &tab).await;
}

#[tokio::test]
async fn an_unverified_user_cannot_log_in() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    let device = device(&tab).await;
    register(&tab, &link(&app).await, "Ada").await;
    tab.wait_for_path("/").await;
    tab.click(".who summary").await;
    tab.click(".who form[action='/logout'] button").await;
    tab.wait_for_path("/login").await;

    tab.execute(SetUserVerifiedParams::new(device.clone(), false)).await;
    tab.click("[data-passkey=login]").await;
    tab.shows(ALERT, CANCELLED).await;
    assert_logged_out(&app, &tab).await;

    tab.execute(SetUserVerifiedParams::new(device.clone(), true)).await;
    let mut overrides = SetResponseOverrideBitsParams::new(device.clone());
    overrides.is_bad_uv = Some(true);
    tab.execute(overrides.clone()).await;
    tab.click("[data-passkey=login]").await;
    tab.shows(ALERT, NOT_ACCEPTED).await;
    (overrides.is_bad_uv, overrides.is_bogus_signature) = (Some(false), Some(true));
    tab.execute(overrides.clone()).await;
    tab.go("/login").await;
    tab.click("[data-passkey=login]").await;
    tab.shows(ALERT, NOT_ACCEPTED).await;
    assert_logged_out(&app, &tab).await;

    // A valid response of the same device logs in on the same page.
    overrides.is_bogus_signature = Some(false);
    tab.execute(overrides).await;
    tab.click("[data-passkey=login]").await;
    tab.wait_for_path("/").await;
}

#[tokio::test]
async fn a_cancelled_or_timed_out_request_is_reported_and_can_be_retried() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    let device = device(&tab).await;
    tab.go("/login").await;
    tab.click("[data-passkey=login]").await;
    tab.shows(ALERT, CANCELLED).await;

    // The user does not touch the device; the timeout of five minutes is shortened.
    tab.execute(SetAutomaticPresenceSimulationParams::new(device.clone(), false)).await;
    let short_timeout = "{ const parse = PublicKeyCredential.parseCreationOptionsFromJSON.bind(PublicKeyCredential);
        PublicKeyCredential.parseCreationOptionsFromJSON = (json) => parse({ ...json, timeout: 200 }); }";
    tab.page.evaluate_on_new_document(short_timeout).await.expect("a script");
    register(&tab, &link(&app).await, "Ada").await;
    tab.shows(ALERT, CANCELLED).await;
    assert_logged_out(&app, &tab).await;
    tab.execute(SetAutomaticPresenceSimulationParams::new(device, true)).await;
    tab.click("form[data-passkey] button").await;
    tab.wait_for_path("/").await;
}

#[tokio::test]
async fn a_passkey_of_another_server_is_rejected() {
    // Both servers are on `localhost`, which is the same site for the device.
    let (app, other) = (App::start().await, App::start().await);
    let tab = Tab::open(&app).await;
    device(&tab).await;
    register(&tab, &link(&other).await, "Eve").await;
    tab.until(&format!("location.href === '{}'", other.state.public_url)).await;
    tab.execute(ClearBrowserCookiesParams::default()).await;
    tab.go("/login").await;
    tab.click("[data-passkey=login]").await;
    tab.shows(ALERT, "this passkey is unknown; ask an administrator for a registration link").await;
    assert_logged_out(&app, &tab).await;
}

#[tokio::test]
async fn a_comparison_is_shared_from_its_page() {
    let app = App::start().await;
    interleaved(&app.user().await, &[("servy", "1", 1.0), ("gosherve", "1", 1.2)], 4).await;
    let tab = Tab::open(&app).await;
    let device = device(&tab).await;
    register(&tab, &link(&app).await, "Ada").await;
    tab.wait_for_path("/").await;
    tab.click(".latest li a").await;
    tab.shows("h1", "servy").await;
    // As if the last confirmation were long ago.
    sqlx::query("update session set proved_at = 0").execute(&app.state.db.write).await.expect("an update");
    tab.execute(SetUserVerifiedParams::new(device.clone(), false)).await;
    tab.click("details:has(> #share) summary").await;
    tab.click("#share button").await;
    tab.shows(ALERT, CANCELLED).await;
    tab.execute(SetUserVerifiedParams::new(device, true)).await;
    tab.click("#share button").await;
    tab.shows("h1", "New share link").await;
    tab.assert_no_errors().await;
}
