resource "aws_instance" "this" {
  ami                         = var.ami_id
  instance_type               = var.instance_type
  subnet_id                   = var.subnet_id
  vpc_security_group_ids      = length(var.security_group_ids) == 0 ? null : var.security_group_ids
  key_name                    = var.key_name
  associate_public_ip_address = var.public_ip
  private_ip                  = var.private_ip
  user_data                   = var.user_data
  user_data_replace_on_change = false
  disable_api_termination     = var.protection

  metadata_options {
    http_tokens = "required"
  }

  root_block_device {
    volume_size = var.disk_size
    volume_type = var.disk_type
    encrypted   = true
  }

  tags        = merge(var.tags, { Name = var.name })
  volume_tags = merge(var.tags, { Name = var.name })

  # Another image or user-data never replaces a machine that runs.
  lifecycle {
    ignore_changes = [ami, user_data]
  }
}
