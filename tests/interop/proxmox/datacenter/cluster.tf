resource "proxmox_hardware_mapping_pci" "gpu" {
  name    = "gpu"
  comment = local.changed ? "changed" : "first"
  map = [
    {
      id           = "10de:2204"
      node         = local.node
      path         = "0000:01:00.0"
      iommu_group  = 1
      subsystem_id = "1458:403b"
    },
  ]
}

resource "proxmox_hardware_mapping_usb" "key" {
  name = "key"
  map = [
    {
      id   = "1050:0407"
      node = local.node
    },
  ]
}

resource "proxmox_hardware_mapping_dir" "share" {
  name = "share"
  map = [
    {
      node = local.node
      path = "/srv/share"
    },
  ]
}

resource "proxmox_metrics_server" "graphite" {
  name   = "graphite"
  server = "192.0.2.30"
  port   = local.changed ? 2004 : 2003
  type   = "graphite"
}

resource "proxmox_backup_job" "daily" {
  id       = "daily"
  schedule = local.changed ? "*-*-* 03:00" : "*-*-* 02:00"
  storage  = "local"
  all      = true
  mode     = "snapshot"
  compress = "zstd"
}

resource "proxmox_virtual_environment_vm" "available" {
  count     = 2
  name      = "available-${count.index}"
  node_name = local.node
  vm_id     = 4200 + count.index
  started   = false
}

resource "proxmox_haresource" "available" {
  count       = 2
  resource_id = "vm:${proxmox_virtual_environment_vm.available[count.index].vm_id}"
  state       = "stopped"
  comment     = local.changed ? "changed" : "first"
}

resource "proxmox_harule" "apart" {
  rule      = "apart"
  type      = "resource-affinity"
  affinity  = "negative"
  comment   = local.changed ? "changed" : "first"
  resources = proxmox_haresource.available[*].resource_id
}

resource "proxmox_cluster_options" "options" {
  keyboard    = local.changed ? "de" : "en-us"
  email_from  = "pve@example.org"
  max_workers = 5
  next_id = {
    lower = 4000
    upper = 5000
  }
}
