//! The server process: configuration, database, listener, errors, rate limits, ids, state and startup.

pub mod alert_cache;
pub mod clock;
pub mod config;
pub mod data_folder;
pub mod db;
pub mod error;
pub mod http_metrics;
pub mod ids;
pub mod input;
pub mod listener;
pub mod local_admin;
pub mod logs;
pub mod memory;
pub mod networks;
pub mod open_mark;
mod openapi;
pub mod paging;
pub mod random;
pub mod rate_limit;
pub mod rows;
pub mod search_text;
pub mod secrets_key;
pub mod server;
pub mod signals;
pub mod state;
pub mod tls;
pub mod work_limit;
