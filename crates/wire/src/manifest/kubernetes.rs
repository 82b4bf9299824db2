//! `[kubernetes]` of a manifest: what runs in the Pod of a target.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `[kubernetes]` in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KubernetesFile {
    /// Name of its image; null with a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// A file with a Pod or a Pod template, as YAML, relative to the manifest's folder; null with an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub template: Option<PathBuf>,
    /// The port it listens on.
    pub port: u16,
    /// Program and arguments instead of those of the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Labels that its node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that it tolerates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Runtime class; null for the cluster's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_class: Option<String>,
    /// Secrets of the namespace that allow to pull the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pull_secrets: Vec<String>,
    /// Whether the load goes through a Service and not directly to the Pod.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub service: bool,
}

/// A taint that is tolerated, in the words of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Toleration {
    /// Key of the taint; null for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `Equal` or `Exists`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// Value of the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`; null for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
}

impl KubernetesFile {
    /// Returns what is wrong; the sentence starts with the field.
    pub fn fault(&self) -> Option<String> {
        let Self { image, template, port, .. } = self;
        if *port == 0 {
            return Some("kubernetes.port: must be 1 to 65535".to_owned());
        }
        match (image, template) {
            (None, None) => Some("kubernetes.image: name an image, or a Pod template".to_owned()),
            (Some(_), Some(_)) => Some("kubernetes.image: remove it; the template names the image".to_owned()),
            (Some(image), None) if image.trim().is_empty() || image.contains(char::is_whitespace) => {
                Some("kubernetes.image: must be the name of an image".to_owned())
            }
            (None, Some(_)) => self.beside_template(),
            (Some(_), None) => None,
        }
    }

    /// Finds a field that a template has itself.
    fn beside_template(&self) -> Option<String> {
        let given = [
            ("command", !self.command.is_empty()),
            ("env", !self.env.is_empty()),
            ("node_selector", !self.node_selector.is_empty()),
            ("tolerations", !self.tolerations.is_empty()),
            ("runtime_class", self.runtime_class.is_some()),
            ("pull_secrets", !self.pull_secrets.is_empty()),
        ];
        let (field, _) = given.into_iter().find(|(_, is_given)| *is_given)?;
        Some(format!("kubernetes.{field}: write it in the template"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> KubernetesFile {
        toml::from_str(text).expect("TOML")
    }

    #[test]
    fn faults_name_their_field() {
        for (text, words) in [
            ("port = 80", "kubernetes.image: name an image"),
            ("port = 0\nimage = \"a\"", "kubernetes.port: "),
            ("port = 80\nimage = \"a b\"", "kubernetes.image: must be"),
            ("port = 80\nimage = \"a\"\ntemplate = \"b\"", "kubernetes.image: remove it"),
            ("port = 80\ntemplate = \"b\"\nenv = { A = \"1\" }", "kubernetes.env: write it in the template"),
        ] {
            let fault = file(text).fault().unwrap_or_default();
            assert!(fault.starts_with(words), "{text}: {fault}");
        }
    }
}
