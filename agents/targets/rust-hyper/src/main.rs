//! A bundled target: hyper on tokio.
fn main() {}
