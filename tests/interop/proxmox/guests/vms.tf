# As little as a VM can be.
resource "proxmox_virtual_environment_vm" "minimal" {
  name      = "minimal"
  node_name = local.node
  vm_id     = 4000
  started   = local.changed
  on_boot   = false

  stop_on_destroy = true
}

# Booted from an ISO, with most of what a VM can have.
resource "proxmox_virtual_environment_vm" "from_iso" {
  name        = local.changed ? "from-iso-renamed" : "from-iso"
  description = local.changed ? "Two lines,\nwith ümlauts: 100 %" : "One line"
  tags        = local.changed ? ["changed", "interop"] : ["interop"]
  node_name   = local.node
  vm_id       = 4001
  started     = true
  on_boot     = true
  boot_order  = ["scsi0", "ide2"]
  protection  = false

  bios          = "ovmf"
  machine       = "q35"
  scsi_hardware = "virtio-scsi-single"

  stop_on_destroy = true

  cpu {
    cores   = local.changed ? 4 : 2
    sockets = 1
    type    = "x86-64-v2-AES"
    flags   = ["+aes"]
    numa    = true
    units   = 200
  }

  memory {
    dedicated = local.changed ? 4096 : 2048
    floating  = local.changed ? 4096 : 1024
  }

  agent {
    enabled = false
  }

  cdrom {
    file_id   = local.changed ? proxmox_download_file.rescue.id : proxmox_virtual_environment_file.installer.id
    interface = "ide2"
  }

  efi_disk {
    datastore_id      = "local-lvm"
    type              = "4m"
    pre_enrolled_keys = true
  }

  tpm_state {
    datastore_id = "local-lvm"
    version      = "v2.0"
  }

  disk {
    interface    = "scsi0"
    datastore_id = "local-lvm"
    size         = local.changed ? 24 : 16
    ssd          = true
    discard      = "on"
    iothread     = true
    cache        = "writeback"
    backup       = false
    replicate    = false
  }

  disk {
    interface    = "virtio1"
    datastore_id = "tank"
    file_format  = "qcow2"
    size         = 8
    serial       = "data-1"
  }

  dynamic "disk" {
    for_each = local.changed ? [1] : []
    content {
      interface    = "scsi2"
      datastore_id = "local-lvm"
      size         = 4
    }
  }

  network_device {
    bridge      = "vmbr0"
    mac_address = "BC:24:11:00:40:01"
    vlan_id     = local.changed ? 30 : 20
    firewall    = true
    queues      = 2
  }

  network_device {
    bridge       = "vmbr1"
    model        = "e1000"
    disconnected = local.changed
    rate_limit   = 12.5
  }

  operating_system {
    type = "l26"
  }

  serial_device {}

  vga {
    type   = "std"
    memory = 32
  }

  startup {
    order      = 3
    up_delay   = 30
    down_delay = 60
  }
}

# A disk made from a cloud image, with cloud-init.
resource "proxmox_virtual_environment_vm" "from_image" {
  name      = "from-image"
  node_name = local.node
  vm_id     = 4002
  started   = true
  tags      = ["image", "interop"]
  pool_id   = local.changed ? "production" : proxmox_virtual_environment_pool.team.id

  stop_on_destroy = true

  cpu {
    cores = 2
    type  = "host"
  }

  memory {
    dedicated = 1024
  }

  disk {
    interface    = "virtio0"
    datastore_id = "local-lvm"
    import_from  = proxmox_download_file.cloud_image.id
    size         = 10
    discard      = "on"
    iothread     = true
  }

  network_device {
    bridge = "vmbr0"
  }

  network_device {
    bridge = "vmbr1"
  }

  initialization {
    datastore_id = "local-lvm"
    interface    = "ide2"

    dns {
      domain  = "example.org"
      servers = local.changed ? ["192.0.2.53", "192.0.2.54"] : ["192.0.2.53"]
    }

    ip_config {
      ipv4 {
        address = "192.0.2.102/24"
        gateway = "192.0.2.1"
      }
    }

    ip_config {
      ipv4 {
        address = "dhcp"
      }
      ipv6 {
        address = "auto"
      }
    }

    user_account {
      username = local.changed ? "operator" : "debian"
      password = "not a secret: 1+1=2 & more"
      keys     = [local.ssh_key]
    }
  }

  operating_system {
    type = "l26"
  }

  serial_device {}
}
