output "pools" {
  description = "The pools"
  value       = keys(proxmox_virtual_environment_pool.this)
}

output "users" {
  description = "The users"
  value       = keys(proxmox_virtual_environment_user.this)
}

output "token_ids" {
  description = "The tokens: `user@realm!name`"
  value       = keys(proxmox_user_token.this)
}

output "token_values" {
  description = "What is sent as the tokens, by token"
  value       = { for id, token in proxmox_user_token.this : id => token.value }
  sensitive   = true
}

output "storages" {
  description = "The storages"
  value       = keys(var.storages)
}
