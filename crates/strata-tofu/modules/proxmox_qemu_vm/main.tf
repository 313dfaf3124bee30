resource "proxmox_virtual_environment_vm" "this" {
  name        = var.name
  vm_id       = var.vm_id
  node_name   = var.node_name
  description = var.description
  tags        = var.tags
  pool_id     = var.pool_id

  started         = var.started
  on_boot         = var.on_boot
  protection      = var.protection
  template        = var.template
  stop_on_destroy = true

  bios          = var.bios
  machine       = var.machine
  scsi_hardware = var.scsi_hardware
  tablet_device = var.tablet_device
  hotplug       = var.hotplug
  boot_order    = var.boot_order

  timeout_create      = try(var.timeouts.create, null)
  timeout_clone       = try(var.timeouts.clone, null)
  timeout_start_vm    = try(var.timeouts.start, null)
  timeout_shutdown_vm = try(var.timeouts.shutdown, null)
  timeout_migrate     = try(var.timeouts.migrate, null)

  dynamic "clone" {
    for_each = var.clone == null ? [] : [var.clone]

    content {
      vm_id        = clone.value.vm_id
      node_name    = clone.value.node_name
      full         = clone.value.full
      datastore_id = clone.value.datastore_id
    }
  }

  dynamic "operating_system" {
    for_each = var.os_type == null ? [] : [var.os_type]

    content {
      type = operating_system.value
    }
  }

  dynamic "cpu" {
    for_each = var.cpu == null ? [] : [var.cpu]

    content {
      type     = cpu.value.type
      cores    = cpu.value.cores
      sockets  = cpu.value.sockets
      units    = cpu.value.units
      limit    = cpu.value.limit
      numa     = cpu.value.numa
      flags    = cpu.value.flags
      affinity = cpu.value.affinity
    }
  }

  dynamic "memory" {
    for_each = var.memory == null ? [] : [var.memory]

    content {
      dedicated = memory.value.dedicated
      floating  = memory.value.floating
    }
  }

  # A plan never waits for the agent: addresses are known from the source.
  dynamic "agent" {
    for_each = var.agent == null ? [] : [var.agent]

    content {
      enabled = agent.value.enabled
      trim    = agent.value.trim
      type    = agent.value.type

      wait_for_ip {
        disabled = true
      }
    }
  }

  dynamic "disk" {
    for_each = var.disks

    content {
      interface         = disk.key
      datastore_id      = disk.value.datastore_id
      size              = disk.value.size
      file_format       = disk.value.file_format
      import_from       = disk.value.import_from
      path_in_datastore = disk.value.path_in_datastore
      ssd               = disk.value.ssd
      discard           = disk.value.discard == null ? null : disk.value.discard ? "on" : "ignore"
      iothread          = disk.value.iothread
      backup            = disk.value.backup
      replicate         = disk.value.replicate
      cache             = disk.value.cache
      aio               = disk.value.aio
      serial            = disk.value.serial
    }
  }

  dynamic "cdrom" {
    for_each = var.cdrom == null ? [] : [var.cdrom]

    content {
      interface = cdrom.value.interface
      file_id   = cdrom.value.file_id
    }
  }

  dynamic "efi_disk" {
    for_each = var.efi_disk == null ? [] : [var.efi_disk]

    content {
      datastore_id      = efi_disk.value.datastore_id
      type              = efi_disk.value.type
      pre_enrolled_keys = efi_disk.value.pre_enrolled_keys
      file_format       = efi_disk.value.file_format
    }
  }

  dynamic "tpm_state" {
    for_each = var.tpm_state == null ? [] : [var.tpm_state]

    content {
      datastore_id = tpm_state.value.datastore_id
      version      = tpm_state.value.version
    }
  }

  dynamic "network_device" {
    for_each = var.network_devices

    content {
      enabled      = network_device.value.enabled
      bridge       = network_device.value.bridge
      model        = network_device.value.model
      mac_address  = network_device.value.mac_address
      vlan_id      = network_device.value.vlan_id
      trunks       = network_device.value.trunks
      mtu          = network_device.value.mtu
      queues       = network_device.value.queues
      firewall     = network_device.value.firewall
      disconnected = network_device.value.disconnected
      rate_limit   = network_device.value.rate_limit
    }
  }

  dynamic "initialization" {
    for_each = var.initialization == null ? [] : [var.initialization]

    content {
      datastore_id         = initialization.value.datastore_id
      interface            = initialization.value.interface
      type                 = initialization.value.type
      upgrade              = initialization.value.upgrade
      user_data_file_id    = initialization.value.user_data_file_id
      vendor_data_file_id  = initialization.value.vendor_data_file_id
      network_data_file_id = initialization.value.network_data_file_id
      meta_data_file_id    = initialization.value.meta_data_file_id

      dynamic "dns" {
        for_each = initialization.value.dns_servers == null && initialization.value.dns_domain == null ? [] : [1]

        content {
          servers = initialization.value.dns_servers
          domain  = initialization.value.dns_domain
        }
      }

      dynamic "ip_config" {
        for_each = coalesce(initialization.value.ip_configs, [])

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
        for_each = initialization.value.username == null && initialization.value.ssh_keys == null && nonsensitive(var.user_password == null) ? [] : [1]

        content {
          username = initialization.value.username
          keys     = initialization.value.ssh_keys
          password = var.user_password
        }
      }
    }
  }

  dynamic "hostpci" {
    for_each = var.hostpci

    content {
      device  = hostpci.key
      id      = hostpci.value.id
      mapping = hostpci.value.mapping
      pcie    = hostpci.value.pcie
      rombar  = hostpci.value.rombar
      xvga    = hostpci.value.xvga
      mdev    = hostpci.value.mdev
    }
  }

  dynamic "usb" {
    for_each = var.usb

    content {
      host    = usb.value.host
      mapping = usb.value.mapping
      usb3    = usb.value.usb3
    }
  }

  dynamic "serial_device" {
    for_each = var.serial_devices

    content {
      device = serial_device.value
    }
  }

  dynamic "vga" {
    for_each = var.vga == null ? [] : [var.vga]

    content {
      type   = vga.value.type
      memory = vga.value.memory
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

  # What a machine is made from, and told at its first boot, is of no interest afterwards: a change of it never replaces the machine.
  lifecycle {
    ignore_changes = [clone, initialization]
  }
}

resource "proxmox_virtual_environment_firewall_options" "this" {
  count = var.firewall == null ? 0 : 1

  node_name     = proxmox_virtual_environment_vm.this.node_name
  vm_id         = proxmox_virtual_environment_vm.this.vm_id
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

  node_name = proxmox_virtual_environment_vm.this.node_name
  vm_id     = proxmox_virtual_environment_vm.this.vm_id

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
