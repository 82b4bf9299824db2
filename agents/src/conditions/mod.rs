//! Under what circumstances a run is measured, as far as only the agent can see.
//!
//! - [`ground`]: waiting until the machine is quiet.
//! - [`clocks`]: whether the machine's clock was set meanwhile.
//! - [`roster`]: who of the target was there at the beginning and is gone at the end.
//!
//! Whether the target still answers as before is asked in [`crate::target`].

pub mod clocks;
pub mod ground;
pub mod roster;
