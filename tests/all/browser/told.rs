//! What a page says that nobody should have to hear.

use chromiumoxide::{
    Page,
    cdp::{
        browser_protocol::{log, page::EventJavascriptDialogOpening},
        js_protocol::runtime::{ConsoleApiCalledType, EventConsoleApiCalled, EventExceptionThrown},
    },
    listeners::EventStream,
};
use futures_util::{FutureExt, StreamExt};

/// What a page says to developers and what it opens in front of people.
pub struct Told {
    console: EventStream<EventConsoleApiCalled>,
    exceptions: EventStream<EventExceptionThrown>,
    log: EventStream<log::EventEntryAdded>,
    dialogs: EventStream<EventJavascriptDialogOpening>,
}

impl Told {
    /// All that a page says from now on.
    pub async fn by(page: &Page) -> Self {
        Self {
            console: page.event_listener().await.expect("events"),
            exceptions: page.event_listener().await.expect("events"),
            log: page.event_listener().await.expect("events"),
            dialogs: page.event_listener().await.expect("events"),
        }
    }

    /// Whatever nobody should have had to say, since the last time.
    pub fn complaints(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(Some(said)) = self.console.next().now_or_never() {
            if matches!(said.r#type, ConsoleApiCalledType::Error | ConsoleApiCalledType::Assert) {
                all.push(format!("console: {:?}", said.args));
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
