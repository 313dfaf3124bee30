resource "kubernetes_namespace_v1" "flux" {
  metadata {
    name = "flux-system"
  }

  # Flux labels its namespace itself once it runs.
  lifecycle {
    ignore_changes = [metadata]
  }
}

resource "kubernetes_secret_v1" "age" {
  count = nonsensitive(var.age_key == null) ? 0 : 1

  metadata {
    name      = "sops-age"
    namespace = kubernetes_namespace_v1.flux.metadata[0].name
  }

  data = {
    "age.agekey" = var.age_key
  }
}

resource "kubernetes_secret_v1" "git" {
  count = nonsensitive(length(var.git_credentials)) == 0 ? 0 : 1

  metadata {
    name      = "flux-system"
    namespace = kubernetes_namespace_v1.flux.metadata[0].name
  }

  data = var.git_credentials
}

resource "helm_release" "flux" {
  name       = "flux"
  namespace  = kubernetes_namespace_v1.flux.metadata[0].name
  repository = var.chart_repository
  chart      = "flux2"
  version    = var.chart_version
  wait       = true
}

resource "helm_release" "sync" {
  name       = "flux-sync"
  namespace  = kubernetes_namespace_v1.flux.metadata[0].name
  repository = var.chart_repository
  chart      = "flux2-sync"
  version    = var.sync_chart_version

  values = [yamlencode({
    gitRepository = {
      spec = {
        url       = var.git_url
        ref       = { branch = var.git_branch }
        interval  = var.interval
        secretRef = nonsensitive(length(var.git_credentials)) == 0 ? null : { name = "flux-system" }
      }
    }
    kustomization = {
      spec = {
        path       = var.git_path
        interval   = var.interval
        prune      = true
        decryption = nonsensitive(var.age_key == null) ? null : { provider = "sops", secretRef = { name = "sops-age" } }
      }
    }
  })]

  depends_on = [helm_release.flux, kubernetes_secret_v1.age, kubernetes_secret_v1.git]
}
