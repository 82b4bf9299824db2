//! CPUs, caches, NUMA nodes, and whether the machine is virtual.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::{Facts, line, numbered, put};

/// Lower-case parts of vendor and product names of virtual machines.
const VIRTUAL: [&str; 11] = [
    "qemu",
    "kvm",
    "vmware",
    "virtualbox",
    "virtual machine",
    "xen",
    "bochs",
    "amazon ec2",
    "google compute engine",
    "openstack",
    "digitalocean",
];

/// Returns the facts about the hardware.
pub fn facts(root: &Path) -> Facts {
    let cpuinfo = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    let cpus = root.join("sys/devices/system/cpu");
    let mut facts = Facts::new();
    let nodes = numbered(&root.join("sys/devices/system/node"), "node").len();
    put(
        &mut facts,
        [
            ("cpu.model", Some(model(&cpuinfo))),
            ("cpu.microcode", field(&cpuinfo, "microcode")),
            ("cpu.smt", line(cpus.join("smt/control"))),
            ("cpu.numa_nodes", (nodes > 0).then(|| nodes.to_string())),
            ("machine.hardware", hardware(root)),
            ("machine.virtual", is_virtual(root, &cpuinfo).map(str::to_owned)),
            ("machine.container", container(root).map(str::to_owned)),
        ],
    );
    put(&mut facts, topology(&cpus).into_iter().map(|(name, number)| (name, Some(number.to_string()))));
    facts.extend(caches(&cpus));
    facts
}

/// Returns the name of the first CPU; ARM kernels report only part numbers.
pub fn model(cpuinfo: &str) -> String {
    let parts = || Some(format!("{} part {}", field(cpuinfo, "CPU implementer")?, field(cpuinfo, "CPU part")?));
    field(cpuinfo, "model name").or_else(parts).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

fn field(cpuinfo: &str, wanted: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == wanted && !value.trim().is_empty()).then(|| value.trim().to_owned())
    })
}

/// Counts the sockets, cores and threads that are online.
fn topology(cpus: &Path) -> Vec<(&'static str, usize)> {
    let place = |cpu: &Path| {
        let number = |name: &str| line(cpu.join("topology").join(name))?.parse::<i64>().ok();
        Some((number("physical_package_id")?, number("core_id")?))
    };
    let threads: Vec<_> = numbered(cpus, "cpu").iter().filter_map(|cpu| place(cpu)).collect();
    if threads.is_empty() {
        return Vec::new();
    }
    let sockets: BTreeSet<_> = threads.iter().map(|(socket, _)| socket).collect();
    let cores: BTreeSet<_> = threads.iter().collect();
    vec![("cpu.sockets", sockets.len()), ("cpu.cores", cores.len()), ("cpu.threads", threads.len())]
}

/// Returns the cache sizes of the first CPU, as the kernel writes them: `cpu.cache.l1d` is `32K`.
fn caches(cpus: &Path) -> Facts {
    let cache = |folder: &Path| {
        let level = line(folder.join("level"))?;
        let letter = match line(folder.join("type"))?.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        Some((format!("cpu.cache.l{level}{letter}"), line(folder.join("size"))?))
    };
    let folders = numbered(&cpus.join("cpu0/cache"), "index");
    folders.iter().filter_map(|folder| cache(folder)).collect::<BTreeMap<_, _>>()
}

fn hardware(root: &Path) -> Option<String> {
    let name = |file: &str| line(root.join("sys/class/dmi/id").join(file));
    let names: Vec<_> = [name("sys_vendor"), name("product_name")].into_iter().flatten().collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// Returns `yes` or `no`; `None` if neither CPU nor firmware report it.
fn is_virtual(root: &Path, cpuinfo: &str) -> Option<&'static str> {
    let flags = field(cpuinfo, "flags");
    let flagged = flags.as_deref().map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let hardware = hardware(root).map(|name| name.to_lowercase());
    let named = hardware.as_deref().map(|name| VIRTUAL.iter().any(|word| name.contains(word)));
    match (flagged, named) {
        (Some(true), _) | (_, Some(true)) => Some("yes"),
        (None, None) => None,
        _ => Some("no"),
    }
}

/// Detects a container by files that container engines create.
fn container(root: &Path) -> Option<&'static str> {
    let engines = [("run/.containerenv", "podman"), (".dockerenv", "docker")];
    engines.into_iter().find(|(file, _)| root.join(file).exists()).map(|(_, engine)| engine)
}

#[cfg(test)]
mod tests {
    use super::super::tests::machine;
    use super::*;

    #[test]
    fn sockets_cores_and_threads_are_counted() {
        let mut files = vec![
            ("proc/cpuinfo".to_owned(), "processor\t: 0\nmodel name\t: Z80\nflags\t\t: fpu vme\nmicrocode\t: 0x1\n"),
            ("sys/class/dmi/id/sys_vendor".to_owned(), "Zilog\n"),
            ("sys/class/dmi/id/product_name".to_owned(), "Board 1\n"),
            ("sys/devices/system/cpu/smt/control".to_owned(), "on\n"),
        ];
        for (cpu, socket, core) in [(0, "0", "0"), (1, "1", "0"), (2, "0", "0"), (3, "1", "0"), (10, "1", "1")] {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            files.push((format!("{folder}/physical_package_id"), socket));
            files.push((format!("{folder}/core_id"), core));
        }
        for (index, level, kind, size) in
            [(0, "1", "Data", "32K"), (1, "1", "Instruction", "64K"), (2, "2", "Unified", "1M")]
        {
            let folder = format!("sys/devices/system/cpu/cpu0/cache/index{index}");
            files.push((format!("{folder}/level"), level));
            files.push((format!("{folder}/type"), kind));
            files.push((format!("{folder}/size"), size));
        }
        for node in 0..2 {
            files.push((format!("sys/devices/system/node/node{node}/cpulist"), "0-1"));
        }
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let root = machine(&files);
        let lines: Vec<_> = facts(root.path()).into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(
            lines,
            [
                "cpu.cache.l1d: 32K",
                "cpu.cache.l1i: 64K",
                "cpu.cache.l2: 1M",
                "cpu.cores: 3",
                "cpu.microcode: 0x1",
                "cpu.model: Z80",
                "cpu.numa_nodes: 2",
                "cpu.smt: on",
                "cpu.sockets: 2",
                "cpu.threads: 5",
                "machine.hardware: Zilog Board 1",
                "machine.virtual: no",
            ]
        );
    }

    #[test]
    fn a_virtual_machine_is_recognized_by_its_cpu_or_vendor() {
        let flagged = machine(&[("proc/cpuinfo", "flags : fpu hypervisor\n")]);
        let named = machine(&[("proc/cpuinfo", ""), ("sys/class/dmi/id/sys_vendor", "QEMU\n"), (".dockerenv", "")]);
        assert_eq!(facts(flagged.path())["machine.virtual"], "yes");
        assert_eq!(facts(named.path())["machine.virtual"], "yes");
        assert_eq!(facts(named.path())["machine.container"], "docker");
        assert_eq!(facts(machine(&[]).path()).get("machine.virtual"), None);
    }

    #[test]
    fn a_cpu_without_a_name_is_described_by_its_parts() {
        assert_eq!(model("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"), "0x41 part 0xd0c");
        assert_eq!(model(""), std::env::consts::ARCH);
    }
}
