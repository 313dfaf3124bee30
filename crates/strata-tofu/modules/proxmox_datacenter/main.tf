resource "proxmox_virtual_environment_pool" "this" {
  for_each = var.pools

  pool_id = each.key
  comment = each.value.comment
}

resource "proxmox_virtual_environment_role" "this" {
  for_each = var.roles

  role_id    = each.key
  privileges = each.value
}

resource "proxmox_virtual_environment_group" "this" {
  for_each = var.groups

  group_id = each.key
  comment  = each.value.comment
}

resource "proxmox_virtual_environment_user" "this" {
  for_each = var.users

  user_id         = each.key
  password        = lookup(var.user_passwords, each.key, null)
  enabled         = each.value.enabled
  groups          = each.value.groups
  comment         = each.value.comment
  email           = each.value.email
  first_name      = each.value.first_name
  last_name       = each.value.last_name
  expiration_date = each.value.expiration_date

  # Nobody can read it, and a token may not change it: it is set when the user is made.
  lifecycle {
    ignore_changes = [password]
  }

  depends_on = [proxmox_virtual_environment_group.this]
}

resource "proxmox_user_token" "this" {
  for_each = var.tokens

  user_id               = split("!", each.key)[0]
  token_name            = split("!", each.key)[1]
  privileges_separation = each.value.privileges_separation
  comment               = each.value.comment
  expiration_date       = each.value.expiration_date

  depends_on = [proxmox_virtual_environment_user.this]
}

resource "proxmox_acl" "this" {
  for_each = var.acl

  path      = each.value.path
  role_id   = each.value.role_id
  user_id   = each.value.user_id
  group_id  = each.value.group_id
  token_id  = each.value.token_id
  propagate = each.value.propagate

  depends_on = [
    proxmox_user_token.this,
    proxmox_virtual_environment_group.this,
    proxmox_virtual_environment_pool.this,
    proxmox_virtual_environment_role.this,
    proxmox_virtual_environment_user.this,
  ]
}

resource "proxmox_hardware_mapping_pci" "this" {
  for_each = var.pci_mappings

  name             = each.key
  comment          = each.value.comment
  mediated_devices = each.value.mediated_devices
  map              = each.value.map
}

resource "proxmox_hardware_mapping_usb" "this" {
  for_each = var.usb_mappings

  name    = each.key
  comment = each.value.comment
  map     = each.value.map
}

resource "proxmox_storage_directory" "this" {
  for_each = { for id, storage in var.storages : id => storage if storage.type == "dir" }

  id      = each.key
  content = each.value.content
  nodes   = each.value.nodes
  disable = each.value.disable
  path    = each.value.path
  shared  = each.value.shared
}

resource "proxmox_storage_lvm" "this" {
  for_each = { for id, storage in var.storages : id => storage if storage.type == "lvm" }

  id           = each.key
  content      = each.value.content
  nodes        = each.value.nodes
  disable      = each.value.disable
  volume_group = each.value.volume_group
  shared       = each.value.shared
}

resource "proxmox_storage_lvmthin" "this" {
  for_each = { for id, storage in var.storages : id => storage if storage.type == "lvmthin" }

  id           = each.key
  content      = each.value.content
  nodes        = each.value.nodes
  disable      = each.value.disable
  volume_group = each.value.volume_group
  thin_pool    = each.value.thin_pool
}

resource "proxmox_storage_zfspool" "this" {
  for_each = { for id, storage in var.storages : id => storage if storage.type == "zfspool" }

  id             = each.key
  content        = each.value.content
  nodes          = each.value.nodes
  disable        = each.value.disable
  zfs_pool       = each.value.zfs_pool
  thin_provision = each.value.thin_provision
}

resource "proxmox_storage_nfs" "this" {
  for_each = { for id, storage in var.storages : id => storage if storage.type == "nfs" }

  id      = each.key
  content = each.value.content
  nodes   = each.value.nodes
  disable = each.value.disable
  server  = each.value.server
  export  = each.value.export
}

resource "proxmox_storage_cifs" "this" {
  for_each = { for id, storage in var.storages : id => storage if storage.type == "cifs" }

  id       = each.key
  content  = each.value.content
  nodes    = each.value.nodes
  disable  = each.value.disable
  server   = each.value.server
  share    = each.value.share
  username = each.value.username
  password = var.storage_passwords[each.key]

  # The provider would make the storage anew for another one, or for one that it cannot read.
  lifecycle {
    ignore_changes = [password]
  }
}

resource "proxmox_storage_pbs" "this" {
  for_each = { for id, storage in var.storages : id => storage if storage.type == "pbs" }

  id          = each.key
  content     = each.value.content
  nodes       = each.value.nodes
  disable     = each.value.disable
  server      = each.value.server
  datastore   = each.value.datastore
  namespace   = each.value.namespace
  fingerprint = each.value.fingerprint
  username    = each.value.username
  password    = var.storage_passwords[each.key]

  # The provider would make the storage anew for another one, or for one that it cannot read.
  lifecycle {
    ignore_changes = [password]
  }
}

