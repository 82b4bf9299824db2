//! A Git repository with a server whose response time each commit chooses.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A server that sleeps before it answers.
const SERVER: &str = r#"#!/usr/bin/python3
import http.server, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    def do_GET(self):
        time.sleep(DELAY / 1000)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *ignored):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

const MAKEFILE: &str = "bin/api: server.py\n\tmkdir -p bin\n\tcp server.py bin/api\n\tchmod +x bin/api\n";

/// A repository in a folder.
#[derive(Debug)]
pub struct Repository(PathBuf);

impl Repository {
    /// Creates a repository with a first commit of a server that takes `delay_ms`.
    pub fn new(folder: &Path, delay_ms: f64) -> Self {
        fs::create_dir_all(folder).expect("a folder");
        let repository = Self(folder.to_owned());
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        fs::write(folder.join("Makefile"), MAKEFILE).expect("a file");
        repository.commit("serve", delay_ms);
        repository
    }

    /// Runs Git in the repository. Returns what it prints.
    pub fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]).args(arguments);
        let output = command.current_dir(&self.0).output().expect("git");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Commits a server that takes `delay_ms`. Returns the commit.
    pub fn commit(&self, subject: &str, delay_ms: f64) -> String {
        let server = SERVER.replace("DELAY", &delay_ms.to_string());
        fs::write(self.0.join("server.py"), server).expect("a file");
        // What is built does not depend on it.
        fs::write(self.0.join("NOTES"), subject).expect("a file");
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", subject]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Opens a pull request that branches off `main`: a ref with one commit. Returns the commit.
    pub fn pull_request(&self, number: u32, subject: &str, delay_ms: f64) -> String {
        self.git(&["checkout", "--quiet", "--detach", "main"]);
        let commit = self.commit(subject, delay_ms);
        self.git(&["update-ref", &format!("refs/pull/{number}/head"), &commit]);
        self.git(&["checkout", "--quiet", "main"]);
        commit
    }

    /// The manifest of its server, as a chapter shows it.
    pub fn manifest(&self) -> String {
        let chapter = fs::read_to_string(super::root().join("docs/guide/pull-requests.md")).expect("a chapter");
        let manifest = chapter.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a manifest");
        manifest.replace("/srv/git/api.git", &self.0.display().to_string())
    }
}
