resource "proxmox_network_linux_vlan" "storage" {
  node_name = local.node
  name      = "eno1.70"
  comment   = local.changed ? "changed" : "storage traffic"
}

resource "proxmox_network_linux_bridge" "storage" {
  node_name  = local.node
  name       = "vmbr70"
  address    = "192.0.2.129/28"
  comment    = "storage traffic"
  ports      = [proxmox_network_linux_vlan.storage.name]
  vlan_aware = true
  mtu        = local.changed ? 1400 : 1500
  autostart  = true
}

resource "proxmox_node_firewall" "node" {
  node_name    = local.node
  enabled      = true
  log_level_in = local.changed ? "alert" : "info"
  nosmurfs     = true
}

resource "proxmox_virtual_environment_firewall_rules" "node" {
  node_name = local.node

  rule {
    type   = "in"
    action = "ACCEPT"
    macro  = "SSH"
    source = "198.51.100.0/24"
  }
}

resource "proxmox_virtual_environment_firewall_rules" "cluster" {
  rule {
    type    = "in"
    action  = "ACCEPT"
    proto   = "tcp"
    dport   = local.changed ? "8006,3128" : "8006"
    comment = "the interface"
  }
}
