# A project as people write it: no module, no mark, names of their own. What it builds is then taken over by `strata import --state`.

terraform {
  required_providers {
    proxmox = {
      source  = "bpg/proxmox"
      version = "~> 0.112"
    }
  }
}

provider "proxmox" {
  endpoint = "https://127.0.0.1:18006"
  insecure = true
}

variable "password" {
  type      = string
  sensitive = true
}

locals {
  key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPogVZJyXcJIXwdsnvmcEC4jvXyTPP1+lm/4sUJRu/ZW ops@example"
}

resource "proxmox_download_file" "debian" {
  node_name    = "pve1"
  datastore_id = "local"
  content_type = "import"
  file_name    = "debian-12.qcow2"
  url          = "https://images.example/debian-12-genericcloud-amd64.qcow2"
}

resource "proxmox_download_file" "rescue" {
  node_name    = "pve1"
  datastore_id = "local"
  content_type = "iso"
  url          = "https://images.example/systemrescue-12.02-amd64.iso"
}

resource "proxmox_download_file" "container" {
  node_name    = "pve1"
  datastore_id = "local"
  content_type = "vztmpl"
  file_name    = "debian-12.tar.zst"
  url          = "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"
}

# Nothing is made of it.
resource "proxmox_download_file" "spare" {
  node_name    = "pve2"
  datastore_id = "local"
  content_type = "iso"
  file_name    = "spare.iso"
  url          = "https://images.example/spare.iso"
}

resource "proxmox_virtual_environment_vm" "template" {
  name      = "debian-template"
  node_name = "pve1"
  vm_id     = 7000
  template  = true
  started   = false

  cpu {
    cores = 1
    type  = "host"
  }
  memory {
    dedicated = 1024
  }
  disk {
    interface    = "scsi0"
    datastore_id = "tank"
    import_from  = proxmox_download_file.debian.id
    size         = 10
  }
  network_device {
    bridge = "vmbr0"
  }
  initialization {
    datastore_id = "tank"
  }
}

resource "proxmox_virtual_environment_vm" "web" {
  count = 2

  name        = "web-${count.index + 1}"
  description = "by hand\n\nand in two paragraphs"
  node_name   = ["pve1", "pve2"][count.index]
  vm_id       = 7100 + count.index
  tags        = ["web", "debian"]
  pool_id     = "production"
  on_boot     = true
  bios        = "seabios"

  clone {
    vm_id     = proxmox_virtual_environment_vm.template.vm_id
    node_name = "pve1"
    full      = true
  }
  agent {
    enabled = false
  }
  cpu {
    cores   = 2
    sockets = 2
    type    = "x86-64-v2-AES"
    units   = 200
  }
  memory {
    dedicated = 2048
    floating  = 1024
  }
  disk {
    interface    = "scsi0"
    datastore_id = "tank"
    size         = 20
    ssd          = true
    discard      = "on"
    iothread     = true
  }
  disk {
    interface    = "scsi1"
    datastore_id = "tank"
    size         = 30
    backup       = false
    cache        = "writeback"
    serial       = "data"

    speed {
      read       = 100
      iops_write = 500
    }
  }
  network_device {
    bridge   = "vmbr0"
    vlan_id  = 30
    firewall = true
  }
  network_device {
    bridge     = "vmbr1"
    model      = "e1000"
    rate_limit = 12.5
  }
  initialization {
    datastore_id = "tank"
    interface    = "ide0"

    dns {
      servers = ["198.51.100.1", "198.51.100.2"]
      domain  = "example.com"
    }
    ip_config {
      ipv4 {
        address = "198.51.100.${21 + count.index}/24"
        gateway = "198.51.100.1"
      }
    }
    ip_config {
      ipv4 {
        address = "dhcp"
      }
    }
    user_account {
      username = "debian"
      password = var.password
      keys     = [local.key]
    }
  }
  startup {
    order    = 3
    up_delay = 10
  }
  vga {
    type = "serial0"
  }
  serial_device {}
}

