//! What server, agents and commands share that does I/O. What they exchange is in the crate `brewbench-wire`.
//!
//! - [`client`]: HTTP client of a server, for agents and commands; the TLS provider of a process.
//! - [`certificate`]: when a certificate expires.
//! - [`lock`]: one process per folder.

pub mod certificate;
pub mod client;
pub mod lock;
