//! The connection to the server.
//!
//! [`session`] decides what to do next, without I/O; [`daemon`] carries it out over the [`link`]. Results wait in the
//! [`spool`] until the [`uploader`] has delivered them.

mod clear;
pub mod daemon;
mod files;
pub mod key;
pub mod link;
mod options;
pub mod session;
pub mod spool;
pub mod state_folder;
pub mod uploader;
