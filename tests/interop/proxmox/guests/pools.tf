resource "proxmox_virtual_environment_pool" "team" {
  pool_id = "interop"
  comment = local.changed ? "another comment" : "a comment"
}

resource "proxmox_pool_membership" "storage" {
  pool_id    = proxmox_virtual_environment_pool.team.id
  storage_id = "tank"
}

resource "proxmox_pool_membership" "vm" {
  pool_id = proxmox_virtual_environment_pool.team.id
  vm_id   = proxmox_virtual_environment_vm.minimal.vm_id
}
