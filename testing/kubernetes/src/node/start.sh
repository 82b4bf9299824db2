# Runs the programs of a node as the first process of a pid namespace: the kernel kills everything once this shell is
# gone. All paths are those of a usual node, but in a mount namespace, so that nodes do not share them.
# usage: start.sh FOLDER PROGRAMS ADDRESS KUBELET-OPTION...
set -eu
cd "$1"
PATH=$2:$PATH:/usr/sbin:/sbin
address=$3
shift 3
mount --bind lib /var/lib
mount --bind log /var/log
mount --bind run /run
# A kubelet would set these for the whole machine. Here it finds the values that it wants.
set_kernel() {
  echo "$2" >"kernel/${1##*/}"
  mount --bind "kernel/${1##*/}" "/proc/sys/$1"
}
set_kernel vm/overcommit_memory 1
set_kernel vm/panic_on_oom 0
set_kernel kernel/panic 10
set_kernel kernel/panic_on_oops 1
set_kernel kernel/keys/root_maxkeys 1000000
set_kernel kernel/keys/root_maxbytes 25000000

containerd --config containerd.toml >>log/containerd.log 2>&1 &
# The registry of all images. It has none.
busybox httpd -f -p "$address:5000" -h registry &
until [ -S run/containerd/containerd.sock ]; do sleep 0.02; done
# Started again whenever it ends, as systemd does.
while :; do
  kubelet --config kubelet.json --containerd /run/containerd/containerd.sock "$@" >>log/kubelet.log 2>&1 || :
done &
for image in images/*.tar; do
  ctr --namespace k8s.io images import --digests=false "$image" >/dev/null
  rm "$image"
done
touch imported
wait
