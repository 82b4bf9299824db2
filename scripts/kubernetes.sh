#!/bin/sh
# Builds the control plane of Kubernetes and Helm for the integration tests unless they are built, and installs Debian's
# etcd, and the Python that test Pods run as a server, unless they are installed.
# usage: kubernetes.sh
set -eu
cd "$(dirname "$0")/../testing/kubernetes/control-plane"
version=$(sed -n 's|^\tk8s.io/kubernetes \(v[0-9.]*\)$|\1|p' go.mod)
folder=${BREWBENCH_KUBERNETES:-$HOME/.cache/brewbench/kubernetes}/$version
install() {
  echo "$1: apt-get install $2" >&2
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}
command -v etcd >/dev/null || install etcd etcd-server
[ -x /usr/bin/python3 ] || install python3 python3
mkdir -p "$folder"
for program in kube-apiserver kube-controller-manager kube-scheduler; do
  [ -x "$folder/$program" ] && continue
  echo "$program: go build k8s.io/kubernetes@$version into $folder, a minute or two" >&2
  # Built beside its place and moved, so that an interrupted build leaves nothing that looks complete.
  CGO_ENABLED=0 GOTOOLCHAIN=local go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" -o "$folder/.$program" "./$program"
  mv "$folder/.$program" "$folder/$program"
done
helm=v3.19.0
[ -x "$folder/helm" ] || {
  echo "helm: go install helm.sh/helm/v3@$helm into $folder" >&2
  GOBIN=$folder GOTOOLCHAIN=local go install "helm.sh/helm/v3/cmd/helm@$helm"
}
