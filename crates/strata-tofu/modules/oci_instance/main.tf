resource "oci_core_instance" "this" {
  compartment_id      = var.compartment_id
  availability_domain = var.availability_domain
  display_name        = var.name
  shape               = var.shape
  freeform_tags       = var.tags

  dynamic "shape_config" {
    for_each = var.ocpus == null && var.memory_gb == null ? [] : [1]

    content {
      ocpus         = var.ocpus
      memory_in_gbs = var.memory_gb
    }
  }

  create_vnic_details {
    subnet_id        = var.subnet_id
    assign_public_ip = var.public_ip
    private_ip       = var.private_ip
    nsg_ids          = length(var.security_group_ids) == 0 ? null : var.security_group_ids
  }

  # As on the other clouds: what a program could ask for without a header is not answered.
  instance_options {
    are_legacy_imds_endpoints_disabled = true
  }

  source_details {
    source_type             = "image"
    source_id               = var.image_id
    boot_volume_size_in_gbs = var.disk_size
  }

  metadata = merge(
    length(var.ssh_keys) == 0 ? {} : { ssh_authorized_keys = join("\n", var.ssh_keys) },
    var.user_data == null ? {} : { user_data = base64encode(var.user_data) },
  )

  # Another image or user-data never replaces a machine that runs.
  lifecycle {
    ignore_changes = [source_details, metadata]
  }
}
