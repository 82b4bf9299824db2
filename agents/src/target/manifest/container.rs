//! The files of a container: found beside the manifest, and not of the system.

use std::path::{Path, PathBuf};

use brewbench_wire::manifest::{Container, Mount};

/// Folders of the host that give a container power over it, even if they are read-only.
const FORBIDDEN: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/var/run", "/boot"];

/// Resolves the paths of a container. Fails with a sentence if one does not exist or is not for targets.
pub(super) fn resolve(mut container: Container, folder: &Path) -> Result<Container, String> {
    for mount in &mut container.mounts {
        mount.source = source(mount, folder)?;
    }
    if let Some(path) = container.seccomp.as_mut().filter(|name| !["default", "unconfined"].contains(&name.as_str())) {
        let profile = folder.join(&*path).canonicalize();
        let profile = profile.map_err(|error| format!("container.seccomp: {path}: {error}"))?;
        *path =
            profile.into_os_string().into_string().map_err(|path| format!("container.seccomp: {}", path.display()))?;
    }
    Ok(container)
}

fn source(mount: &Mount, folder: &Path) -> Result<PathBuf, String> {
    let source = folder.join(&mount.source);
    let found = source.canonicalize().map_err(|error| format!("container.mounts: {}: {error}", source.display()))?;
    if found == Path::new("/") || FORBIDDEN.iter().any(|forbidden| found.starts_with(forbidden)) {
        return Err(format!(
            "container.mounts: {} is not for targets: mount the files that it needs only",
            found.display()
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(text: &str) -> Result<Container, String> {
        let container: Container = toml::from_str(text).map_err(|error| error.to_string())?;
        match container.fault() {
            Some(fault) => Err(fault),
            None => resolve(container, Path::new("/etc")),
        }
    }

    #[test]
    fn a_profile_that_does_not_exist_names_its_field() {
        let fault = container("image = \"x\"\nport = 1\nseccomp = \"nowhere.json\"").expect_err("a fault");
        assert!(fault.contains("container.seccomp: nowhere.json"), "{fault}");
    }

    #[test]
    fn mounts_are_read_only_and_not_of_the_system() {
        let mount = |mount: &str| container(&format!("image = \"x\"\nport = 1\nmounts = [{{ {mount} }}]"));
        let good = mount("source = \"hostname\", target = \"/data\"").expect("a container");
        assert_eq!(good.mounts[0].source, Path::new("/etc/hostname"));
        for (text, word) in [
            ("source = \"/\", target = \"/host\"", "/ is not for targets"),
            ("source = \"..\", target = \"/host\"", "/ is not for targets"),
            ("source = \"/proc\", target = \"/host\"", "/proc is not for targets"),
            ("source = \"/sys/kernel\", target = \"/x\"", "/sys/kernel is not for targets"),
            ("source = \"/nowhere\", target = \"/x\"", "/nowhere"),
            ("source = \"hostname\", target = \"x\"", "target"),
            ("source = \"hostname\", target = \"/x:rw\"", "target"),
            ("source = \"/a:/b\", target = \"/x\"", "source"),
            ("source = \"hostname\", target = \"/x\", read_only = false", "read_only"),
        ] {
            let fault = mount(text).expect_err(text);
            assert!(fault.contains(word), "{text}: {fault}");
        }
    }
}
