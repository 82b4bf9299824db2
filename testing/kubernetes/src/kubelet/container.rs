//! One container of a Pod: waits for its image, runs, exits, and runs again.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use k8s_openapi::{api::core::v1::Container as Spec, jiff::Timestamp};
use uuid::Uuid;

use super::{
    environment::{References, expand, host_name},
    launch::{Mount, Plan, Running, START_ERROR},
    node::ContainerView,
    options::Image,
    probe::Prober,
    volumes::{self, Volumes},
};
use crate::quantity;

/// Time between attempts to pull an image. Kubelets wait for ten seconds and more.
const PULL_RETRY: Duration = Duration::from_secs(2);

/// First pause between restarts, doubled each time. Kubelets begin with ten seconds.
const RESTART: Duration = Duration::from_millis(500);

/// Names of files in the folder of each attempt.
pub const LOG: &str = "log";
pub const MESSAGE: &str = "termination-log";

/// A container and its state.
#[derive(Debug)]
pub struct Container {
    pub spec: Spec,
    pub state: State,
    /// The exit before the last restart.
    pub last: Option<Exit>,
    pub restarts: u32,
    pub image_id: String,
    log: Option<PathBuf>,
    previous_log: Option<PathBuf>,
}

/// What a container does.
#[derive(Debug)]
pub enum State {
    Waiting { reason: &'static str, message: String, until: Instant },
    Running { id: String, started: Timestamp, running: Running, prober: Prober },
    Terminated(Exit),
}

/// How a container has exited.
#[derive(Clone, Debug)]
pub struct Exit {
    pub id: String,
    pub code: i32,
    pub reason: &'static str,
    pub started: Timestamp,
    pub finished: Timestamp,
    /// What the container has written for its status.
    pub message: String,
}

/// Something to report as an event: type, reason and message.
pub type Happened = (&'static str, &'static str, String);

/// What a container needs of its Pod to start.
pub struct Surroundings<'a> {
    pub references: References<'a>,
    pub network: String,
    pub volumes: &'a Volumes,
    pub folder: PathBuf,
}

impl Container {
    /// A container that has not been started.
    pub fn new(spec: Spec) -> Self {
        Self {
            spec,
            state: waiting("ContainerCreating", String::new(), Duration::ZERO),
            last: None,
            restarts: 0,
            image_id: String::new(),
            log: None,
            previous_log: None,
        }
    }

    /// Whether it is to be started now.
    pub fn is_due(&self) -> bool {
        matches!(&self.state, State::Waiting { until, .. } if *until <= Instant::now())
    }

    /// Whether it runs and answers.
    pub fn is_ready(&self) -> bool {
        matches!(&self.state, State::Running { prober, running, .. } if prober.is_ready() && running.has_started())
    }

    /// Whether it runs and its startup probe has succeeded.
    pub fn has_started(&self) -> bool {
        matches!(&self.state, State::Running { prober, .. } if prober.has_started())
    }

    /// Kills it if a probe has failed.
    pub fn check(&mut self) -> Option<Happened> {
        let State::Running { prober, running, .. } = &mut self.state else { return None };
        prober.take_failure().then(|| {
            running.kill();
            let message = format!("Container {} failed a probe, will be restarted", self.spec.name);
            ("Normal", "Killing", message)
        })
    }

    /// Returns how it has exited, if it will not run again.
    pub fn exit(&self) -> Option<&Exit> {
        if let State::Terminated(exit) = &self.state { Some(exit) } else { None }
    }

    /// Returns its processes if it runs.
    pub fn running(&mut self) -> Option<&mut Running> {
        if let State::Running { running, .. } = &mut self.state { Some(running) } else { None }
    }

    /// Returns what is visible from outside.
    pub fn view(&self) -> Option<ContainerView> {
        let (id, running) = match &self.state {
            State::Running { id, running, .. } => (id, Some((running.waiter(), Arc::clone(running.group())))),
            State::Terminated(exit) => (&exit.id, None),
            State::Waiting { .. } => (&self.last.as_ref()?.id, None),
        };
        Some(ContainerView {
            id: id.clone(),
            image: self.spec.image.clone().unwrap_or_default(),
            log: self.log.clone()?,
            previous_log: self.previous_log.clone(),
            running,
        })
    }

    /// Tries to start it.
    pub async fn start(&mut self, surroundings: &Surroundings<'_>) -> Vec<Happened> {
        let name = self.spec.image.clone().unwrap_or_default();
        let Some(image) = surroundings.references.node.options.images.get(&name) else {
            return self.fail_to_pull(&name);
        };
        self.image_id = format!("docker.io/{name}@{}", image.digest(&name));
        match self.launch(image, surroundings).await {
            Ok(()) => {
                let name = &self.spec.name;
                vec![
                    ("Normal", "Created", format!("Created container: {name}")),
                    ("Normal", "Started", format!("Started container {name}")),
                ]
            }
            Err(message) => {
                self.state = waiting("CreateContainerConfigError", message.clone(), Duration::from_secs(1));
                vec![("Warning", "Failed", format!("Error: {message}"))]
            }
        }
    }

