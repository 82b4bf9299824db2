//! What somebody who means harm tries, and what comes of it.

mod connections;
mod data_folder;
mod encodings;
mod hosts;
mod logins;
mod uploads;
