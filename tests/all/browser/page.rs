//! One window of the browser with cookies of its own, and what somebody does in it.

use std::{
    env,
    fmt::Display,
    fs,
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

use super::{chromium::Chromium, told::Told};
use crate::harness::{Actor, App, PATIENCE};

/// A window on one server.
pub struct Tab {
    /// For what is done only once.
    pub page: Page,
    site: Url,
    told: Mutex<Told>,
    context: BrowserContextId,
    chromium: Arc<Chromium>,
}

impl Tab {
    /// Nobody has logged in here. 1440 px wide, light.
    pub async fn open(app: &App) -> Self {
        let chromium = Chromium::shared();
        let context = CreateBrowserContextParams::default();
        let context = chromium.remote.create_browser_context(context).await.expect("a context");
        let mut blank = CreateTargetParams::new("about:blank");
        blank.browser_context_id = Some(context.clone());
        let page = chromium.remote.new_page(blank).await.expect("a window");
        let (told, site) = (Mutex::new(Told::by(&page).await), Url::clone(&app.state.public_url));
        let tab = Self { page, site, told, context, chromium };
        // Several windows are looked at at once, each as if it were the only one.
        tab.ask(SetFocusEmulationEnabledParams::new(true)).await;
        tab.width(1440).await;
        tab.scheme("light").await;
        tab
    }

    /// A person of some role has logged in here.
    pub async fn of(app: &App, role: Role) -> Self {
        Self::with(app, &app.person(role).await).await
    }

    /// Somebody has logged in here.
    pub async fn with(app: &App, person: &Actor) -> Self {
        let tab = Self::open(app).await;
        tab.be(person).await;
        tab
    }

    /// From now on somebody who has logged in elsewhere sits here.
    pub async fn be(&self, person: &Actor) {
        let mut cookie = SetCookieParams::new(SESSION_COOKIE, person.session());
        cookie.url = Some(self.site.to_string());
        self.ask(cookie).await;
    }

    /// Asks the browser for something.
    pub async fn ask<C: Command>(&self, command: C) -> C::Response {
        let method = command.identifier();
        self.page.execute(command).await.unwrap_or_else(|fault| panic!("{method}: {fault}")).result
    }

    /// How wide the window is, px.
    pub async fn width(&self, width: i64) {
        self.ask(SetDeviceMetricsOverrideParams::new(width, 900, 1.0, false)).await;
    }

    /// `light` or `dark`.
    pub async fn scheme(&self, scheme: &str) {
        let feature = MediaFeature::new("prefers-color-scheme", scheme);
        self.ask(SetEmulatedMediaParams::builder().features(vec![feature]).build()).await;
    }

    /// Goes to a path of the site, or to an address, and waits until its page is there.
    pub async fn go(&self, path: &str) {
        let url = self.site.join(path).expect("a path");
        let gone = self.ask(NavigateParams::new(url.as_str())).await;
        assert_eq!(gone.error_text, None, "{url}");
        self.until("document.readyState === 'complete'").await;
    }

    /// Waits until the page of some path and query is there.
    pub async fn lands_at(&self, path: &str) {
        let path = Value::from(path);
        self.until(&format!("location.pathname + location.search === {path} && document.readyState === 'complete'"))
            .await;
    }

    /// What an expression gives in the page.
    pub async fn eval<T: DeserializeOwned>(&self, expression: &str) -> T {
        let value = self.try_eval(expression).await.unwrap_or_else(|fault| panic!("{expression}: {fault}"));
        serde_json::from_value(value.clone()).unwrap_or_else(|fault| panic!("{expression} → {value}: {fault}"))
    }

    async fn try_eval(&self, expression: &str) -> Result<Value, String> {
        let mut ask = EvaluateParams::new(expression);
        (ask.await_promise, ask.return_by_value) = (Some(true), Some(true));
        let told = |fault: &dyn Display| fault.to_string();
        let answer = self.page.execute(ask).await.map_err(|fault| told(&fault))?.result;
        match answer.exception_details {
            Some(details) => Err(details.exception.and_then(|thrown| thrown.description).unwrap_or(details.text)),
            None => Ok(answer.result.value.unwrap_or_default()),
        }
    }

    /// Waits until an expression holds in the page, over reloads as well.
    pub async fn until(&self, expression: &str) {
        let since = Instant::now();
        loop {
            let seen = self.try_eval(expression).await;
            if matches!(seen, Ok(Value::Bool(true))) {
                return;
            }
            if since.elapsed() > PATIENCE {
                let page = self.try_eval("location.href + '\\n' + document.body.innerText").await;
                panic!("waited in vain for {expression}: {seen:?} on {page:?}; {:?}", self.complaints());
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a text can be read in an element; capitals are a matter of style.
    pub async fn says(&self, selector: &str, text: &str) {
        let (selector, text) = (Value::from(selector), Value::from(text.to_lowercase()));
        let said = format!("[...document.querySelectorAll({selector})].map((e) => e.innerText.toLowerCase())");
        self.until(&format!("{said}.some((said) => said.includes({text}))")).await;
    }

    /// Clicks with the mouse, once nothing lies before the element.
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

    /// Types where the cursor is.
    pub async fn write(&self, text: &str) {
        self.page.find_element("html").await.expect("a page").type_str(text).await.expect("keys");
    }

    /// Leaves a picture of the whole page in the folder for pictures, if there is one.
    pub async fn picture(&self, name: &str) {
        let Some(folder) = pictures() else { return };
        let shot = ScreenshotParams::builder().full_page(true).build();
        let png = self.page.screenshot(shot).await.expect("a picture");
        let file = folder.join(format!("{name}.png"));
        fs::write(&file, png).unwrap_or_else(|fault| panic!("{}: {fault}", file.display()));
    }

    /// Errors in the console, exceptions, violated policies and dialogs since the last time.
    pub fn complaints(&self) -> Vec<String> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).complaints()
    }

    /// The page has worked without a complaint.
    pub async fn is_quiet(&self) {
        // What it said before this was answered has come in.
        let at: String = self.eval("location.href").await;
        let complaints = self.complaints();
        assert!(complaints.is_empty(), "{at}: {complaints:#?}");
    }
}

/// Where somebody wants pictures of pages: what `BREWBENCH_SCREENSHOTS` names.
pub fn pictures() -> Option<PathBuf> {
    env::var_os("BREWBENCH_SCREENSHOTS").map(PathBuf::from)
}

impl Drop for Tab {
    fn drop(&mut self) {
        self.chromium.ask_at_the_end(DisposeBrowserContextParams::new(self.context.clone()));
    }
}
