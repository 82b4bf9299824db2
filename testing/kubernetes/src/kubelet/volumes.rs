//! Volumes of a Pod, as folders of this machine.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::{Container, DownwardAPIVolumeFile, KeyToPath, ServiceAccount, Volume, VolumeProjection},
};
use kube::{Api, api::PostParams};

use super::{
    container::MESSAGE,
    environment::{References, host_name},
    launch::Mount,
};

/// Folders of volumes by name.
pub type Volumes = BTreeMap<String, PathBuf>;

type Files = Vec<(String, Vec<u8>)>;

/// Creates the volumes of a Pod below a folder; fails, with a message for an event, if one refers to nothing.
pub async fn create(references: &References<'_>, folder: &Path) -> Result<Volumes, String> {
    let spec = references.pod.spec.as_ref();
    let mut created = Volumes::new();
    for volume in spec.and_then(|spec| spec.volumes.as_deref()).unwrap_or_default() {
        let path = match volume.host_path.as_ref() {
            Some(host) => PathBuf::from(&host.path),
            None => folder.join(&volume.name),
        };
        let write = |files: Files| write(&path, &files).map_err(|error| format!("{}: {error}", path.display()));
        write(content(references, volume).await?)?;
        created.insert(volume.name.clone(), path);
    }
    Ok(created)
}

async fn content(references: &References<'_>, volume: &Volume) -> Result<Files, String> {
    if let Some(source) = &volume.config_map {
        let data = references.config_map(&source.name, source.optional).await?;
        return select(data, source.items.as_deref());
    }
    if let Some(source) = &volume.secret {
        let data = references.secret(source.secret_name.as_deref().unwrap_or_default(), source.optional).await?;
        return select(data, source.items.as_deref());
    }
    if let Some(source) = &volume.downward_api {
        return downward(references, source.items.as_deref());
    }
    let mut files = Files::new();
    let sources = volume.projected.as_ref().and_then(|projected| projected.sources.as_deref());
    for source in sources.unwrap_or_default() {
        files.extend(projection(references, source).await?);
    }
    Ok(files)
}

async fn projection(references: &References<'_>, source: &VolumeProjection) -> Result<Files, String> {
    if let Some(source) = &source.config_map {
        return select(references.config_map(&source.name, source.optional).await?, source.items.as_deref());
    }
    if let Some(source) = &source.secret {
        return select(references.secret(&source.name, source.optional).await?, source.items.as_deref());
    }
    if let Some(source) = &source.downward_api {
        return downward(references, source.items.as_deref());
    }
    let Some(source) = &source.service_account_token else { return Ok(Files::new()) };
    let accounts: Api<ServiceAccount> = Api::namespaced(references.node.client.clone(), &references.namespace());
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            audiences: source.audience.clone().map(|audience| vec![audience]),
            expiration_seconds: source.expiration_seconds,
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let account = references.field("spec.serviceAccountName")?;
    let answer = accounts.create_token_request(&account, &PostParams::default(), &request).await;
    let status = answer.map_err(|error| error.to_string())?.status;
    Ok(vec![(source.path.clone(), status.and_then(|status| status.token).unwrap_or_default().into_bytes())])
}

/// Picks the entries that a volume names; without names, all.
fn select(data: Files, items: Option<&[KeyToPath]>) -> Result<Files, String> {
    let Some(items) = items else { return Ok(data) };
    let pick = |item: &KeyToPath| {
        let found = data.iter().find(|(key, _)| *key == item.key);
        found
            .map(|(_, value)| (item.path.clone(), value.clone()))
            .ok_or_else(|| format!("references non-existent config key: {}", item.key))
    };
    items.iter().map(pick).collect()
}

fn downward(references: &References<'_>, items: Option<&[DownwardAPIVolumeFile]>) -> Result<Files, String> {
    let value = |item: &DownwardAPIVolumeFile| {
        let path = item.field_ref.as_ref().map(|field| field.field_path.as_str()).unwrap_or_default();
        Ok((item.path.clone(), references.field(path)?.into_bytes()))
    };
    items.unwrap_or_default().iter().map(value).collect()
}

fn write(folder: &Path, files: &[(String, Vec<u8>)]) -> io::Result<()> {
    if !folder.is_file() {
        fs::create_dir_all(folder)?;
    }
    for (path, content) in files {
        let path = folder.join(path);
        if let Some(above) = path.parent() {
            fs::create_dir_all(above)?;
        }
        fs::write(path, content)?;
    }
    Ok(())
}

/// Creates the files that a kubelet puts into every container.
///
/// `folder` is that of one attempt. There is no DNS, and waiting for it would take seconds.
pub fn own_files(references: &References<'_>, container: &Container, folder: &Path) -> io::Result<Vec<Mount>> {
    let (address, name) = (references.address, host_name(references.pod));
    let hosts = format!("127.0.0.1\tlocalhost\n::1\tlocalhost\n{address}\t{name}\n");
    let message = container.termination_message_path.as_deref().unwrap_or("/dev/termination-log");
    fs::create_dir_all(folder)?;
    let files = [
        ("hosts", hosts.as_str(), "/etc/hosts"),
        ("resolv.conf", "# A test cluster has no DNS.\n", "/etc/resolv.conf"),
        (MESSAGE, "", message),
    ];
    let mount = |(name, content, target): (&str, &str, &str)| {
        let source = folder.join(name);
        fs::write(&source, content)?;
        Ok(Mount { source, target: target.to_owned(), read_only: false })
    };
    files.into_iter().map(mount).collect()
}

/// Returns what a container mounts; fails if it names no volume of the Pod.
pub fn mounts(volumes: &Volumes, container: &Container) -> Result<Vec<Mount>, String> {
    let mounts = container.volume_mounts.iter().flatten().map(|mount| {
        let volume = volumes.get(&mount.name).ok_or_else(|| format!("no volume {}", mount.name))?;
        let source = mount.sub_path.as_ref().map_or_else(|| volume.clone(), |path| volume.join(path));
        if !source.exists() {
            fs::create_dir_all(&source).map_err(|error| error.to_string())?;
        }
        Ok(Mount { source, target: mount.mount_path.clone(), read_only: mount.read_only == Some(true) })
    });
    mounts.collect()
}
