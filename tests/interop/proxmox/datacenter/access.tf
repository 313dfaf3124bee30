resource "proxmox_virtual_environment_role" "operator" {
  role_id    = "Operator"
  privileges = local.changed ? ["VM.Audit", "VM.Console", "VM.PowerMgmt"] : ["VM.Audit", "VM.PowerMgmt"]
}

resource "proxmox_virtual_environment_group" "night" {
  group_id = "night"
  comment  = local.changed ? "the night shift" : "those who are awake"
}

resource "proxmox_virtual_environment_user" "ada" {
  user_id    = "ada@pve"
  comment    = local.changed ? "changed" : "first"
  email      = "ada@example.org"
  first_name = "Ada"
  last_name  = "Example"
  enabled    = true
  groups     = [proxmox_virtual_environment_group.night.group_id]
  password   = "not a secret"
}

resource "proxmox_user_token" "ada" {
  user_id               = proxmox_virtual_environment_user.ada.user_id
  token_name            = "scripts"
  comment               = local.changed ? "changed" : "first"
  privileges_separation = true
}

resource "proxmox_acl" "group" {
  path      = "/vms"
  role_id   = proxmox_virtual_environment_role.operator.role_id
  group_id  = proxmox_virtual_environment_group.night.group_id
  propagate = !local.changed
}

resource "proxmox_acl" "token" {
  path     = "/pool/production"
  role_id  = "PVEAuditor"
  token_id = proxmox_user_token.ada.id
}

resource "proxmox_realm_ldap" "directory" {
  realm     = "directory"
  server1   = "ldap.example.org"
  base_dn   = "ou=people,dc=example,dc=org"
  user_attr = "uid"
  comment   = local.changed ? "changed" : "first"
}
