#!/usr/bin/env python3
"""Prints the licences of all libraries that a program contains, as their packages have them: usage: licenses.py PACKAGE"""
import json
import re
import subprocess
import sys
from pathlib import Path


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


tree = run("cargo", "tree", "--locked", "--package", sys.argv[1], "--edges", "normal", "--target", "x86_64-unknown-linux-musl", "--prefix", "none", "--format", "{p}")
used = {tuple(line.split()[:2]) for line in tree.splitlines()}
metadata = json.loads(run("cargo", "metadata", "--locked", "--format-version", "1"))
packages = [package for package in metadata["packages"] if package["source"] and (package["name"], "v" + package["version"]) in used]
texts, without = {}, []
texts[Path(run("go", "env", "GOROOT").strip(), "LICENSE").read_text().strip()] = ["the standard library of Go, in the target go-nethttp"]
for package in packages:
    name = f"{package['name']} {package['version']} ({package['license'] or 'see the text'})"
    files = [file for file in sorted(Path(package["manifest_path"]).parent.iterdir()) if re.match(r"(?i)(licen[cs]e|copying|notice|copyright|unlicense)", file.name) and file.is_file()]
    for file in files:
        texts.setdefault(file.read_text(errors="replace").strip(), []).append(name)
    if not files:
        without.append(name)
for text, names in texts.items():
    print(*names, "", text, "", "-" * 80, sep="\n")
print("The standard library of Rust has the licences MIT and Apache-2.0, and musl, the C library, MIT.\n")
print("The source code of each package is at https://crates.io/crates/NAME. These name their licence only. The texts of MIT, Apache-2.0 and")
print("BSD-3-Clause are above, that of MPL-2.0 is at https://mozilla.org/MPL/2.0/:", *without, sep="\n")
