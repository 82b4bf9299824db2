#!/bin/sh
# Installs, uses, upgrades and removes what `make release` has built, in clean systems without a network, as root.
# `make test-release` installs what it needs. Prints the seconds of each step.
# usage: test-release.sh RELEASE-FOLDER ROOT-OF-A-CLEAN-DEBIAN FOLDER-OF-ARM64
set -eu
release=$(cd "$1" && pwd)
clean=$(cd "$2" && pwd)
arm64=$(cd "$3" && pwd)
folder=$(mktemp -d)
world=$folder/world
containers=
name=
trap 'end $?' EXIT
native=$(uname -m)
version=$(basename "$release"/brewbench-*-"$native"-linux.tar.gz "-$native-linux.tar.gz" | sed 's/^brewbench-//')
archive=brewbench-$version-$native-linux
deb=$(echo "$release/brewbench_${version}_$(dpkg --print-architecture).deb")
rpm=$(echo "$release/brewbench-$version-1.$native.rpm")

fail() {
  echo "$*"
  exit 1
}

end() {
  [ "$1" = 0 ] || { cat "$folder/log"; echo "FAILED: $name"; } >&2
  for id in $containers; do engine rm --force --volumes --time 0 "$id" >/dev/null; done
  [ -z "$containers" ] || engine rmi "localhost/brewbench:$version" >/dev/null
  rm -rf "$folder"
}

# The name and the function of a step. Prints its time, and the lines that begin with "= ".
step() {
  name=$1
  begin=$(date +%s%N)
  "$2" >"$folder/log" 2>&1
  printf '%-58s %6d.%01d s\n' "$1" $((($(date +%s%N) - begin) / 1000000000)) $((($(date +%s%N) - begin) / 100000000 % 10))
  grep '^= ' "$folder/log" || true
}

# A new copy of the clean system.
renew() {
  rm -rf "$world"
  cp -a "$clean" "$world"
}

# Runs a command in the system: its own processes, and no network but the loopback.
inside() {
  unshare --net --mount --pid --fork sh -euc 'ip link set lo up; mount -t proc proc "$0/proc"; mount -t tmpfs tmpfs "$0/tmp"
    mount --rbind /dev "$0/dev"; root=$0; exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"' "$world" "$@"
}

# What is left of brewbench in the system, without data.
rest() {
  (cd "$world" && find . -path ./proc -prune -o -path '*brewbench*' -print | grep -v -e '^\./var/lib/brewbench' -e '^\./var/lib/dpkg/info' -e '^\./root' || true)
}

