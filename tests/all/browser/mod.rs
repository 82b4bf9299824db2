//! The site in a real browser: passkeys by a virtual authenticator, charts, pages that follow, keyboard, narrow windows.

mod chromium;
mod page;
mod passkeys;

pub use page::Tab;
