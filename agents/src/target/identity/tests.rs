//! What changes the identity of a target, for each way to start a program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use brewbench_wire::target::Code;

use super::*;

/// A folder of manifests.
struct Folder(tempfile::TempDir);

impl Folder {
    /// Returns a folder with interpreters, because those of a machine may be missing or slow to ask.
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        folder.write_interpreters();
        folder
    }

    fn write_interpreters(&self) {
        for name in ["java", "node", "python3"] {
            self.write(&format!("fake/{name}"), "binary");
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }

    /// Writes a manifest; `more` are lines before its tables.
    fn target(&self, name: &str, command: &[&str], more: &str) {
        let text = format!(
            "name = \"{name}\"\nversion = \"1\"\ncommand = {command:?}\n{more}\n[ready]\npath = \"/\"\n[env]\nP = \"{{port}}\"\n"
        );
        self.write(&format!("{name}.toml"), &text);
    }

    fn code(&self, name: &str) -> Code {
        let (all, errors) = manifest::load(self.path());
        assert!(errors.is_empty(), "{errors:?}");
        let own = all.iter().find(|manifest| manifest.name == name).expect("a manifest");
        let found = identify(own, &all, &Fingerprints::default()).expect("an identity");
        found.identity.code().expect("a code").clone()
    }

    /// Asserts that the identity of a target changes with each of these files, and not with their times.
    fn follows(&self, name: &str, files: &[&str]) {
        for file in files {
            let before = self.code(name);
            assert_eq!(before.unknown, None, "{name}");
            let (path, text) = (self.path().join(file), fs::read_to_string(self.path().join(file)).expect("a file"));
            let opened = fs::File::options().write(true).open(&path).expect("a file");
            opened.set_modified(SystemTime::now() - Duration::from_hours(1)).expect("a time");
            assert_eq!(self.code(name), before, "{name}: only the time of {file} differs");
            fs::write(&path, format!("{text}#")).expect("a file");
            assert_ne!(self.code(name), before, "{name}: {file} differs");
            fs::write(&path, text).expect("a file");
            assert_eq!(self.code(name), before, "{name}: {file} is as before");
        }
    }
}

#[test]
fn a_script_is_identified_with_the_modules_beside_it() {
    let folder = Folder::new();
    for file in ["app.py", "util.py", "lib/deep.py", "page.html"] {
        folder.write(file, "x = 1\n");
    }
    folder.target("a", &["fake/python3", "app.py", "{port}"], "");
    folder.follows("a", &["app.py", "util.py", "lib/deep.py", "page.html"]);
    let before = folder.code("a");
    folder.write("__pycache__/util.pyc", "1");
    folder.write("out.log", "1");
    assert_eq!(folder.code("a"), before, "by-products");
}

#[test]
fn a_jar_a_wrapper_a_shell_text_and_a_module_are_identified() {
    let folder = Folder::new();
    for (name, command, files) in [
        ("jar", &["fake/java", "-Xmx1g", "-jar", "quarkus/run.jar"][..], &["quarkus/run.jar", "quarkus/lib/a.jar"][..]),
        ("wrapper", &["./start.sh", "{port}"], &["start.sh", "bin/server", "conf.json"]),
        ("text", &["sh", "-c", "cd sub && exec env A=1 ./serve --config=c.toml"], &["sub/serve", "sub/c.toml"]),
        ("module", &["fake/python3", "-m", "pkg.main", "{port}"], &["pkg/main.py", "pkg/other.py"]),
        ("nested", &["taskset", "-c", "0", "sh", "run.sh"], &["run.sh", "node_app/index.js", "node_app/dep.js"]),
        ("script", &["tools/serve.py"], &["tools/serve.py", "tools/helper.py"]),
    ] {
        let _ = fs::remove_dir_all(folder.path());
        fs::create_dir(folder.path()).expect("a folder");
        folder.write_interpreters();
        for file in files {
            folder.write(file, "x\n");
        }
        folder.write("start.sh", "#!/bin/sh\nset -e\nexec bin/server --config conf.json\n");
        folder.write("run.sh", "exec ./fake/node node_app/index.js\n");
        folder.write("tools/serve.py", "#!/bin/cat\nimport helper\n");
        folder.target(name, command, "");
        folder.follows(name, files);
    }
}

#[test]
fn arguments_and_variables_are_part_of_the_identity() {
    let folder = Folder::new();
    folder.write("server", "binary");
    folder.target("a", &["./server", "--threads", "2"], "");
    let first = folder.code("a");
    folder.target("a", &["./server", "--threads", "4"], "");
    let second = folder.code("a");
    folder.target("a", &["./server", "--threads", "4"], "description = \"x\"");
    assert!(first != second && folder.code("a") == second, "the description does not matter");
    let text = fs::read_to_string(folder.path().join("a.toml")).expect("a manifest");
    folder.write("a.toml", &format!("{text}LEVEL = \"debug\"\n"));
    assert_ne!(folder.code("a"), second);
}

