# Everything the OpenTofu provider bpg/proxmox can do by the API alone, on the default world of `strata sim`.
terraform {
  required_version = ">= 1.10"
  required_providers {
    proxmox = {
      source  = "bpg/proxmox"
      version = "0.112.0"
    }
  }
}

# Endpoint and token come from PROXMOX_VE_ENDPOINT and PROXMOX_VE_API_TOKEN. The certificate of the simulator is for its
# node names, not for the loopback.
provider "proxmox" {
  insecure = true
}

variable "changed" {
  description = "Whether the project is as it was at first, or as it was after some time"
  type        = bool
  default     = false
}

variable "folder" {
  description = "Where the files to upload are"
  type        = string
}

locals {
  node    = "pve1"
  ssh_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8CSjm9tm6x3QpOq1PpTAqBfg0J3b7TzMSxSdu3zOnE someone@example.org"
}
