//! Where the real Proxmox VE API behaves otherwise than a call's answer suggests.
