#!/usr/bin/env bash
# build.sh KUBERNETES ETCD FOLDER: kube-apiserver of a version of Kubernetes and etcd of a version, from Go modules, for
# KUBEBUILDER_ASSETS. For example: tests/cluster/build.sh 1.37.2 3.6.16 ~/assets
# It needs Go and its module proxy, and takes 10 to 30 minutes on two cores. docs/compatibility.md tells more.
set -euo pipefail

[ $# = 3 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
kubernetes=$1 etcd=$2
mkdir -p "$3"
folder=$(cd "$3" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0

# A module of its own with one program as its dependency.
module() { # NAME GO_VERSION
    mkdir "$work/$1" && cd "$work/$1"
    printf 'module %s\n\ngo %s\n' "$1" "$2" >go.mod
}

# k8s.io/kubernetes takes its staging modules from its own folders. Outside of it they are modules of version 0.MINOR.PATCH.
source=$(cd "$work" && go mod download -json "k8s.io/kubernetes@v$kubernetes" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
module apiserver "$(awk '$1 == "go" { print $2; exit }' "$source/go.mod")"
go mod edit -require="k8s.io/kubernetes@v$kubernetes"
for staging in $(grep -oE '^[[:space:]]*(replace )?k8s\.io/[a-z-]+ => \./staging' "$source/go.mod" | grep -oE 'k8s\.io/[a-z-]+'); do
    go mod edit -replace="$staging=$staging@v0.${kubernetes#1.}"
done
minor=${kubernetes#1.}
version=k8s.io/component-base/version
go build -p 2 -trimpath -o "$folder/kube-apiserver" \
    -ldflags "-s -w -X $version.gitVersion=v$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*}" \
    k8s.io/kubernetes/cmd/kube-apiserver

server=$(cd "$work" && go mod download -json "go.etcd.io/etcd/server/v3@v$etcd" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
module etcd "$(awk '$1 == "go" { print $2; exit }' "$server/go.mod")"
go get "go.etcd.io/etcd/server/v3@v$etcd"
go build -p 2 -trimpath -ldflags "-s -w" -o "$folder/etcd" go.etcd.io/etcd/server/v3

"$folder/kube-apiserver" --version
"$folder/etcd" --version
