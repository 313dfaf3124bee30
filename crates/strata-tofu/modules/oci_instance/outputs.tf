output "id" {
  description = "The id of the instance"
  value       = oci_core_instance.this.id
}

output "private_ip" {
  description = "The address inside its network"
  value       = oci_core_instance.this.private_ip
}

output "public_ip" {
  description = "The address on the internet; empty if it has none"
  value       = oci_core_instance.this.public_ip
}
