# What the provider reads.
data "proxmox_virtual_environment_version" "version" {}
data "proxmox_virtual_environment_nodes" "nodes" {}
data "proxmox_virtual_environment_node" "node" {
  node_name = local.node
}
data "proxmox_virtual_environment_datastores" "datastores" {
  node_name = local.node
}
data "proxmox_virtual_environment_pools" "pools" {}
data "proxmox_virtual_environment_pool" "pool" {
  pool_id = "production"
}
data "proxmox_virtual_environment_roles" "roles" {}
data "proxmox_virtual_environment_role" "administrator" {
  role_id = "Administrator"
}
data "proxmox_virtual_environment_users" "users" {}
data "proxmox_virtual_environment_user" "root" {
  user_id = "root@pam"
}
data "proxmox_virtual_environment_groups" "groups" {}
data "proxmox_virtual_environment_vms" "vms" {
  depends_on = [proxmox_virtual_environment_vm.available]
}
data "proxmox_virtual_environment_containers" "containers" {}
data "proxmox_virtual_environment_dns" "dns" {
  node_name = local.node
}
data "proxmox_virtual_environment_hosts" "hosts" {
  node_name = local.node
}
data "proxmox_virtual_environment_time" "time" {
  node_name = local.node
}
data "proxmox_virtual_environment_file" "template" {
  node_name    = local.node
  datastore_id = "local"
  content_type = "vztmpl"
  file_name    = "debian-12-standard_12.7-1_amd64.tar.zst"
}

output "seen" {
  value = {
    version = data.proxmox_virtual_environment_version.version.release
    nodes   = data.proxmox_virtual_environment_nodes.nodes.names
    pools   = data.proxmox_virtual_environment_pools.pools.pool_ids
    file    = data.proxmox_virtual_environment_file.template.id
    vms     = data.proxmox_virtual_environment_vms.vms.vms[*].name
  }
}
