//! Recognises programs that compile while they run: they are slow at first and need a warm-up until they are steady.
//! Pure.

use std::collections::BTreeMap;
use std::path::Path;

use super::manifest::Provided;

/// Runtimes that compile at run time by default; versions in their names do not matter.
pub(super) const RUNTIMES: [&str; 26] = [
    "bun",
    "dart",
    "deno",
    "dotnet",
    "graalpy",
    "groovy",
    "gradle",
    "hhvm",
    "java",
    "jruby",
    "julia",
    "kotlin",
    "luajit",
    "mono",
    "mvn",
    "node",
    "nodejs",
    "npm",
    "npx",
    "openresty",
    "pnpm",
    "pypy",
    "sbt",
    "scala",
    "truffleruby",
    "yarn",
];

/// Images whose names are not those of their runtime.
const IMAGES: [&str; 5] = ["amazoncorretto", "aspnet", "eclipse-temurin", "ibm-semeru-runtimes", "openjdk"];

/// Runtimes that compile only on request, with the request: a part of an argument or of a variable.
const OPTIONAL: [(&str, &[&str]); 3] = [
    ("php", &["opcache.jit=1", "opcache.jit=tracing", "opcache.jit=function", "opcache.jit=on"]),
    ("python", &["PYTHON_JIT=1"]),
    ("ruby", &["--yjit", "--jit", "--rjit", "--zjit", "RUBY_YJIT_ENABLE=1"]),
];

/// Programs that start the one that is named by one of their arguments.
const LAUNCHERS: [&str; 11] =
    ["bash", "chrt", "dash", "env", "exec", "ionice", "nice", "numactl", "sh", "stdbuf", "taskset"];

/// Whether a target is known to compile while it runs. Unknown for servers and virtual machines, whose programs the
/// agent does not see, and for what a script of the target's owner starts.
pub fn compiles_at_run_time(provided: &Provided) -> bool {
    match provided {
        Provided::Process(program) => runs_compiler(&program.command, &program.env),
        Provided::Container(container) => {
            is_image(&container.image) || runs_compiler(&container.command, &container.env)
        }
        Provided::Kubernetes(workload) => is_image(&workload.image),
        Provided::Vm(_) | Provided::Url(_) => false,
    }
}

fn runs_compiler(command: &[String], env: &BTreeMap<String, String>) -> bool {
    let words: Vec<&str> = command.iter().flat_map(|argument| argument.split_whitespace()).collect();
    let is_launched = words.first().is_some_and(|first| LAUNCHERS.contains(&name(first)));
    let programs = if is_launched { &words[..] } else { words.get(..1).unwrap_or_default() };
    let options: Vec<String> = words
        .iter()
        .map(|word| (*word).to_owned())
        .chain(env.iter().map(|(name, value)| format!("{name}={value}")))
        .collect();
    let is_requested = |marks: &[&str]| marks.iter().any(|mark| options.iter().any(|option| option.contains(mark)));
    programs.iter().map(|program| name(program)).any(|program| {
        RUNTIMES.contains(&program) || OPTIONAL.iter().any(|(own, marks)| *own == program && is_requested(marks))
    })
}

/// Whether an image is one of a runtime: `docker.io/library/node:22-alpine`.
fn is_image(image: &str) -> bool {
    let name = image.split('@').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let name = name.split(':').next().unwrap_or_default();
    RUNTIMES.contains(&name) || IMAGES.contains(&name)
}

/// Returns the name of a program without folder and version: `java` for `/usr/lib/jvm/bin/java` and `pypy` for
/// `pypy3.10`.
pub(super) fn name(program: &str) -> &str {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.trim_end_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiles(command: &[&str], env: &[(&str, &str)]) -> bool {
        let command: Vec<String> = command.iter().map(|&argument| argument.to_owned()).collect();
        runs_compiler(&command, &env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    #[test]
    fn runtimes_are_recognised_by_their_program() {
        for program in ["java", "/usr/lib/jvm/java-21/bin/java", "node", "node20", "pypy3.10", "dotnet", "deno", "bun"]
        {
            assert!(compiles(&[program, "server"], &[]), "{program}");
        }
        assert!(compiles(&["env", "PORT=1", "java", "-jar", "a.jar"], &[]));
        assert!(compiles(&["sh", "-c", "exec node server.js"], &[]));
        assert!(compiles(&["taskset", "-c", "1", "luajit", "a.lua"], &[]));
    }

    #[test]
    fn compilers_that_are_off_by_default_need_their_option() {
        assert!(!compiles(&["ruby", "a.rb"], &[]) && !compiles(&["php8.3", "-S", "x"], &[]));
        assert!(compiles(&["ruby3.3", "--yjit", "a.rb"], &[]));
        assert!(compiles(&["ruby", "a.rb"], &[("RUBY_YJIT_ENABLE", "1")]));
        assert!(compiles(&["ruby", "a.rb"], &[("RUBYOPT", "--yjit")]));
        assert!(compiles(&["php", "-d", "opcache.jit=tracing", "a.php"], &[]));
        assert!(!compiles(&["php", "-d", "opcache.jit=off", "a.php"], &[]));
        assert!(!compiles(&["python3", "a.py"], &[]) && compiles(&["python3.13", "a.py"], &[("PYTHON_JIT", "1")]));
    }

    #[test]
    fn other_programs_do_not_compile() {
        for command in [&["./server", "--name", "java"][..], &["nginx"], &["sh", "-c", "./server"], &["javac"], &[]] {
            assert!(!compiles(command, &[]), "{command:?}");
        }
        assert!(!compiles(&["./server"], &[("RUBY_YJIT_ENABLE", "1")]));
    }

    #[test]
    fn images_of_runtimes_are_recognised() {
        for image in ["node", "docker.io/library/node:22-alpine", "eclipse-temurin:21", "registry:5000/bun@sha256:ab"] {
            assert!(is_image(image), "{image}");
        }
        for image in ["localhost/server:1", "nodes", "registry/java/server", "nginx:1"] {
            assert!(!is_image(image), "{image}");
        }
    }
}