#[test]
fn a_change_of_one_target_does_not_change_the_others_of_its_folder() {
    let folder = Folder::new();
    for file in ["bin/one", "bin/two", "a.py", "b.py", "shared.py", "c/app.py", "c/util.py", "apps/d.py", "apps/e.py"] {
        folder.write(file, "x");
    }
    folder.target("one", &["bin/one"], "");
    folder.target("two", &["bin/two"], "");
    folder.target("c", &["fake/python3", "c/app.py"], "");
    folder.target("a", &["fake/python3", "a.py"], "");
    folder.target("b", &["fake/python3", "b.py"], "");
    folder.target("d", &["fake/python3", "apps/d.py"], "");
    folder.target("e", &["fake/python3", "apps/e.py"], "");
    folder.write("apps/both.py", "x");
    let names = ["one", "two", "a", "b", "c", "d", "e"];
    for (file, changed) in [
        ("bin/one", &["one"][..]),
        ("a.py", &["a"]),
        ("c/util.py", &["c"]),
        ("apps/d.py", &["d"]),
        ("apps/both.py", &["d", "e"]),
        // A module that each script of the folder may load.
        ("shared.py", &["a", "b"]),
    ] {
        let before = names.map(|name| folder.code(name));
        folder.write(file, &format!("{file} changed"));
        let differs: Vec<&str> = names
            .iter()
            .zip(&before)
            .filter(|(name, before)| folder.code(name) != **before)
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(differs, changed, "{file}");
    }
}

#[test]
fn a_manifest_can_say_what_identifies_its_code() {
    let folder = Folder::new();
    for file in ["app.py", "lib/a.py", "data.bin"] {
        folder.write(file, "x");
    }
    let command = ["fake/python3", "app.py"];
    folder.target("a", &command, "identity = [\"app.py\", \"lib/**\"]");
    folder.follows("a", &["app.py", "lib/a.py"]);
    let before = folder.code("a");
    folder.write("data.bin", "y");
    assert_eq!(folder.code("a"), before);
    folder.target("a", &command, "identity = [\"nothing/**\"]");
    assert!(folder.code("a").unknown.is_some_and(|why| why.contains("matches no file")));
    folder.target("a", &["sh", "-c", "exec $SERVER"], "identity = { command = [\"cat\", \"data.bin\"] }");
    folder.follows("a", &["data.bin"]);
    folder.target("a", &command, "identity = { command = [\"false\"] }");
    assert!(folder.code("a").unknown.is_some_and(|why| why.starts_with("identity.command: ")));
}

#[test]
fn what_cannot_be_known_is_said() {
    let folder = Folder::new();
    folder.write("start.sh", "#!/bin/sh\nexec \"$JAVACMD\" -jar x.jar\n");
    for (command, why) in [
        (&["sh", "-c", "exec $SERVER"][..], "its shell uses $SERVER, which is known only when it runs"),
        (&["sh", "-c", "./nowhere"], "it starts ./nowhere, which was not found"),
        (&["./start.sh"], "its shell uses $JAVACMD, which is known only when it runs"),
        (&["fake/python3", "-m", "no_such_module"], "the module no_such_module was not found"),
    ] {
        folder.target("a", command, "");
        assert_eq!(folder.code("a").unknown.as_deref(), Some(why));
    }
    folder.target("a", &["fake/python3", "app.py"], "");
    folder.write("app.py", "x");
    fs::File::create(folder.path().join("large")).expect("a file").set_len(tree::MAX_BYTES + 1).expect("a hole");
    assert!(folder.code("a").unknown.is_some_and(|why| why.contains("more than 10000 files or 256 MiB")));
    folder.target("a", &["python3", "-m", "http.server"], "sandbox.write = [\"large\"]");
    assert_eq!(folder.code("a").unknown, None, "what it writes does not count");
}

#[test]
fn an_image_is_identified_with_what_the_manifest_adds() {
    let folder = Folder::new();
    let image = |more: &str| {
        let text = format!(
            "name = \"a\"\nversion = \"1\"\n[ready]\npath = \"/\"\n[container]\nimage = \"shop:1\"\nport = 80\n{more}"
        );
        folder.write("a.toml", &text);
        let (all, errors) = manifest::load(folder.path());
        assert!(errors.is_empty(), "{errors:?}");
        let found = identify(&all[0], &all, &Fingerprints::default()).expect("an identity").identity;
        let digest = |digest: &str| found.clone().resolved(Some(format!("sha256:{digest}"))).text();
        assert_ne!(digest("1"), digest("2"), "two images of one tag");
        digest("1")
    };
    assert_eq!(image(""), "sha256:1");
    let (one, other) = (image("command = [\"a\"]"), image("command = [\"b\"]"));
    assert!(one.starts_with("sha256:1+") && one != other && image("command = [\"a\"]") == one);
    folder.write("conf/a", "1");
    let mounts = "mounts = [{ source = \"conf\", target = \"/conf\" }]";
    let before = image(mounts);
    folder.write("conf/a", "2");
    assert_ne!(image(mounts), before);
}
