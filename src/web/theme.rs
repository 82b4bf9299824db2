//! Light or dark theme. The user's choice is in a cookie, so that the server can render it.

use std::{fmt, str::FromStr};

use askama::filters::HtmlSafe;
use axum::{extract::Request, middleware::Next, response::Response};
use axum_extra::extract::{
    CookieJar,
    cookie::{Cookie, SameSite},
};
use time::Duration;

/// The name of the cookie.
pub const COOKIE: &str = "brewbench_theme";

/// The chosen theme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// Follows the system.
    #[default]
    System,
    /// Always light.
    Light,
    /// Always dark.
    Dark,
}

impl Theme {
    /// The value in the cookie and in forms.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The value of the `color-scheme` meta element, which avoids a flash before the styles are loaded.
    pub fn supported(self) -> &'static str {
        match self {
            Self::System => "light dark",
            chosen => chosen.as_str(),
        }
    }

    /// The cookie, which lasts a year.
    pub fn cookie(self) -> Cookie<'static> {
        let cookie = Cookie::build((COOKIE, self.as_str())).path("/").http_only(true).same_site(SameSite::Lax);
        cookie.max_age(Duration::days(365)).build()
    }
}

impl FromStr for Theme {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::System, Self::Light, Self::Dark]
            .into_iter()
            .find(|theme| theme.as_str() == text)
            .ok_or_else(|| format!("theme: unknown theme {text:?}, use system, light or dark"))
    }
}

/// Renders the attribute of the root element, if it needs one.
impl fmt::Display for Theme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => Ok(()),
            chosen => write!(f, r#" data-theme="{}""#, chosen.as_str()),
        }
    }
}

/// Consists only of words of this file.
impl HtmlSafe for Theme {}

tokio::task_local! {
    static CHOSEN: Theme;
}

/// Middleware (`axum::middleware::from_fn`): makes the theme available to all templates.
pub async fn remember(request: Request, next: Next) -> Response {
    let jar = CookieJar::from_headers(request.headers());
    let theme = jar.get(COOKIE).and_then(|cookie| cookie.value().parse().ok()).unwrap_or_default();
    CHOSEN.scope(theme, next.run(request)).await
}

/// Returns the theme of the current request.
pub fn chosen() -> Theme {
    CHOSEN.try_with(|theme| *theme).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_words_reach_the_page() {
        assert_eq!("dark".parse::<Theme>().expect("a theme").to_string(), r#" data-theme="dark""#);
        assert_eq!(Theme::System.to_string(), "");
        assert!("dark\" onload=\"x".parse::<Theme>().is_err());
        assert_eq!(chosen(), Theme::System, "the default outside of a request");
    }
}
