# A guest that answers by its agent, and one that is shut down by it.
resource "proxmox_virtual_environment_vm" "answers" {
  name      = "answers"
  node_name = local.node
  vm_id     = 4106
  started   = true

  agent {
    enabled = true
    timeout = "20s"
  }

  disk {
    interface    = "scsi0"
    datastore_id = "local-lvm"
    import_from  = proxmox_download_file.image.id
    size         = 4 + var.stage
  }

  network_device {
    bridge = "vmbr0"
  }

  initialization {
    ip_config {
      ipv4 {
        address = "192.0.2.106/24"
        gateway = "192.0.2.1"
      }
    }
  }
}

output "answer" {
  value = proxmox_virtual_environment_vm.answers.ipv4_addresses
}