checksums() {
  (cd "$release" && sha256sum --check --quiet SHA256SUMS)
  for file in "$release"/*; do echo "= $(basename "$file") $(stat -c %s "$file" | numfmt --to=si)"; done
}

package_installs() {
  renew
  cp "$deb" "$world/brewbench.deb"
  inside dpkg -i /brewbench.deb
  # shellcheck disable=SC2016
  inside sh -euc 'brewbench --version; id brewbench; id brewbench-agent; man -w brewbench-run-new
    test -s /usr/share/bash-completion/completions/brewbench; test -s /usr/share/zsh/site-functions/_brewbench
    test -s /usr/share/fish/vendor_completions.d/brewbench.fish; test -s /usr/share/doc/brewbench/LICENSES.txt
    test "$(stat -c "%a %U" /etc/brewbench/agent.env)" = "600 root"
    test ! -e /etc/systemd/system/multi-user.target.wants/brewbench.service
    systemd-analyze verify /usr/lib/systemd/system/brewbench.service /usr/lib/systemd/system/brewbench-agent.service
    echo "= $(brewbench --version), program $(stat -c %s /usr/lib/brewbench/brewbench | numfmt --to=si)"'
}

# As the users of the units, with their variables; nothing starts systemd here.
server_and_agent() {
  inside sh -euc '
    as() { user=$1; shift; setpriv --reuid "$user" --regid "$user" --clear-groups "$@"; }
    install -d -m 700 -o brewbench -g brewbench /var/lib/brewbench
    install -d -m 700 -o brewbench-agent -g brewbench-agent /var/lib/brewbench-agent /var/lib/brewbench-runs
    export BREWBENCH_DATA=/var/lib/brewbench BREWBENCH_STATE=/var/lib/brewbench-agent BREWBENCH_MANIFESTS=/etc/brewbench/targets
    begin=$(date +%s%N)
    as brewbench brewbench serve 2>/tmp/server.log & server=$!
    until brewbench health; do kill -0 $server; sleep 0.1; done
    echo "= the server is ready after $((($(date +%s%N) - begin) / 1000000)) ms"
    as brewbench brewbench invite --data /var/lib/brewbench
    key=$(as brewbench brewbench agent-key new bench-01 --data /var/lib/brewbench | grep -o "bbo_[A-Za-z0-9_-]*" | head -n 1)
    as brewbench-agent brewbench agent doctor --server http://127.0.0.1:8377 --key "$key" || true
    BREWBENCH_SERVER=http://127.0.0.1:8377 BREWBENCH_AGENT_KEY=$key as brewbench-agent brewbench agent 2>/tmp/agent.log & agent=$!
    token=$(as brewbench brewbench token new test --data /var/lib/brewbench --scope submit | grep -o "bbt_[A-Za-z0-9_-]*" | head -n 1)
    export BREWBENCH_URL=http://127.0.0.1:8377 BREWBENCH_TOKEN=$token
    until brewbench target list | grep -q go-nethttp; do kill -0 $agent || { cat /tmp/agent.log; exit 1; }; sleep 0.2; done
    brewbench run new --engine native --target go-nethttp --target rust-hyper --size 1/1GiB --scenario hash --vus 2 --duration 1s --repeat 2 --wait || test $? = 3
    brewbench compare --experiment last
    echo "= server, agent and a comparison after $((($(date +%s%N) - begin) / 1000000000)) s"
    kill $agent $server; wait'
}

demo() {
  inside sh -euc 'brewbench demo --duration 1s --once | tail -n 20'
}

# The same package as an earlier version with another sample of the configuration.
package_upgrades() {
  renew
  dpkg-deb -R "$deb" "$folder/old"
  sed -i 's/^Version: .*/Version: 0.0.1/' "$folder/old/DEBIAN/control"
  echo '# of 0.0.1' >>"$folder/old/etc/brewbench/server.env"
  echo '# of 0.0.1' >>"$folder/old/etc/brewbench/targets/rust-hyper.toml"
  dpkg-deb -Znone -b "$folder/old" "$world/old.deb" >/dev/null
  cp "$deb" "$world/brewbench.deb"
  inside dpkg -i /old.deb
  echo BREWBENCH_LISTEN=127.0.0.1:9000 >>"$world/etc/brewbench/server.env"
  inside dpkg --force-confold -i /brewbench.deb
  grep -q :9000 "$world/etc/brewbench/server.env" || fail "the upgrade replaced an edited file"
  ! grep -q 'of 0.0.1' "$world/etc/brewbench/targets/rust-hyper.toml" || fail "the upgrade kept a file that nobody edited"
  inside dpkg-query -W brewbench | grep -q "$version"
}

package_is_removed() {
  install -d "$world/var/lib/brewbench"
  echo data >"$world/var/lib/brewbench/brewbench.db"
  inside dpkg -r brewbench
  [ -e "$world/etc/brewbench/server.env" ] || fail "remove took the configuration"
  [ ! -e "$world/usr/lib/brewbench" ] || fail "remove left the program"
  inside dpkg -P brewbench
  [ -e "$world/var/lib/brewbench/brewbench.db" ] || fail "purge took the data"
  [ -z "$(rest | grep -v '\.deb$')" ] || fail "purge left $(rest)"
}

rpm_package() {
  renew
  rpm -qlp "$rpm" >/dev/null
  [ "$(rpm -qcp "$rpm" | grep -c '^/etc/brewbench')" = 5 ] || fail "not all of /etc/brewbench is configuration"
  rpm --root "$world" --initdb
  # The database of this system knows no package with systemd; the file is there.
  rpm --root "$world" --nodeps -i "$rpm"
  inside sh -euc 'brewbench --version; id brewbench; test -s /etc/brewbench/server.env'
  rpm --root "$world" -e brewbench
  [ ! -e "$world/usr/lib/brewbench" ] || fail "left the program"
}

