output "vm_id" {
  description = "The number that machines are cloned from"
  value       = module.vm.vm_id
}

output "name" {
  description = "The name"
  value       = module.vm.name
}

output "node_name" {
  description = "The Proxmox node that the template is on"
  value       = module.vm.node_name
}

output "image_id" {
  description = "The volume of the image; null if the module did not download one"
  value       = one(proxmox_download_file.image[*].id)
}
