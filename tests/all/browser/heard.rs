//! The tests would hear it if a page complained.

use chromiumoxide::cdp::browser_protocol::page::HandleJavaScriptDialogParams;

use super::Tab;
use crate::harness::App;

#[tokio::test]
async fn errors_exceptions_forbidden_scripts_and_dialogs_of_a_page_are_heard() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    tab.go("/login").await;
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
