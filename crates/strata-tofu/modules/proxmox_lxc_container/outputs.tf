output "vm_id" {
  description = "The number in the Proxmox cluster"
  value       = proxmox_virtual_environment_container.this.vm_id
}

output "hostname" {
  description = "The host name"
  value       = var.hostname
}

output "node_name" {
  description = "The Proxmox node"
  value       = proxmox_virtual_environment_container.this.node_name
}

output "ipv4_address" {
  description = "The first fixed IPv4 address, without its prefix; null if the container asks DHCP"
  value       = try([for config in var.ip_configs : split("/", config.ipv4_address)[0] if can(cidrnetmask(config.ipv4_address))][0], null)
}
