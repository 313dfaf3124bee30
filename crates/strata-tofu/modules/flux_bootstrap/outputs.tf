output "namespace" {
  description = "The namespace that Flux runs in"
  value       = kubernetes_namespace_v1.flux.metadata[0].name
}

output "release_id" {
  description = "The id of the release that brings the controllers"
  value       = helm_release.flux.id
}
