//! JSON API of login and registration, the caller's account, users, tokens and the audit log.

pub mod account;
pub mod audit;
pub mod ceremonies;
pub mod tokens;
pub mod users;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
