//! The load generator as a program: reads a plan as JSON from standard input, and writes events as JSON lines to
//! standard output.
//!
//! It exits with 0 if there is a summary, also of a load that was interrupted by SIGTERM or SIGINT, and with 1 and a
//! sentence on standard error otherwise.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::events::Event;
use crate::generator::Generator;
use crate::plan::Plan;
use crate::stop::Stop;
use nix::sys::signal::{SigSet, Signal};
use serde::Deserialize;

/// Runs it.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            // Without standard error, there is nowhere left to report to.
            let _ = writeln!(io::stderr(), "{sentence}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (stop, is_loading) = (Stop::default(), Arc::new(AtomicBool::new(false)));
    stop_on_signals(stop.clone(), Arc::clone(&is_loading))?;
    let mut input = io::stdin().lock();
    let plan = Plan::deserialize(&mut serde_json::Deserializer::from_reader(&mut input));
    let plan = plan.map_err(|error| format!("the plan on standard input can't be read: {error}"))?;
    let generator = Generator::prepare(&plan).map_err(|fault| fault.to_string())?;
    write(&Event::Ready).map_err(|error| format!("the events can't be written: {error}"))?;
    if plan.paused && !wait_for_start(&mut input)? {
        return Ok(());
    }
    drop(input);
    is_loading.store(true, Ordering::SeqCst);
    generator.run(&stop, |event| write(&event)).map_err(|error| error.to_string())
}

/// Waits for the line `start`, and returns false if the input ends before it: nobody needs the load any more.
fn wait_for_start(input: &mut impl BufRead) -> Result<bool, String> {
    for line in input.lines() {
        match line.map_err(|error| format!("standard input can't be read: {error}"))?.trim() {
            "" => {}
            "start" => return Ok(true),
            other => return Err(format!("{other:?} on standard input: write `start`")),
        }
    }
    Ok(false)
}

fn write(event: &Event) -> io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&line)?;
    output.flush()
}

/// Ends the load on SIGTERM and SIGINT, or the program if there is none yet.
fn stop_on_signals(stop: Stop, is_loading: Arc<AtomicBool>) -> Result<(), String> {
    let signals: SigSet = [Signal::SIGTERM, Signal::SIGINT].into_iter().collect();
    let failed = |error: &dyn std::fmt::Display| format!("signals can't be handled: {error}");
    signals.thread_block().map_err(|error| failed(&error))?;
    let wait = move || {
        while signals.wait().is_ok() {
            stop.request();
            if !is_loading.load(Ordering::SeqCst) {
                std::process::exit(0);
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(|error| failed(&error))?;
    Ok(())
}
