//! The simulated datacenter: Proxmox first; Talos, Kubernetes, image factory and TrueNAS later.
