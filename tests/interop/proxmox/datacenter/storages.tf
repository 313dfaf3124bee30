resource "proxmox_storage_directory" "archive" {
  id      = "archive"
  path    = "/srv/archive"
  nodes   = ["pve1", "pve2"]
  content = local.changed ? ["backup", "iso", "snippets"] : ["backup", "iso"]
  shared  = false

  backups {
    keep_daily = 7
  }
}

resource "proxmox_storage_nfs" "media" {
  id      = "media"
  server  = "192.0.2.21"
  export  = "/media"
  nodes   = ["pve1", "pve2", "pve3"]
  content = ["iso", "import"]
  options = "vers=4.2"
  disable = local.changed
}

resource "proxmox_storage_lvmthin" "fast" {
  id           = "fast"
  nodes        = ["pve3"]
  volume_group = "nvme"
  thin_pool    = "data"
  content      = local.changed ? ["images", "rootdir"] : ["images"]
}

resource "proxmox_storage_zfspool" "pool" {
  id             = "flash"
  zfs_pool       = "rpool/data"
  nodes          = ["pve2"]
  content        = ["images", "rootdir"]
  thin_provision = true
}
