//! brewbench.
fn main() {}
