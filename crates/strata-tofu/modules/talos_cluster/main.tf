locals {
  control_planes = { for name, node in var.nodes : name => node if node.role == "controlplane" }
  addresses      = { for name, node in var.nodes : name => node.address }
  first          = local.control_planes[sort(keys(local.control_planes))[0]].address
}

resource "talos_machine_secrets" "this" {
  talos_version = var.talos_version
}

data "talos_machine_configuration" "this" {
  for_each = var.nodes

  cluster_name       = var.cluster_name
  cluster_endpoint   = var.cluster_endpoint
  machine_type       = each.value.role
  machine_secrets    = talos_machine_secrets.this.machine_secrets
  talos_version      = var.talos_version
  kubernetes_version = var.kubernetes_version
  docs               = false
  examples           = false

  config_patches = concat(
    [yamlencode({
      machine = {
        install = { for key, value in { disk = each.value.install_disk, image = each.value.install_image } : key => value if value != null }
        network = { hostname = each.key }
      }
    })],
    var.config_patches,
    each.value.role == "controlplane" ? var.control_plane_patches : [],
    coalesce(each.value.patches, []),
  )
}

data "talos_client_configuration" "this" {
  cluster_name         = var.cluster_name
  client_configuration = talos_machine_secrets.this.client_configuration
  endpoints            = [for node in values(local.control_planes) : node.address]
  nodes                = values(local.addresses)
}

resource "talos_machine_configuration_apply" "this" {
  for_each = var.nodes

  client_configuration        = talos_machine_secrets.this.client_configuration
  machine_configuration_input = data.talos_machine_configuration.this[each.key].machine_configuration
  node                        = each.value.address
}

# The provider asks etcd first: a cluster that runs is not bootstrapped again.
resource "talos_machine_bootstrap" "this" {
  client_configuration = talos_machine_secrets.this.client_configuration
  node                 = local.first

  depends_on = [talos_machine_configuration_apply.this]
}

resource "talos_cluster_kubeconfig" "this" {
  client_configuration = talos_machine_secrets.this.client_configuration
  node                 = local.first

  depends_on = [talos_machine_bootstrap.this]
}
