# Something to clone from, on a storage that can make linked clones.
resource "proxmox_virtual_environment_vm" "template" {
  name      = "template"
  node_name = local.node
  vm_id     = 4010
  template  = true
  started   = false
  tags      = ["interop", "template"]

  cpu {
    cores = 1
    type  = "host"
  }

  memory {
    dedicated = 512
  }

  disk {
    interface    = "scsi0"
    datastore_id = "local-lvm"
    import_from  = proxmox_download_file.cloud_image.id
    size         = 4
  }

  network_device {
    bridge = "vmbr0"
  }

  initialization {
    datastore_id = "local-lvm"
  }

  operating_system {
    type = "l26"
  }
}

resource "proxmox_virtual_environment_vm" "full_clone" {
  name      = "full-clone"
  node_name = local.node
  vm_id     = 4011
  started   = true
  tags      = ["clone", "interop"]

  stop_on_destroy = true

  clone {
    vm_id        = proxmox_virtual_environment_vm.template.vm_id
    datastore_id = "tank"
    full         = true
  }

  agent {
    enabled = false
  }

  cpu {
    cores = 2
    type  = "host"
  }

  memory {
    dedicated = local.changed ? 2048 : 1024
  }

  disk {
    interface    = "scsi0"
    datastore_id = "tank"
    file_format  = "raw" # as the template's: a clone keeps the format if the storage can
    size         = local.changed ? 20 : 12
  }

  network_device {
    bridge = "vmbr0"
  }

  initialization {
    datastore_id = "tank"
    ip_config {
      ipv4 {
        address = "192.0.2.111/24"
        gateway = "192.0.2.1"
      }
    }
    user_account {
      username = "debian"
      keys     = [local.ssh_key]
    }
  }
}

resource "proxmox_virtual_environment_vm" "linked_clone" {
  name      = local.changed ? "linked-clone-renamed" : "linked-clone"
  node_name = local.node
  vm_id     = 4012
  started   = local.changed
  on_boot   = false

  stop_on_destroy = true

  clone {
    vm_id = proxmox_virtual_environment_vm.template.vm_id
    full  = false
  }
}

# The same by the newer resource of the provider.
resource "proxmox_cloned_vm" "linked" {
  name      = "cloned"
  node_name = local.node
  id        = 4013
  tags      = ["interop"]

  clone = {
    source_vm_id = proxmox_virtual_environment_vm.template.vm_id
    full         = false
  }

  cpu = {
    cores = local.changed ? 3 : 2
  }

  network = {
    net0 = {
      bridge = "vmbr0"
      model  = "virtio"
      tag    = local.changed ? 41 : 40
    }
  }

  stop_on_destroy                      = true
  delete_unreferenced_disks_on_destroy = true
}