# A copy that shares its disk with the template.
resource "proxmox_virtual_environment_vm" "linked" {
  name      = "linked"
  node_name = "pve1"
  vm_id     = 7110
  started   = false

  clone {
    vm_id = proxmox_virtual_environment_vm.template.vm_id
    full  = false
  }
  memory {
    dedicated = 1024
  }
}

# Made of the image itself, with UEFI and a TPM.
resource "proxmox_virtual_environment_vm" "secure" {
  name          = "secure"
  node_name     = "pve1"
  vm_id         = 7120
  machine       = "q35"
  bios          = "ovmf"
  scsi_hardware = "virtio-scsi-single"
  tablet_device = false
  started       = false
  protection    = true
  boot_order    = ["virtio0", "net0"]
  kvm_arguments = ""

  cpu {
    cores = 4
    type  = "host"
    flags = ["+aes"]
    numa  = true
  }
  memory {
    dedicated = 4096
  }
  efi_disk {
    datastore_id = "tank"
    type         = "4m"
  }
  tpm_state {
    datastore_id = "tank"
  }
  disk {
    interface    = "virtio0"
    datastore_id = "tank"
    import_from  = proxmox_download_file.debian.id
    size         = 16
  }
  network_device {
    bridge       = "vmbr0"
    disconnected = true
    mtu          = 1400
    queues       = 4
  }
  operating_system {
    type = "l26"
  }
  rng {
    source = "/dev/urandom"
  }
}

resource "proxmox_virtual_environment_vm" "rescue" {
  name      = "rescue"
  node_name = "pve1"
  vm_id     = 7130

  cdrom {
    interface = "ide2"
    file_id   = proxmox_download_file.rescue.id
  }
  disk {
    interface    = "sata0"
    datastore_id = "local-lvm"
    size         = 4
  }
  network_device {
    bridge = "vmbr1"
  }
}

resource "proxmox_virtual_environment_container" "dns" {
  node_name     = "pve1"
  vm_id         = 7200
  description   = "answers"
  tags          = ["dns"]
  unprivileged  = true
  start_on_boot = true

  cpu {
    cores = 2
    units = 512
  }
  memory {
    dedicated = 256
    swap      = 128
  }
  disk {
    datastore_id = "local-lvm"
    size         = 4
  }
  mount_point {
    volume = "local-lvm"
    size   = "2G"
    path   = "/srv/data"
    backup = true
  }
  network_interface {
    name     = "eth0"
    bridge   = "vmbr0"
    vlan_id  = 30
    firewall = true
  }
  network_interface {
    name   = "inner"
    bridge = "vmbr1"
  }
  initialization {
    hostname = "dns"

    dns {
      servers = ["198.51.100.1"]
      domain  = "example.com"
    }
    ip_config {
      ipv4 {
        address = "198.51.100.53/24"
        gateway = "198.51.100.1"
      }
    }
    ip_config {
      ipv4 {
        address = "dhcp"
      }
    }
    user_account {
      password = var.password
      keys     = [local.key]
    }
  }
  operating_system {
    template_file_id = proxmox_download_file.container.id
    type             = "debian"
  }
  features {
    nesting = true
  }
  startup {
    order = 1
  }
}

resource "proxmox_virtual_environment_firewall_options" "web" {
  node_name     = "pve1"
  vm_id         = proxmox_virtual_environment_vm.web[0].vm_id
  enabled       = true
  input_policy  = "DROP"
  output_policy = "ACCEPT"
  dhcp          = true
}

resource "proxmox_virtual_environment_firewall_rules" "web" {
  node_name = "pve1"
  vm_id     = proxmox_virtual_environment_vm.web[0].vm_id

  rule {
    type    = "in"
    action  = "ACCEPT"
    proto   = "tcp"
    dport   = "443"
    comment = "https"
  }
  rule {
    type    = "in"
    action  = "DROP"
    macro   = "SSH"
    log     = "info"
    enabled = false
  }
}

# Strata has no place for these yet: they are told, and stay.
resource "proxmox_virtual_environment_pool" "spare" {
  pool_id = "spare"
}

resource "proxmox_virtual_environment_firewall_alias" "office" {
  name = "office"
  cidr = "198.51.100.0/24"
}
