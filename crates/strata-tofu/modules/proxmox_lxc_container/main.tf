resource "proxmox_virtual_environment_container" "this" {
  vm_id       = var.vm_id
  node_name   = var.node_name
  description = var.description
  tags        = var.tags
  pool_id     = var.pool_id

  started       = var.started
  start_on_boot = var.start_on_boot
  protection    = var.protection
  unprivileged  = var.unprivileged

  timeout_create = try(var.timeouts.create, null)
  timeout_clone  = try(var.timeouts.clone, null)
  timeout_delete = try(var.timeouts.delete, null)

  operating_system {
    template_file_id = var.template_file_id
    type             = var.os_type
  }

  initialization {
    hostname = var.hostname

    dynamic "dns" {
      for_each = length(var.dns_servers) == 0 && var.dns_domain == null ? [] : [1]

      content {
        servers = var.dns_servers
        domain  = var.dns_domain
      }
    }

    dynamic "ip_config" {
      for_each = var.ip_configs

      content {
        dynamic "ipv4" {
          for_each = ip_config.value.ipv4_address == null ? [] : [1]

          content {
            address = ip_config.value.ipv4_address
            gateway = ip_config.value.ipv4_gateway
          }
        }

        dynamic "ipv6" {
          for_each = ip_config.value.ipv6_address == null ? [] : [1]

          content {
            address = ip_config.value.ipv6_address
            gateway = ip_config.value.ipv6_gateway
          }
        }
      }
    }

    dynamic "user_account" {
      for_each = length(var.ssh_keys) == 0 && nonsensitive(var.user_password == null) ? [] : [1]

      content {
        keys     = var.ssh_keys
        password = var.user_password
      }
    }
  }

  dynamic "cpu" {
    for_each = var.cpu == null ? [] : [var.cpu]

    content {
      cores = cpu.value.cores
      units = cpu.value.units
      limit = cpu.value.limit
    }
  }

  dynamic "memory" {
    for_each = var.memory == null ? [] : [var.memory]

    content {
      dedicated = memory.value.dedicated
      swap      = memory.value.swap
    }
  }

  dynamic "disk" {
    for_each = var.disk == null ? [] : [var.disk]

    content {
      datastore_id  = disk.value.datastore_id
      size          = disk.value.size
      acl           = disk.value.acl
      quota         = disk.value.quota
      replicate     = disk.value.replicate
      mount_options = disk.value.mount_options
    }
  }

  dynamic "mount_point" {
    for_each = var.mount_points

    content {
      path          = mount_point.value.path
      volume        = mount_point.value.volume
      size          = mount_point.value.size
      read_only     = mount_point.value.read_only
      backup        = mount_point.value.backup
      quota         = mount_point.value.quota
      acl           = mount_point.value.acl
      replicate     = mount_point.value.replicate
      shared        = mount_point.value.shared
      mount_options = mount_point.value.mount_options
    }
  }

  dynamic "network_interface" {
    for_each = var.network_interfaces

    content {
      name        = network_interface.value.name
      enabled     = network_interface.value.enabled
      bridge      = network_interface.value.bridge
      mac_address = network_interface.value.mac_address
      vlan_id     = network_interface.value.vlan_id
      mtu         = network_interface.value.mtu
      firewall    = network_interface.value.firewall
      rate_limit  = network_interface.value.rate_limit
    }
  }

  dynamic "features" {
    for_each = var.features == null ? [] : [var.features]

    content {
      nesting = features.value.nesting
      keyctl  = features.value.keyctl
      fuse    = features.value.fuse
      mknod   = features.value.mknod
      mount   = features.value.mount
    }
  }

  dynamic "console" {
    for_each = var.console == null ? [] : [var.console]

    content {
      enabled   = console.value.enabled
      tty_count = console.value.tty_count
      type      = console.value.type
    }
  }

  dynamic "startup" {
    for_each = var.startup == null ? [] : [var.startup]

    content {
      order      = startup.value.order
      up_delay   = startup.value.up_delay
      down_delay = startup.value.down_delay
    }
  }

  # What a container is made from is of no interest afterwards: another template never replaces it.
  lifecycle {
    ignore_changes = [operating_system, initialization[0].user_account]
  }
}

resource "proxmox_virtual_environment_firewall_options" "this" {
  count = var.firewall == null ? 0 : 1

  node_name     = proxmox_virtual_environment_container.this.node_name
  container_id  = proxmox_virtual_environment_container.this.vm_id
  enabled       = var.firewall.enabled
  dhcp          = var.firewall.dhcp
  macfilter     = var.firewall.macfilter
  ipfilter      = var.firewall.ipfilter
  ndp           = var.firewall.ndp
  radv          = var.firewall.radv
  input_policy  = var.firewall.input_policy
  output_policy = var.firewall.output_policy
  log_level_in  = var.firewall.log_level_in
  log_level_out = var.firewall.log_level_out
}

resource "proxmox_virtual_environment_firewall_rules" "this" {
  count = length(try(coalesce(var.firewall.rules, []), [])) == 0 ? 0 : 1

  node_name    = proxmox_virtual_environment_container.this.node_name
  container_id = proxmox_virtual_environment_container.this.vm_id

  dynamic "rule" {
    for_each = var.firewall.rules

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
}
