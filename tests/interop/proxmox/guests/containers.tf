resource "proxmox_virtual_environment_container" "debian" {
  description  = local.changed ? "changed" : "first"
  node_name    = local.node
  vm_id        = 4020
  unprivileged = true
  started      = true
  tags         = ["container", "interop"]
  pool_id      = proxmox_virtual_environment_pool.team.id

  cpu {
    cores = local.changed ? 2 : 1
    units = 512
  }

  memory {
    dedicated = local.changed ? 1024 : 512
    swap      = 256
  }

  disk {
    datastore_id = "local-lvm"
    size         = local.changed ? 8 : 4
  }

  mount_point {
    volume = "tank"
    size   = "2G"
    path   = "/srv/data"
    backup = true
  }

  features {
    nesting = true
  }

  initialization {
    hostname = local.changed ? "debian-renamed" : "debian"

    dns {
      domain  = "example.org"
      servers = ["192.0.2.53"]
    }

    ip_config {
      ipv4 {
        address = "192.0.2.120/24"
        gateway = "192.0.2.1"
      }
    }

    user_account {
      keys     = [local.ssh_key]
      password = "not a secret"
    }
  }

  network_interface {
    name        = "eth0"
    bridge      = "vmbr0"
    firewall    = true
    mac_address = "BC:24:11:00:40:20"
    vlan_id     = local.changed ? 30 : 20
  }

  operating_system {
    template_file_id = "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst"
    type             = "debian"
  }

  startup {
    order    = 5
    up_delay = 10
  }
}

# From a template that was downloaded just before, turned into a template of containers itself.
resource "proxmox_virtual_environment_container" "template" {
  node_name    = local.node
  vm_id        = 4021
  unprivileged = true
  template     = true
  started      = false

  disk {
    datastore_id = "local-lvm"
    size         = 1
  }

  initialization {
    hostname = "template"
    ip_config {
      ipv4 {
        address = "dhcp"
      }
    }
  }

  network_interface {
    name = "eth0"
  }

  operating_system {
    template_file_id = proxmox_download_file.container_template.id
    type             = "alpine"
  }
}

resource "proxmox_virtual_environment_container" "clone" {
  node_name    = local.node
  vm_id        = 4022
  unprivileged = true
  started      = local.changed

  clone {
    vm_id = proxmox_virtual_environment_container.template.vm_id
  }

  initialization {
    hostname = "clone"
    ip_config {
      ipv4 {
        address = "192.0.2.122/24"
        gateway = "192.0.2.1"
      }
    }
  }

  network_interface {
    name = "eth0"
  }
}