resource "proxmox_virtual_environment_dns" "this" {
  for_each = var.dns

  node_name = each.key
  domain    = each.value.domain
  servers   = each.value.servers
}

resource "proxmox_virtual_environment_time" "this" {
  for_each = var.time_zones

  node_name = each.key
  time_zone = each.value
}

resource "proxmox_network_linux_bond" "this" {
  for_each = var.bonds

  node_name = each.value.node_name
  name      = each.value.name
  address   = each.value.address
  gateway   = each.value.gateway
  address6  = each.value.address6
  gateway6  = each.value.gateway6
  mtu       = each.value.mtu
  autostart = each.value.autostart
  comment   = each.value.comment
  slaves    = each.value.slaves
  bond_mode = each.value.bond_mode
}

resource "proxmox_network_linux_vlan" "this" {
  for_each = var.vlans

  node_name = each.value.node_name
  name      = each.value.name
  address   = each.value.address
  gateway   = each.value.gateway
  address6  = each.value.address6
  gateway6  = each.value.gateway6
  mtu       = each.value.mtu
  autostart = each.value.autostart
  comment   = each.value.comment
  interface = each.value.interface
  vlan      = each.value.vlan

  depends_on = [proxmox_network_linux_bond.this]
}

resource "proxmox_network_linux_bridge" "this" {
  for_each = var.bridges

  node_name  = each.value.node_name
  name       = each.value.name
  address    = each.value.address
  gateway    = each.value.gateway
  address6   = each.value.address6
  gateway6   = each.value.gateway6
  mtu        = each.value.mtu
  autostart  = each.value.autostart
  comment    = each.value.comment
  ports      = each.value.ports
  vlan_aware = each.value.vlan_aware

  depends_on = [proxmox_network_linux_bond.this, proxmox_network_linux_vlan.this]
}

resource "proxmox_virtual_environment_firewall_alias" "this" {
  for_each = var.aliases

  name    = each.key
  cidr    = each.value.cidr
  comment = each.value.comment
}

resource "proxmox_virtual_environment_firewall_ipset" "this" {
  for_each = var.ip_sets

  name    = each.key
  comment = each.value.comment

  dynamic "cidr" {
    for_each = each.value.addresses

    content {
      name    = trimprefix(cidr.value, "!")
      nomatch = startswith(cidr.value, "!")
    }
  }

  depends_on = [proxmox_virtual_environment_firewall_alias.this]
}

resource "proxmox_virtual_environment_cluster_firewall_security_group" "this" {
  for_each = var.security_groups

  name    = each.key
  comment = each.value.comment

  dynamic "rule" {
    for_each = each.value.rules

    content {
      type           = rule.value.type
      action         = rule.value.action
      security_group = rule.value.security_group
      enabled        = rule.value.enabled
      comment        = rule.value.comment
      source         = rule.value.source
      dest           = rule.value.dest
      proto          = rule.value.proto
      dport          = rule.value.dport
      sport          = rule.value.sport
      iface          = rule.value.iface
      log            = rule.value.log
      macro          = rule.value.macro
    }
  }

  depends_on = [
    proxmox_virtual_environment_firewall_alias.this,
    proxmox_virtual_environment_firewall_ipset.this,
  ]
}

resource "proxmox_virtual_environment_firewall_rules" "this" {
  count = length(var.firewall_rules) == 0 ? 0 : 1

  dynamic "rule" {
    for_each = var.firewall_rules

    content {
      type           = rule.value.type
      action         = rule.value.action
      security_group = rule.value.security_group
      enabled        = rule.value.enabled
      comment        = rule.value.comment
      source         = rule.value.source
      dest           = rule.value.dest
      proto          = rule.value.proto
      dport          = rule.value.dport
      sport          = rule.value.sport
      iface          = rule.value.iface
      log            = rule.value.log
      macro          = rule.value.macro
    }
  }

  depends_on = [
    proxmox_virtual_environment_firewall_alias.this,
    proxmox_virtual_environment_firewall_ipset.this,
    proxmox_virtual_environment_cluster_firewall_security_group.this,
  ]
}

resource "proxmox_virtual_environment_cluster_firewall" "this" {
  count = var.firewall == null ? 0 : 1

  enabled       = var.firewall.enabled
  input_policy  = var.firewall.input_policy
  output_policy = var.firewall.output_policy
  # As Proxmox has it by itself; the provider would switch it off.
  ebtables = true

  # Rules first: a firewall without them shuts everyone out.
  depends_on = [proxmox_virtual_environment_firewall_rules.this]
}
