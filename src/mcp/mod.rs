//! Tools for assistants that speak the Model Context Protocol, at `/mcp` and by `brewbench mcp`. A tool is one or a few
//! requests to the API with the caller's token, so it may do what the token may do.

mod answer;
pub mod http;
pub mod tools;