    fn fail_to_pull(&mut self, image: &str) -> Vec<Happened> {
        let is_retry = matches!(self.state, State::Waiting { reason: "ErrImagePull", .. });
        if is_retry {
            let message = format!("Back-off pulling image \"{image}\": ErrImagePull: not found");
            self.state = waiting("ImagePullBackOff", message, PULL_RETRY);
            return vec![
                ("Normal", "BackOff", format!("Back-off pulling image \"{image}\"")),
                ("Warning", "Failed", "Error: ImagePullBackOff".to_owned()),
            ];
        }
        let message = format!("failed to pull and unpack image \"{image}\": not found");
        self.state = waiting("ErrImagePull", message.clone(), Duration::from_millis(500));
        vec![
            ("Warning", "Failed", format!("Failed to pull image \"{image}\": {message}")),
            ("Warning", "Failed", "Error: ErrImagePull".to_owned()),
        ]
    }

    async fn launch(&mut self, image: &Image, surroundings: &Surroundings<'_>) -> Result<(), String> {
        let Surroundings { references, network, volumes, folder } = surroundings;
        let id = Uuid::new_v4().simple().to_string();
        let environment = references.environment(&self.spec).await?;
        let folder = folder.join(format!("{}-{}", self.spec.name, self.restarts));
        let mut mounts = volumes::own_files(references, &self.spec, &folder).map_err(|error| error.to_string())?;
        for (file, target) in &image.files {
            let source = file.canonicalize().map_err(|error| format!("{}: {error}", file.display()))?;
            mounts.push(Mount { source, target: target.clone(), read_only: true });
        }
        mounts.extend(volumes::mounts(volumes, &self.spec)?);
        let plan = Plan {
            log: folder.join(LOG),
            folder,
            network: network.clone(),
            host_name: host_name(references.pod),
            working_folder: self.spec.working_dir.clone().unwrap_or_else(|| "/".to_owned()),
            words: words(&self.spec, image, &environment),
            environment,
            mounts,
        };
        let group = references.node.groups.open(&id, quantity::limits(self.spec.resources.as_ref()));
        let running = group.and_then(|group| Running::start(&plan, group)).map_err(|error| error.to_string())?;
        self.previous_log = self.log.replace(plan.log);
        let prober = Prober::start(&self.spec, references.address, running.waiter());
        self.state = State::Running { id, started: Timestamp::now(), running, prober };
        Ok(())
    }

    /// Notices an exit. With `restart_policy`, the container may run again.
    pub fn reap(&mut self, restart_policy: Option<&str>) {
        let State::Running { id, started, running, .. } = &mut self.state else { return };
        let Some(code) = running.exit_code() else { return };
        let reason = match code {
            0 => "Completed",
            _ if running.group().usage().oom_kills > 0 => "OOMKilled",
            START_ERROR => "StartError",
            _ => "Error",
        };
        let finished = Timestamp::now();
        let message = message(&self.spec, self.log.as_deref(), code);
        let exit = Exit { id: id.clone(), code, reason, started: *started, finished, message };
        let restarts = match restart_policy {
            None | Some("Never") => false,
            Some("OnFailure") => code != 0,
            Some(_) => true,
        };
        if !restarts {
            self.state = State::Terminated(exit);
            return;
        }
        // A kubelet restarts at once the first time.
        let pause = if self.restarts == 0 { Duration::ZERO } else { RESTART * (1 << self.restarts.min(4)) };
        let message = format!("back-off {pause:?} restarting failed container={}", self.spec.name);
        self.state = waiting("CrashLoopBackOff", message, pause);
        self.last = Some(exit);
        self.restarts += 1;
    }
}

fn waiting(reason: &'static str, message: String, pause: Duration) -> State {
    State::Waiting { reason, message, until: Instant::now() + pause }
}

/// Returns the program and its arguments.
fn words(spec: &Spec, image: &Image, environment: &[(String, String)]) -> Vec<String> {
    let expanded = |words: &[String]| words.iter().map(|word| expand(word, environment)).collect::<Vec<_>>();
    let command = spec.command.as_deref().filter(|command| !command.is_empty());
    let arguments = spec.args.as_deref().filter(|arguments| !arguments.is_empty());
    let defaults = if command.is_none() { image.arguments.clone() } else { Vec::new() };
    let mut words = command.map_or_else(|| image.entrypoint.clone(), expanded);
    words.extend(arguments.map_or(defaults, expanded));
    words
}

/// Returns what the container has written for its status: by itself, or at the end of its log.
fn message(spec: &Spec, log: Option<&Path>, code: i32) -> String {
    let read = |path: PathBuf| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let Some(log) = log else { return String::new() };
    let written = read(log.with_file_name(MESSAGE));
    if !written.is_empty() || code == 0 || spec.termination_message_policy.as_deref() != Some("FallbackToLogsOnError") {
        return written.chars().take(4096).collect();
    }
    let log = read(log.to_owned());
    let start = log.char_indices().rev().nth(2047).map_or(0, |(index, _)| index);
    log[start..].to_owned()
}
