//! Tests of the agent from outside, with real k6, real control groups, real containers and real virtual machines. They
//! are one program, because linking it takes longer than most of them.

mod build;
mod cage;
mod containers;
mod distributed;
mod duet;
mod firewall;
mod http_version;
mod k6_flags;
mod load_alone;
mod load_record;
mod native;
mod profiles;
mod runs;
mod sandboxes;
mod series;
mod summary;
mod support;
mod traffic;
mod url;
mod vms;
mod walls;
mod wrk;
