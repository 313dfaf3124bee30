//! SOPS with age, and Ansible Vault.
