//! Environment variables and words of a container, with what they refer to.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVarSource, Pod, Secret};
use kube::{Api, ResourceExt};

use super::node::Node;

/// The variables that every container has; this machine's own are not passed on.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The values of references to the Pod and its namespace.
pub struct References<'a> {
    pub node: &'a Node,
    pub pod: &'a Pod,
    pub address: Ipv4Addr,
}

impl References<'_> {
    /// Returns all variables of a container; fails, with a message for the status, if one refers to nothing.
    pub async fn environment(&self, container: &Container) -> Result<Vec<(String, String)>, String> {
        let (host, port) = self.node.api.clone();
        let mut all = vec![
            ("PATH".to_owned(), PATH.to_owned()),
            ("HOME".to_owned(), "/root".to_owned()),
            ("HOSTNAME".to_owned(), host_name(self.pod)),
            ("KUBERNETES_SERVICE_HOST".to_owned(), host),
            ("KUBERNETES_SERVICE_PORT".to_owned(), port),
        ];
        for from in container.env_from.as_deref().unwrap_or_default() {
            let prefix = from.prefix.clone().unwrap_or_default();
            let mut data = Vec::new();
            if let Some(source) = &from.config_map_ref {
                data.extend(self.config_map(&source.name, source.optional).await?);
            }
            if let Some(source) = &from.secret_ref {
                data.extend(self.secret(&source.name, source.optional).await?);
            }
            all.extend(data.into_iter().map(|(key, value)| (format!("{prefix}{key}"), text(&value))));
        }
        for variable in container.env.as_deref().unwrap_or_default() {
            let value = match &variable.value_from {
                Some(source) => self.value(source).await?,
                None => Some(expand(variable.value.as_deref().unwrap_or_default(), &all)),
            };
            all.extend(value.map(|value| (variable.name.clone(), value)));
        }
        Ok(all)
    }

    async fn value(&self, source: &EnvVarSource) -> Result<Option<String>, String> {
        let (data, key, optional) = if let Some(field) = &source.field_ref {
            return self.field(&field.field_path).map(Some);
        } else if let Some(source) = &source.config_map_key_ref {
            (self.config_map(&source.name, source.optional).await?, &source.key, source.optional)
        } else if let Some(source) = &source.secret_key_ref {
            (self.secret(&source.name, source.optional).await?, &source.key, source.optional)
        } else {
            return Err("a test kubelet knows no such source of a variable".to_owned());
        };
        match data.into_iter().find(|(name, _)| name == key) {
            Some((_, value)) => Ok(Some(text(&value))),
            None if optional == Some(true) => Ok(None),
            None => Err(format!("couldn't find key {key}")),
        }
    }

    /// Returns a field of the Pod by its path.
    pub fn field(&self, path: &str) -> Result<String, String> {
        let entry = |name: &str| path.strip_prefix(&format!("metadata.{name}['"))?.strip_suffix("']");
        if let Some(key) = entry("labels") {
            return Ok(self.pod.labels().get(key).cloned().unwrap_or_default());
        }
        if let Some(key) = entry("annotations") {
            return Ok(self.pod.annotations().get(key).cloned().unwrap_or_default());
        }
        let spec = self.pod.spec.as_ref();
        Ok(match path {
            "metadata.name" => self.pod.name_any(),
            "metadata.namespace" => self.pod.namespace().unwrap_or_default(),
            "metadata.uid" => self.pod.uid().unwrap_or_default(),
            "spec.nodeName" => self.node.options.name.clone(),
            "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()).unwrap_or_default(),
            "status.podIP" | "status.podIPs" => self.address.to_string(),
            "status.hostIP" | "status.hostIPs" => self.node.address.ip().to_string(),
            _ => return Err(format!("a test kubelet knows no field {path}")),
        })
    }

    /// Returns the content of a `ConfigMap`.
    pub async fn config_map(&self, name: &str, optional: Option<bool>) -> Result<Vec<(String, Vec<u8>)>, String> {
        let maps: Api<ConfigMap> = Api::namespaced(self.node.client.clone(), &self.namespace());
        match maps.get_opt(name).await {
            Ok(Some(map)) => {
                let texts = map.data.into_iter().flatten().map(|(key, value)| (key, value.into_bytes()));
                let bytes = map.binary_data.into_iter().flatten().map(|(key, value)| (key, value.0));
                Ok(texts.chain(bytes).collect())
            }
            Ok(None) if optional == Some(true) => Ok(Vec::new()),
            Ok(None) => Err(format!("configmap \"{name}\" not found")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the content of a `Secret`.
    pub async fn secret(&self, name: &str, optional: Option<bool>) -> Result<Vec<(String, Vec<u8>)>, String> {
        let secrets: Api<Secret> = Api::namespaced(self.node.client.clone(), &self.namespace());
        match secrets.get_opt(name).await {
            Ok(Some(secret)) => Ok(secret.data.into_iter().flatten().map(|(key, value)| (key, value.0)).collect()),
            Ok(None) if optional == Some(true) => Ok(Vec::new()),
            Ok(None) => Err(format!("secret \"{name}\" not found")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the namespace of the Pod.
    pub fn namespace(&self) -> String {
        self.pod.namespace().unwrap_or_default()
    }
}

/// Returns the host name of a Pod.
pub fn host_name(pod: &Pod) -> String {
    let chosen = pod.spec.as_ref().and_then(|spec| spec.hostname.clone());
    chosen.unwrap_or_else(|| pod.name_any().chars().take(63).collect())
}

/// Replaces `$(NAME)` by the value of a variable; what names none stays, and `$$` is a dollar sign.
pub fn expand(text: &str, variables: &[(String, String)]) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let name = after.strip_prefix('(').and_then(|after| after.split_once(')'));
        let value = name.and_then(|(name, rest)| {
            let (_, value) = variables.iter().rev().find(|(variable, _)| variable == name)?;
            Some((value, rest))
        });
        if let Some((value, after)) = value {
            expanded.push_str(value);
            rest = after;
        } else {
            expanded.push('$');
            rest = after.strip_prefix('$').unwrap_or(after);
        }
    }
    expanded + rest
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_as_kubernetes_does() {
        let variables = [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "x".to_owned())];
        assert_eq!(expand("$(A)-$(B) $(C) $$(A) $A 5$", &variables), "1-x $(C) $(A) $A 5$");
    }
}
