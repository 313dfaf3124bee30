# Guests that go to other storages and hypervisors, lose and gain disks, become templates.

resource "proxmox_download_file" "image" {
  content_type = "import"
  datastore_id = "tank"
  node_name    = local.node
  file_name    = "small.qcow2"
  url          = "https://images.example.org/small.qcow2"
}

# Stage 2: its disk goes to another storage. Stage 3: it goes to another hypervisor, running. Stage 4: stopped, and back.
resource "proxmox_virtual_environment_vm" "wanderer" {
  name      = "wanderer"
  node_name = var.stage == 3 ? "pve2" : local.node
  vm_id     = 4100
  started   = var.stage < 4
  migrate   = true

  stop_on_destroy = true

  disk {
    interface    = "scsi0"
    datastore_id = var.stage == 1 ? "local-lvm" : "tank"
    file_format  = "raw"
    size         = 4
  }

  network_device {
    bridge = "vmbr0"
  }
}

# Disks that come and go while it runs; a CD that is ejected.
resource "proxmox_virtual_environment_vm" "disks" {
  name      = "disks"
  node_name = local.node
  vm_id     = 4101
  started   = true
  machine   = "q35"

  stop_on_destroy = true

  cdrom {
    interface = "ide0"
    file_id   = var.stage == 1 ? proxmox_download_file.rescue.id : "none"
  }

  dynamic "disk" {
    for_each = [["scsi0"], ["scsi0", "scsi1", "virtio3"], ["scsi0", "virtio3"], ["scsi0"]][var.stage - 1]
    content {
      interface    = disk.value
      datastore_id = "local-lvm"
      # An operating system, which releases what is unplugged.
      import_from = disk.value == "scsi0" ? proxmox_download_file.image.id : null
      size        = 4 + var.stage
    }
  }

  dynamic "network_device" {
    for_each = range(var.stage)
    content {
      bridge = network_device.value == 0 ? "vmbr0" : "vmbr1"
    }
  }

  dynamic "efi_disk" {
    for_each = var.stage > 2 ? [1] : []
    content {
      datastore_id = "tank"
      type         = "4m"
    }
  }

  dynamic "tpm_state" {
    for_each = var.stage > 1 ? [1] : []
    content {
      datastore_id = var.stage == 2 ? "tank" : "local-lvm"
    }
  }
}

resource "proxmox_download_file" "rescue" {
  content_type = "iso"
  datastore_id = "tank"
  node_name    = local.node
  url          = "https://images.example.org/rescue.iso"
}

# A VM that becomes a template, and clones of it on two hypervisors from the storage they share.
resource "proxmox_virtual_environment_vm" "golden" {
  name      = "golden"
  node_name = local.node
  vm_id     = 4102
  started   = false
  template  = var.stage > 1

  disk {
    interface    = "virtio0"
    datastore_id = "tank"
    file_format  = "qcow2"
    import_from  = proxmox_download_file.image.id
    size         = 3
  }

  network_device {
    bridge = "vmbr0"
  }
}

resource "proxmox_virtual_environment_vm" "clones" {
  for_each = var.stage > 1 ? { pve1 = 4103, pve2 = 4104, pve3 = 4105 } : {}

  name      = "clone-${each.key}"
  node_name = each.key
  vm_id     = each.value
  started   = var.stage == 3

  stop_on_destroy = true

  clone {
    vm_id     = proxmox_virtual_environment_vm.golden.vm_id
    node_name = local.node
    full      = each.key != "pve2"
  }
}

# A container that gains mount points and comes to run.
resource "proxmox_virtual_environment_container" "box" {
  node_name     = local.node
  vm_id         = 4110
  unprivileged  = true
  started       = var.stage != 2
  start_on_boot = var.stage == 3

  disk {
    datastore_id = "tank"
    size         = var.stage
  }

  dynamic "mount_point" {
    for_each = range(var.stage - 1)
    content {
      volume = "local-lvm"
      size   = "${mount_point.value + 1}G"
      path   = "/srv/${mount_point.value}"
    }
  }

  initialization {
    hostname = "box"
    ip_config {
      ipv4 {
        address = "192.0.2.130/24"
      }
    }
  }

  network_interface {
    name = "eth0"
  }

  operating_system {
    template_file_id = "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst"
    type             = "debian"
  }
}
