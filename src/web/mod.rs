//! Shared by all pages: layout, static files, security headers and the formatting of figures.

pub mod address;
pub mod assets;
pub mod axis;
pub mod badge;
pub mod card;
pub mod chart;
pub mod command_line;
pub mod confirm;
pub mod errors;
pub mod form;
pub mod format;
pub mod headers;
pub mod host;
pub mod interval_plot;
pub mod live;
pub mod live_shared;
pub mod markdown;
pub mod request;
pub mod series_style;
pub mod shared;
pub mod shared_pages;
pub mod shell;
pub mod sparkline;
pub mod term;
pub mod theme;
pub mod time_ago;
