//! JSON of login and registration, of one's own account, of people, tokens and the audit log.

pub mod account;
pub mod audit;
pub mod ceremonies;
pub mod people;
pub mod tokens;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
