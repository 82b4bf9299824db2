//! `brewbench target new`

use std::{
    fs::File,
    io::{ErrorKind, Write},
    path::PathBuf,
};

use anyhow::{Context, bail};
use brewbench::catalog::manifest::{TargetManifest, template};
use brewbench_wire::{
    manifest::fill::{self, Assignment},
    target::TargetKind,
};
use clap::Args;

use crate::common::pair;

/// The short flags of frequent values, with the kind they are of unless another one is given.
const SHORT: [(&str, TargetKind); 2] = [("image", TargetKind::Container), ("base", TargetKind::Url)];

/// Values of the manifest.
#[derive(Debug, Args)]
pub struct New {
    /// Name of the target: letters, digits, ., - and _
    name: String,
    /// The program and its arguments; of a container its arguments, of a virtual machine its launcher, of a Pod what
    /// it runs. {port} and {host} are replaced with the address to listen on
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// `process`, `container`, `vm`, `url` or `kubernetes` [default: that of the values, or else process]
    #[arg(long, value_name = "KIND")]
    kind: Option<TargetKind>,
    /// Image of a container, or of a Pod with --kind kubernetes
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// URL of a server that already runs
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// A field of the manifest, as text or TOML, such as ready.path=/health, container.port=8080 or env.MODE=fast;
    /// repeatable. Without any value, a template with comments is written
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = pair)]
    values: Vec<Assignment>,
    /// Write to this new file instead of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl New {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let Self { name, command, kind, image, url, values, output } = self;
        let toml = manifest(&name, kind, [image, url], command, values).map_err(anyhow::Error::msg)?;
        let Some(path) = output else {
            print!("{toml}");
            return Ok(());
        };
        let mut output = match File::create_new(&path) {
            Ok(output) => output,
            Err(fault) if fault.kind() == ErrorKind::AlreadyExists => {
                bail!("{} exists; choose another file or remove it", path.display())
            }
            Err(fault) => return Err(fault).with_context(|| format!("failed to create {}", path.display())),
        };
        output.write_all(toml.as_bytes()).with_context(|| format!("failed to write {}", path.display()))?;
        eprintln!("wrote {0}; `brewbench target check {0}` tries the target once", path.display());
        Ok(())
    }
}

/// Returns the text of the manifest that an agent reads.
fn manifest(
    name: &str,
    kind: Option<TargetKind>,
    short: [Option<String>; SHORT.len()],
    command: Vec<String>,
    values: Vec<Assignment>,
) -> Result<String, String> {
    let given = SHORT.into_iter().zip(short).filter_map(|((field, of), value)| Some((field, of, value?)));
    let mut all: Vec<_> = given.map(|(field, of, value)| (fill::key(kind.unwrap_or(of), field), value)).collect();
    all.extend(values);
    let kind = kind.or_else(|| fill::kind_of(&all)).unwrap_or(TargetKind::Process);
    if !command.is_empty() {
        all.push((fill::key(kind, "command"), fill::list(command)));
    }
    let is_template = all.is_empty();
    all.push(("name".to_owned(), name.to_owned()));
    let TargetManifest { toml, file: _ } = TargetManifest::write(&fill::fill(template(kind), kind, &all)?)?;
    // A valid name is valid in TOML as it is.
    Ok(if is_template { template(kind).replacen("my-server", name, 1) } else { toml })
}