archive_installs() {
  renew
  tar -C "$world" -xzf "$release/$archive.tar.gz"
  inside "/$archive/install.sh"
  [ "$(inside /usr/local/bin/brewbench --version)" ] || fail "no version"
  echo BREWBENCH_LISTEN=127.0.0.1:9000 >>"$world/etc/brewbench/server.env"
  echo '# mine' >>"$world/etc/brewbench/targets/rust-hyper.toml"
  cp "$world/etc/brewbench/targets/rust-hyper.toml" "$world/etc/brewbench/targets/mine.toml"
  inside "/$archive/install.sh" | grep -q 'kept, because it was edited: /etc/brewbench/targets/rust-hyper.toml'
  grep -q :9000 "$world/etc/brewbench/server.env" && grep -q mine "$world/etc/brewbench/targets/rust-hyper.toml" || fail "an edited file was replaced"
  inside sh -euc 'systemd-sysusers; systemd-analyze verify /usr/local/lib/systemd/system/brewbench.service /usr/local/lib/systemd/system/brewbench-agent.service'
  inside "/$archive/install.sh" --remove
  rm -r "${world:?}/$archive"
  [ -z "$(rest | grep -v '^\./etc/brewbench')" ] || fail "remove left $(rest)"
}

# On machines without cgroup v2 or a usual limit of files, too.
engine() {
  podman --runtime runc --cgroup-manager cgroupfs "$@"
}

container() {
  engine load --quiet --input "$release/brewbench-$version-$native-image.tar"
  image=localhost/brewbench:$version
  echo "= $(engine image inspect --format '{{.Size}}' "$image" | numfmt --to=si), user $(engine image inspect --format '{{.User}}' "$image")"
  limits="--network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024"
  since=$(date +%s%N)
  # shellcheck disable=SC2086
  id=$(engine run --detach $limits "$image")
  containers="$containers $id"
  until engine exec "$id" brewbench health; do sleep 0.1; done
  echo "= the server is ready $((($(date +%s%N) - since) / 1000000)) ms after podman run"
  engine healthcheck run "$id"
  engine exec "$id" k6 version
  since=$(date +%s%N)
  # shellcheck disable=SC2086
  engine run --rm --no-healthcheck $limits "$image" demo --duration 1s --once
  echo "= the first comparison is ready $((($(date +%s%N) - since) / 1000000000)) s after podman run"
}

# The archive for aarch64, in an emulated machine with Debian's kernel.
aarch64_archive() {
  root=$folder/arm64
  mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp"
  cp "$arm64/busybox" "$root/bin/"
  tar -C "$root" -xzf "$release/brewbench-$version-aarch64-linux.tar.gz"
  mv "$root/brewbench-$version-aarch64-linux" "$root/brewbench"
  cat >"$root/init" <<'END'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev && mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up
/brewbench/brewbench --version
/brewbench/brewbench demo --once --duration 2s --repeat 2 --vus 2 --size 1/256MiB --target rust-hyper --target go-nethttp --data /tmp/data
echo "exit status $?"
poweroff -f
END
  chmod +x "$root/init"
  (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1 >"$folder/initrd")
  timeout 600 qemu-system-aarch64 -M virt -cpu cortex-a72 -smp 2 -m 2048 -nic none -nographic -no-reboot -kernel "$arm64/vmlinuz" \
    -initrd "$folder/initrd" -append "console=ttyAMA0 quiet panic=-1 rdinit=/init" | tee "$folder/console"
  grep -q '^exit status 0' "$folder/console" || fail "the demo failed"
  echo "= program $(stat -c %s "$root/brewbench/brewbench" | numfmt --to=si)"
}

step "checksums" checksums
step ".deb: installs, with man pages and completions" package_installs
step ".deb: server, agent and a comparison, as their users" server_and_agent
step ".deb: the demo, without k6" demo
step ".deb: an upgrade keeps edited files" package_upgrades
step ".deb: remove and purge leave nothing but data" package_is_removed
step ".rpm: installs and is removed" rpm_package
step "archive: installs, upgrades and is removed" archive_installs
step "image: server and a first comparison" container
[ ! -e "$release/brewbench-$version-aarch64-linux.tar.gz" ] || step "aarch64: a comparison in an emulated machine" aarch64_archive
