# Where the real programs come from: a variable, the search path, or a build below the target folder. Their versions are
# those that docs/interop.md speaks of.

# Each tool, and the variable that names it.
declare -A tools=(
  [tofu]=STRATA_TOFU
  [bpg]=STRATA_BPG_MIRROR
  [sops]=STRATA_SOPS
  [age]=STRATA_AGE
  [ansible-vault]=STRATA_ANSIBLE_VAULT
)
bpg_version=0.112.0

# Sets and exports the variable of a tool, and makes the tool if there is none.
provide() {
  local variable=${tools[$1]} found
  if [ -n "${!variable:-}" ]; then
    [ -e "${!variable}" ] || command -v "${!variable}" >/dev/null || fail "$variable is \`${!variable}\`, which does not exist"
    return
  fi
  # The provider is no program of the search path.
  if [ "$1" = bpg ] || ! found=$(command -v "$1"); then found=$kept/$1; fi
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

# Builds a package of a Go module to a file: module, version, package, file, linker flags. In a copy of the module,
# because some say `replace`, which `go install` refuses.
build_go() {
  local folder copy
  copy=$(mktemp -d "$kept/build.XXXXXX")
  folder=$(go mod download -json "$1@$2" | tee /dev/stderr | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
  [ -n "$folder" ]
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

install_sops() { build_go github.com/getsops/sops/v3 v3.13.3 ./cmd/sops "$kept/sops"; }

install_age() { build_go filippo.io/age v1.3.2 ./cmd/age "$kept/age"; }

install_ansible-vault() {
  python3 -m venv "$kept/ansible"
  "$kept/ansible/bin/pip" install --quiet ansible-core
  ln -sf "$kept/ansible/bin/ansible-vault" "$kept/ansible-vault"
}
