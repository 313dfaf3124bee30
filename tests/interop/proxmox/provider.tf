# What every project beside this file begins with.
terraform {
  required_version = ">= 1.10"
  required_providers {
    proxmox = {
      source  = "bpg/proxmox"
      version = "0.112.0"
    }
  }
}

# Endpoint and credentials come from the environment. The certificate of the simulator is signed by no one.
provider "proxmox" {
  insecure = true
}

variable "stage" {
  description = "Projects change as time goes by: 1 is how it begins"
  type        = number
}

variable "folder" {
  description = "Where the files to upload are"
  type        = string
}

locals {
  changed = var.stage > 1
  node    = "pve1"
  ssh_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8CSjm9tm6x3QpOq1PpTAqBfg0J3b7TzMSxSdu3zOnE someone@example.org"
}
