//! Errors of pages are detected by the tests.

use brewbench::auth::model::Role;
use chromiumoxide::cdp::browser_protocol::page::HandleJavaScriptDialogParams;

use super::Tab;
use crate::harness::App;

#[tokio::test]
async fn errors_exceptions_forbidden_scripts_and_dialogs_are_detected() {
    let app = App::start().await;
    // This page may create elements from text; other pages would reject the script below earlier.
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.go("/runs").await;
    tab.assert_no_errors().await;
    tab.eval::<()>(
        "{ console.error('first'); setTimeout(() => { throw new Error('second'); });
         const script = document.createElement('script'); script.textContent = 'window.third = 3';
         document.body.append(script); setTimeout(() => alert('fourth')); null }",
    )
    .await;
    let mut detected = String::new();
    let words = ["first", "second", "Content Security Policy", "fourth"];
    app.until("all errors", async || {
        detected += &tab.errors().join("\n");
        words.iter().all(|word| detected.contains(word)).then_some(())
    })
    .await;
    tab.execute(HandleJavaScriptDialogParams::new(true)).await;
    assert!(tab.eval::<bool>("window.third === undefined").await);
}
