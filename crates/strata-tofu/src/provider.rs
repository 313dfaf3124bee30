//! The providers that rendered projects need, each pinned to a line of versions.

use crate::hcl::{Body, Expr};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Provider {
    pub(crate) name: &'static str,
    pub(crate) source: &'static str,
    pub(crate) version: &'static str,
}

pub(crate) const PROXMOX: Provider = Provider { name: "proxmox", source: "bpg/proxmox", version: "~> 0.112" };
pub(crate) const TALOS: Provider = Provider { name: "talos", source: "siderolabs/talos", version: "~> 0.8" };
pub(crate) const HELM: Provider = Provider { name: "helm", source: "hashicorp/helm", version: "~> 3.0" };
pub(crate) const KUBERNETES: Provider =
    Provider { name: "kubernetes", source: "hashicorp/kubernetes", version: "~> 2.35" };
pub(crate) const AWS: Provider = Provider { name: "aws", source: "hashicorp/aws", version: "~> 6.0" };
pub(crate) const OCI: Provider = Provider { name: "oci", source: "oracle/oci", version: "~> 7.0" };

/// The OpenTofu that rendered projects and `strata tofu` ask for.
pub const REQUIRED_VERSION: (u32, u32) = (1, 11);

/// `versions.tf`.
pub(crate) fn versions(providers: &[Provider]) -> Body {
    let mut body = Body::new();
    body.block("terraform", &[], |body| {
        let (major, minor) = REQUIRED_VERSION;
        body.attribute("required_version", Expr::text(format!(">= {major}.{minor}.0")));
        body.block("required_providers", &[], |body| {
            for provider in providers {
                let entries = vec![
                    ("source".to_owned(), Expr::text(provider.source)),
                    ("version".to_owned(), Expr::text(provider.version)),
                ];
                body.attribute(provider.name, Expr::Object(entries));
            }
        });
    });
    body
}
