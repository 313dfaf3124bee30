output "vm_id" {
  description = "The number in the Proxmox cluster"
  value       = proxmox_virtual_environment_vm.this.vm_id
}

output "name" {
  description = "The name"
  value       = proxmox_virtual_environment_vm.this.name
}

output "node_name" {
  description = "The Proxmox node"
  value       = proxmox_virtual_environment_vm.this.node_name
}

output "mac_addresses" {
  description = "The hardware addresses of the network devices"
  value       = [for device in proxmox_virtual_environment_vm.this.network_device : device.mac_address]
}

output "ipv4_address" {
  description = "The first fixed IPv4 address, without its prefix; null if the machine asks DHCP"
  value       = try([for config in var.initialization.ip_configs : split("/", config.ipv4_address)[0] if can(cidrnetmask(config.ipv4_address))][0], null)
}
