//! The whole product from outside: a real server, real requests, the real program.

mod auth;
mod browser;
mod catalog;
mod cli;
mod colours;
mod dashboard;
mod dispatch;
mod environment;
mod experiments;
mod harness;
mod headers;
mod history;
mod import;
mod migrations;
mod new_run;
mod people;
mod plans;
mod processes;
mod provoked;
mod real;
mod routes;
mod runs;
mod series;
mod tidy;
mod tls;
mod verdict;
