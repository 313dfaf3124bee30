output "addresses" {
  description = "The address of each node, by name"
  value       = local.addresses
}

output "talosconfig" {
  description = "The configuration of talosctl"
  value       = data.talos_client_configuration.this.talos_config
  sensitive   = true
}

output "kubeconfig" {
  description = "The configuration of kubectl"
  value       = talos_cluster_kubeconfig.this.kubeconfig_raw
  sensitive   = true
}

output "kubernetes" {
  description = "How the Kubernetes API is reached: host and certificates"
  value       = talos_cluster_kubeconfig.this.kubernetes_client_configuration
  sensitive   = true
}
