//! Errors and dialogs of a page.

use chromiumoxide::{
    Page,
    cdp::{
        browser_protocol::{log, page::EventJavascriptDialogOpening},
        js_protocol::runtime::{ConsoleApiCalledType, EventConsoleApiCalled, EventExceptionThrown},
    },
    listeners::EventStream,
};
use futures_util::{FutureExt, StreamExt};

/// Listens to the console, exceptions, the log and dialogs of a page.
pub struct PageErrors {
    console: EventStream<EventConsoleApiCalled>,
    exceptions: EventStream<EventExceptionThrown>,
    log: EventStream<log::EventEntryAdded>,
    dialogs: EventStream<EventJavascriptDialogOpening>,
}

impl PageErrors {
    /// Starts to listen.
    pub async fn listen(page: &Page) -> Self {
        Self {
            console: page.event_listener().await.expect("events"),
            exceptions: page.event_listener().await.expect("events"),
            log: page.event_listener().await.expect("events"),
            dialogs: page.event_listener().await.expect("events"),
        }
    }

    /// Returns the errors since the last call.
    pub fn take(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(Some(call)) = self.console.next().now_or_never() {
            if matches!(call.r#type, ConsoleApiCalledType::Error | ConsoleApiCalledType::Assert) {
                all.push(format!("console: {:?}", call.args));
            }
        }
        while let Some(Some(thrown)) = self.exceptions.next().now_or_never() {
            all.push(format!("exception: {:?}", thrown.exception_details));
        }
        while let Some(Some(logged)) = self.log.next().now_or_never() {
            let entry = &logged.entry;
            if entry.level == log::LogEntryLevel::Error {
                all.push(format!("{}: {} {:?}", entry.source.as_ref(), entry.text, entry.url));
            }
        }
        while let Some(Some(opened)) = self.dialogs.next().now_or_never() {
            all.push(format!("dialog: {}", opened.message));
        }
        all
    }
}
