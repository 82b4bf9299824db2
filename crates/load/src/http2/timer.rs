//! A timer that is precise to microseconds; tokio's counts milliseconds.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::net::unix::pipe::Receiver;

/// A timer.
pub struct Timer {
    timer: TimerFd,
    /// The same timer: eight bytes can be read when its time has come.
    ticks: Receiver,
}

impl Timer {
    /// Creates it.
    pub fn new() -> io::Result<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        let ticks = Receiver::from_owned_fd_unchecked(timer.as_fd().try_clone_to_owned()?)?;
        Ok(Self { timer, ticks })
    }

    /// Waits for some time.
    pub async fn wait(&self, ns: u64) -> io::Result<()> {
        let time = TimeSpec::from_duration(Duration::from_nanos(ns));
        self.timer.set(Expiration::OneShot(time), TimerSetTimeFlags::empty())?;
        loop {
            self.ticks.readable().await?;
            match self.ticks.try_read(&mut [0; 8]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read.map(|_| ()),
            }
        }
    }
}
