//! What somebody who means harm tries, and what comes of it.

mod data_folder;
mod hosts;
