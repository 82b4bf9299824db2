//! Search and the command palette.
