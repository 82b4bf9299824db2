//! Certificates, tokens and kubeconfigs of one cluster.

use std::{fs, io, net::Ipv4Addr, path::Path};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::json;
use uuid::Uuid;

/// The user who may do everything.
pub const ADMIN: &str = "admin";

/// Users besides the admin. They may do nothing until a test gives them a role.
pub const USERS: [&str; 2] = ["agent", "other"];

/// Tokens of the users, and the authority that has signed the API server's certificate.
#[derive(Debug)]
pub struct Credentials {
    authority: String,
    tokens: Vec<(&'static str, String)>,
}

impl Credentials {
    /// Creates all files that the control plane reads: `ca.pem`, `server.pem`, `server.key`, `accounts.pem`,
    /// `accounts.key` and `tokens.csv`.
    pub fn create(folder: &Path, address: Ipv4Addr, service: Ipv4Addr) -> io::Result<Self> {
        let mut params = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "brewbench test cluster");
        let authority = CertifiedIssuer::self_signed(params, new_key()?).map_err(io::Error::other)?;

        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let names = names.iter().map(|&name| name.to_owned()).chain([address.to_string(), service.to_string()]);
        let params = CertificateParams::new(names.collect::<Vec<_>>()).map_err(io::Error::other)?;
        let (server_key, accounts) = (new_key()?, new_key()?);
        let server = params.signed_by(&server_key, &authority).map_err(io::Error::other)?;

        let users = [ADMIN].into_iter().chain(USERS);
        let tokens: Vec<_> = users.map(|user| (user, Uuid::new_v4().simple().to_string())).collect();
        let line = |(user, token): &(&str, String)| {
            let groups = if *user == ADMIN { ",system:masters" } else { "" };
            format!("{token},{user},{user}{groups}\n")
        };
        let files = [
            ("ca.pem", authority.pem()),
            ("server.pem", server.pem()),
            ("server.key", server_key.serialize_pem()),
            ("accounts.pem", accounts.public_key_pem()),
            ("accounts.key", accounts.serialize_pem()),
            ("tokens.csv", tokens.iter().map(line).collect()),
        ];
        for (name, content) in files {
            fs::write(folder.join(name), content)?;
        }
        Ok(Self { authority: authority.pem(), tokens })
    }

    /// Returns the token of a user.
    pub fn token(&self, user: &str) -> Option<&str> {
        self.tokens.iter().find(|(name, _)| *name == user).map(|(_, token)| token.as_str())
    }

    /// Returns a kubeconfig, in JSON, which is YAML too.
    pub fn kubeconfig(&self, server: &str, user: &str, token: &str) -> String {
        use k8s_openapi::ByteString;
        let cluster = json!({
            "server": server,
            "certificate-authority-data": ByteString(self.authority.clone().into_bytes()),
        });
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user, "namespace": "default"}}],
            "current-context": "test",
        });
        format!("{config:#}\n")
    }
}

fn new_key() -> io::Result<KeyPair> {
    KeyPair::generate().map_err(io::Error::other)
}
