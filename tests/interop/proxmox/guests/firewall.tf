resource "proxmox_virtual_environment_firewall_alias" "office" {
  name    = "office"
  cidr    = local.changed ? "198.51.100.0/25" : "198.51.100.0/24"
  comment = "where people sit"
}

resource "proxmox_virtual_environment_firewall_ipset" "monitoring" {
  name    = "monitoring"
  comment = "who may look"

  cidr {
    name = "203.0.113.10"
  }

  dynamic "cidr" {
    for_each = local.changed ? ["203.0.113.11", "203.0.113.64/27"] : ["203.0.113.11"]
    content {
      name    = cidr.value
      comment = "one more"
    }
  }
}

resource "proxmox_virtual_environment_cluster_firewall_security_group" "web" {
  name    = "web"
  comment = "what the world may see"

  rule {
    type    = "in"
    action  = "ACCEPT"
    macro   = "HTTPS"
    comment = "the web"
  }

  dynamic "rule" {
    for_each = local.changed ? [1] : []
    content {
      type   = "in"
      action = "ACCEPT"
      macro  = "HTTP"
    }
  }
}

resource "proxmox_virtual_environment_firewall_options" "vm" {
  node_name = proxmox_virtual_environment_vm.from_iso.node_name
  vm_id     = proxmox_virtual_environment_vm.from_iso.vm_id

  enabled       = true
  dhcp          = true
  ipfilter      = local.changed
  macfilter     = true
  ndp           = true
  radv          = false
  log_level_in  = local.changed ? "info" : "nolog"
  input_policy  = "DROP"
  output_policy = "ACCEPT"
}

resource "proxmox_virtual_environment_firewall_rules" "vm" {
  node_name = proxmox_virtual_environment_vm.from_iso.node_name
  vm_id     = proxmox_virtual_environment_vm.from_iso.vm_id

  rule {
    type    = "in"
    action  = "ACCEPT"
    proto   = "tcp"
    dport   = local.changed ? "22,2222" : "22"
    source  = proxmox_virtual_environment_firewall_alias.office.name
    comment = "SSH from the office"
    log     = "info"
  }

  rule {
    type    = "in"
    action  = "ACCEPT"
    proto   = "tcp"
    dport   = "9100"
    source  = "+${proxmox_virtual_environment_firewall_ipset.monitoring.name}"
    comment = "metrics"
  }

  rule {
    security_group = proxmox_virtual_environment_cluster_firewall_security_group.web.name
    comment        = "the web"
    iface          = "net0"
  }

  dynamic "rule" {
    for_each = local.changed ? [1] : []
    content {
      type    = "out"
      action  = "DROP"
      dest    = "192.0.2.66"
      enabled = false
    }
  }
}

resource "proxmox_virtual_environment_firewall_options" "container" {
  node_name    = proxmox_virtual_environment_container.debian.node_name
  container_id = proxmox_virtual_environment_container.debian.vm_id

  enabled      = true
  input_policy = local.changed ? "REJECT" : "DROP"
}

resource "proxmox_virtual_environment_firewall_rules" "container" {
  node_name    = proxmox_virtual_environment_container.debian.node_name
  container_id = proxmox_virtual_environment_container.debian.vm_id

  rule {
    type   = "in"
    action = "ACCEPT"
    macro  = "Ping"
  }
}
