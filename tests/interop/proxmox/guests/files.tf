# An ISO uploaded from here.
resource "proxmox_virtual_environment_file" "installer" {
  content_type = "iso"
  datastore_id = "local"
  node_name    = local.node

  source_file {
    path = "${var.folder}/installer.iso"
  }
}

# A text that changes, uploaded as an ISO.
resource "proxmox_virtual_environment_file" "seed" {
  content_type = "iso"
  datastore_id = "tank"
  node_name    = local.node

  source_raw {
    data      = local.changed ? "second seed, a little longer" : "first seed"
    file_name = "seed.iso"
  }
}

# A cloud image that Proxmox downloads by itself.
resource "proxmox_download_file" "cloud_image" {
  content_type = "import"
  datastore_id = "local"
  node_name    = local.node
  file_name    = "debian-13-generic-amd64.qcow2"
  url          = "https://images.example.org/debian-13-generic-amd64.qcow2"
}

# An ISO that Proxmox downloads by itself; the URL says its name.
resource "proxmox_download_file" "rescue" {
  content_type = "iso"
  datastore_id = "tank"
  node_name    = local.node
  url          = local.changed ? "https://images.example.org/rescue-2.iso" : "https://images.example.org/rescue-1.iso"
}

resource "proxmox_download_file" "container_template" {
  content_type = "vztmpl"
  datastore_id = "tank"
  node_name    = local.node
  file_name    = "alpine-3.22-default_20250617_amd64.tar.xz"
  url          = "https://images.example.org/alpine-3.22-default_20250617_amd64.tar.xz"
}
