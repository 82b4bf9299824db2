#!/bin/sh
# Builds what the tests with Kubernetes run unless it is built: control plane, kubelet, containerd with its network plugins,
# and Helm. Installs Debian's etcd, runc, and the BusyBox of test images, unless they are installed.
# usage: kubernetes.sh
set -eu
cd "$(dirname "$0")/../testing/kubernetes"
version=$(sed -n 's|^\tk8s.io/kubernetes \(v[0-9.]*\).*$|\1|p' control-plane/go.mod)
folder=${BREWBENCH_KUBERNETES:-$HOME/.cache/brewbench/kubernetes}/$version
export CGO_ENABLED=0 GOTOOLCHAIN=local
install() {
  echo "$1: apt-get install $2" >&2
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}
# build MODULE PACKAGE FLAGS: built beside its place and moved, so that an interrupted build leaves nothing that looks complete.
build() {
  program=${2##*/}
  [ -x "$folder/$program" ] && return
  echo "$program: go build $2, by $1/go.mod, into $folder" >&2
  (cd "$1" && go build -trimpath -buildvcs=false -ldflags "-s -w $3" -o "$folder/.$program" "$2")
  mv "$folder/.$program" "$folder/$program"
}
command -v etcd >/dev/null || install etcd etcd-server
command -v runc >/dev/null || install runc runc
[ -x /bin/busybox ] && /bin/busybox --list | grep -qx httpd || install busybox busybox-static
mkdir -p "$folder"
for program in kube-apiserver kube-controller-manager kube-scheduler kubelet; do
  build control-plane "k8s.io/kubernetes/cmd/$program" "-X k8s.io/component-base/version.gitVersion=$version"
done
# Its versions are not in the name of the folder.
cmp -s runtime/go.mod "$folder/runtime.mod" || {
  for package in $(sed -n 's|^\t\(github.com/[^ ]*\)$|\1|p' runtime/go.mod); do
    rm -f "$folder/${package##*/}"
    build runtime "$package" ""
  done
  cp runtime/go.mod "$folder/runtime.mod"
}
helm=v3.19.0
[ -x "$folder/helm" ] || {
  echo "helm: go install helm.sh/helm/v3@$helm into $folder" >&2
  GOBIN=$folder go install "helm.sh/helm/v3/cmd/helm@$helm"
}
