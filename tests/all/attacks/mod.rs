//! What an attacker would try, one file a topic. Each of these got through once, or is a neighbour of one that did.

mod authority;
mod catalog;
mod connections;
mod data_folder;
mod encodings;
mod hosts;
mod logins;
mod markup;
mod names;
mod proof;
mod redirects;
mod secrets;
mod uploads;
