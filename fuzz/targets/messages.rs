//! Messages between agent and server, and the results that agents upload.

#![no_main]

use brewbench_wire::{job::Job, messages::{AgentMessage, ServerMessage}, outcome::Outcome};
use serde_json::from_slice;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = from_slice::<AgentMessage>(bytes) {
        assert!(serde_json::to_vec(&message).is_ok());
    }
    let _ = from_slice::<ServerMessage>(bytes);
    let _ = from_slice::<Job>(bytes);
    let _ = from_slice::<Outcome>(bytes);
});
