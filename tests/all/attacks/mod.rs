//! Attacks, one file per topic. Each one succeeded once, or is a variant of one that did.

mod authority;
mod catalog;
mod connections;
mod damage;
mod data_folder;
mod encodings;
mod hostile_agents;
mod hosts;
mod links;
mod logins;
mod markup;
mod names;
mod notices;
mod proof;
mod redirects;
mod secrets;
mod uploads;
mod work;
