//! The tests would hear it if a page complained.

use brewbench::auth::model::Role;
use chromiumoxide::cdp::browser_protocol::page::HandleJavaScriptDialogParams;

use super::Tab;
use crate::harness::App;

#[tokio::test]
async fn errors_exceptions_forbidden_scripts_and_dialogs_of_a_page_are_heard() {
    let app = App::start().await;
    // A page that may make elements of text: elsewhere the script below is not even made.
    let tab = Tab::of(&app, Role::Viewer).await;
    tab.go("/runs").await;
    tab.is_quiet().await;
    tab.eval::<()>(
        "{ console.error('first'); setTimeout(() => { throw new Error('second'); });
         const script = document.createElement('script'); script.textContent = 'window.third = 3';
         document.body.append(script); setTimeout(() => alert('fourth')); null }",
    )
    .await;
    let mut heard = String::new();
    let words = ["first", "second", "Content Security Policy", "fourth"];
    app.until("all complaints", async || {
        heard += &tab.complaints().join("\n");
        words.iter().all(|word| heard.contains(word)).then_some(())
    })
    .await;
    tab.ask(HandleJavaScriptDialogParams::new(true)).await;
    assert!(tab.eval::<bool>("window.third === undefined").await);
}
