//! The daemon on a benchmark machine, and everything that crosses the wire between it, the server and the commands.
//!
//! - [`wire`]: jobs, outcomes, messages, k6's summaries: plain data.
//! - [`scenarios`]: the k6 scripts that come with the program.
//! - [`session`]: what to do next, decided without I/O; [`daemon`] carries it out.
//! - [`link`]: the connection to the server; [`spool`] and [`courier`]: results on their way home; [`client`]: HTTP.
//! - [`work`]: one run from its job to its outcome; what follows is what it is made of.
//! - [`gates`]: where those who do a run together wait for each other; [`reach`]: whom an agent may load.
//! - [`feasible`]: whether this machine can do a job.
//! - [`target`]: manifests; start a target, know that it serves, say why it died.
//! - [`inspection`]: let k6 look at a script before anybody runs it.
//! - [`k6`]: find k6, run a scenario with it, hand back its summary.
//! - [`series`]: what happens during a run, second by second.
//! - [`sandbox`]: machine sizes by control groups; who gets which cores.
//! - [`cage`]: what k6 and targets may do on this machine.
//! - [`certificate`]: when a server's certificate ends.
//! - [`state_folder`]: closed to other users; [`key`]: the agent's own key; [`lock`]: one process a folder.
//! - [`doctor`]: whether this machine is fit for an agent, before there is one.
//! - [`process`]: start a program in its group and on its cores, end it whole.
//! - [`failure`]: why nothing came of a run.
//! - [`text`]: what others wrote, made fit for sentences; [`encoding`]: as it comes in files.
//! - [`conditions`]: a quiet machine before the load, and what else only the agent can see of a run's circumstances.
//! - [`machine`]: what this machine is; [`environment`]: all about it that may have an influence on a run.
//! - [`steady`]: frequency and turbo of the processors, for the time of a run.
//! - [`leftovers`]: what an earlier life of the agent left, removed.

pub mod cage;
pub mod certificate;
pub mod client;
pub mod conditions;
pub mod courier;
pub mod daemon;
pub mod doctor;
pub mod encoding;
pub mod environment;
pub mod failure;
pub mod feasible;
pub mod gates;
pub mod inspection;
pub mod k6;
pub mod key;
pub mod leftovers;
pub mod link;
pub mod lock;
pub mod machine;
pub mod process;
mod procfs;
pub mod reach;
pub mod sandbox;
pub mod scenarios;
pub mod series;
pub mod session;
pub mod spool;
pub mod state_folder;
pub mod steady;
pub mod target;
pub mod text;
pub mod wire;
pub mod work;
