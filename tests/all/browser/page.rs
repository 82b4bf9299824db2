//! A window of the browser with its own cookies, and the user's actions in it.

use std::{
    env, fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use brewbench::auth::{caller::SESSION_COOKIE, model::Role};
use chromiumoxide::{
    Command, Page,
    cdp::{
        browser_protocol::{
            browser::BrowserContextId,
            emulation::{
                MediaFeature, SetDeviceMetricsOverrideParams, SetEmulatedMediaParams, SetFocusEmulationEnabledParams,
            },
            network::SetCookieParams,
            page::NavigateParams,
            target::{CreateBrowserContextParams, CreateTargetParams, DisposeBrowserContextParams},
        },
        js_protocol::runtime::EvaluateParams,
    },
    layout::Point,
    page::ScreenshotParams,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use url::Url;

use super::{chromium::Chromium, page_errors::PageErrors};
use crate::harness::{Actor, App, PATIENCE};

/// A window on the site of a server.
pub struct Tab {
    /// Direct access to the page, for rare actions.
    pub page: Page,
    site: Url,
    errors: Mutex<PageErrors>,
    context: BrowserContextId,
    chromium: Arc<Chromium>,
}

impl Tab {
    /// Opens a window of 1440 px with the light scheme, not logged in.
    pub async fn open(app: &App) -> Self {
        let chromium = Chromium::shared();
        let context = CreateBrowserContextParams::default();
        let context = chromium.remote.create_browser_context(context).await.expect("a context");
        let mut blank = CreateTargetParams::new("about:blank");
        blank.browser_context_id = Some(context.clone());
        let page = chromium.remote.new_page(blank).await.expect("a window");
        let (errors, site) = (Mutex::new(PageErrors::listen(&page).await), Url::clone(&app.state.public_url));
        let tab = Self { page, site, errors, context, chromium };
        // Several windows are used concurrently, each as if it were the only one.
        tab.execute(SetFocusEmulationEnabledParams::new(true)).await;
        tab.set_width(1440).await;
        tab.set_scheme("light").await;
        tab
    }

    /// Opens a window with a session of a new user with this role.
    pub async fn signed_in(app: &App, role: Role) -> Self {
        Self::with_session(app, &app.signed_in(role).await).await
    }

    /// Opens a window with a user's session.
    pub async fn with_session(app: &App, user: &Actor) -> Self {
        let tab = Self::open(app).await;
        tab.set_session(user).await;
        tab
    }

    /// Sets the session cookie.
    pub async fn set_session(&self, user: &Actor) {
        let mut cookie = SetCookieParams::new(SESSION_COOKIE, user.session());
        cookie.url = Some(self.site.to_string());
        self.execute(cookie).await;
    }

    /// Executes a command of the browser.
    pub async fn execute<C: Command>(&self, command: C) -> C::Response {
        let method = command.identifier();
        self.page.execute(command).await.unwrap_or_else(|fault| panic!("{method}: {fault}")).result
    }

    /// Sets the width of the window, px.
    pub async fn set_width(&self, width: i64) {
        self.execute(SetDeviceMetricsOverrideParams::new(width, 900, 1.0, false)).await;
    }

    /// Sets the colour scheme of the system: `light` or `dark`.
    pub async fn set_scheme(&self, scheme: &str) {
        let feature = MediaFeature::new("prefers-color-scheme", scheme);
        self.execute(SetEmulatedMediaParams::builder().features(vec![feature]).build()).await;
    }

    /// Opens a path of the site, or a URL, and waits until the page has loaded.
    pub async fn go(&self, path: &str) {
        let url = self.site.join(path).expect("a valid path");
        let navigated = self.execute(NavigateParams::new(url.as_str())).await;
        assert_eq!(navigated.error_text, None, "{url}");
        self.until("document.readyState === 'complete'").await;
    }

    /// Waits until the page at a path and query has loaded.
    pub async fn wait_for_path(&self, path: &str) {
        let path = Value::from(path);
        self.until(&format!("location.pathname + location.search === {path} && document.readyState === 'complete'"))
            .await;
    }

    /// Evaluates an expression in the page.
    pub async fn eval<T: DeserializeOwned>(&self, expression: &str) -> T {
        let value = self.try_eval(expression).await.unwrap_or_else(|fault| panic!("{expression}: {fault}"));
        serde_json::from_value(value.clone()).unwrap_or_else(|fault| panic!("{expression} → {value}: {fault}"))
    }

    async fn try_eval(&self, expression: &str) -> Result<Value, String> {
        let mut evaluate = EvaluateParams::new(expression);
        (evaluate.await_promise, evaluate.return_by_value) = (Some(true), Some(true));
        let response = self.page.execute(evaluate).await.map_err(|fault| fault.to_string())?.result;
        match response.exception_details {
            Some(details) => Err(details.exception.and_then(|thrown| thrown.description).unwrap_or(details.text)),
            None => Ok(response.result.value.unwrap_or_default()),
        }
    }

    /// Waits until an expression is true in the page, even across reloads.
    pub async fn until(&self, expression: &str) {
        let since = Instant::now();
        loop {
            let value = self.try_eval(expression).await;
            if matches!(value, Ok(Value::Bool(true))) {
                return;
            }
            if since.elapsed() > PATIENCE {
                let page = self.try_eval("location.href + '\\n' + document.body.innerText").await;
                panic!("timed out waiting for {expression}: {value:?} on {page:?}; {:?}", self.errors());
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until an element contains a text. Ignores case, which styles may change.
    pub async fn shows(&self, selector: &str, text: &str) {
        let (selector, text) = (Value::from(selector), Value::from(text.to_lowercase()));
        let texts = format!("[...document.querySelectorAll({selector})].map((e) => e.innerText.toLowerCase())");
        self.until(&format!("{texts}.some((text) => text.includes({text}))")).await;
    }

    /// Clicks an element with the mouse, once nothing covers it.
    pub async fn click(&self, selector: &str) {
        let place = format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{block: 'center'}});
            const r = e.getBoundingClientRect(), at = [r.x + r.width / 2, r.y + r.height / 2];
            return e.contains(document.elementFromPoint(...at)) ? at : null; }})()",
            Value::from(selector)
        );
        self.until(&format!("{place} !== null")).await;
        let [x, y]: [f64; 2] = self.eval(&place).await;
        self.page.click(Point::new(x, y)).await.expect("a click");
    }

    /// Presses a key.
    pub async fn press(&self, key: &str) {
        self.page.find_element("html").await.expect("a page").press_key(key).await.expect("a key");
    }

    /// Types text at the cursor.
    pub async fn type_text(&self, text: &str) {
        self.page.find_element("html").await.expect("a page").type_str(text).await.expect("keys");
    }

    /// Saves a screenshot of the complete page in the folder for screenshots, if it is set.
    pub async fn screenshot(&self, name: &str) {
        let Some(folder) = screenshot_folder() else { return };
        let shot = ScreenshotParams::builder().full_page(true).build();
        let png = self.page.screenshot(shot).await.expect("a screenshot");
        let file = folder.join(format!("{name}.png"));
        fs::write(&file, png).unwrap_or_else(|fault| panic!("{}: {fault}", file.display()));
    }

    /// Returns console errors, exceptions, policy violations and dialogs since the last call.
    pub fn errors(&self) -> Vec<String> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Asserts that the page has caused no errors.
    pub async fn assert_no_errors(&self) {
        // Earlier events have arrived when this returns.
        let at: String = self.eval("location.href").await;
        let errors = self.errors();
        assert!(errors.is_empty(), "{at}: {errors:#?}");
    }
}

/// Returns the folder for screenshots, which `BREWBENCH_SCREENSHOTS` sets.
pub fn screenshot_folder() -> Option<PathBuf> {
    env::var_os("BREWBENCH_SCREENSHOTS").map(PathBuf::from)
}

impl Drop for Tab {
    fn drop(&mut self) {
        self.chromium.execute_blocking(DisposeBrowserContextParams::new(self.context.clone()));
    }
}
