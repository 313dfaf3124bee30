//! Proxmox VE client and provider.
