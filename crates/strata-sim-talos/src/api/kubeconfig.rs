//! The administrator's kubeconfig, in the archive in which it travels.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message as _;
use rcgen::{ExtendedKeyUsagePurpose, KeyPair, PKCS_ECDSA_P256_SHA256};
use time::OffsetDateTime;

use super::{Call, Outcome, Reply, machine, only_control_planes};
use crate::certificate::Subject;
use crate::config::MachineConfig;
use crate::grpc::Status;
use crate::wire::Data;

pub(super) fn kubeconfig(call: &Call<'_>) -> Outcome {
    let world = call.machines.world();
    only_control_planes(&world, call.key, "kubeconfig")?;
    let config = machine(&world, call.key)?.1.config.clone();
    drop(world);
    let text =
        config.as_ref().and_then(admin).ok_or_else(|| Status::unknown("the authority cannot be used"))?;
    let archive =
        packed("kubeconfig", text.as_bytes()).map_err(|error| Status::unknown(error.to_string()))?;
    Ok(Reply::one(Data { bytes: archive }.encode_to_vec()))
}

fn admin(config: &MachineConfig) -> Option<String> {
    let authority = config.kubernetes_authority()?;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).ok()?;
    let now = OffsetDateTime::now_utc();
    let subject = Subject {
        organization: Some("system:masters"),
        common_name: "admin",
        names: &[],
        usage: ExtendedKeyUsagePurpose::ClientAuth,
        not_before: now - time::Duration::seconds(10),
        not_after: now + time::Duration::days(365),
    };
    let certificate = subject.sign(&key, &authority.certificate, &authority.key?)?;
    let name = config.cluster_name();
    let endpoint = config.endpoint();
    let certificate_pem = pem("CERTIFICATE", &certificate);
    let (ca, certificate, key) = (
        STANDARD.encode(authority.certificate),
        STANDARD.encode(certificate_pem),
        STANDARD.encode(key.serialize_pem()),
    );
    Some(format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: {name}\n  cluster:\n    server: {endpoint}\n    \
         certificate-authority-data: {ca}\nusers:\n- name: admin@{name}\n  user:\n    client-certificate-data: {certificate}\n    \
         client-key-data: {key}\ncontexts:\n- context:\n    cluster: {name}\n    namespace: default\n    user: admin@{name}\n  \
         name: admin@{name}\ncurrent-context: admin@{name}\n"
    ))
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let lines: Vec<&str> =
        body.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// A compressed archive with one file.
fn packed(name: &str, content: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut header = [0_u8; 512];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000600\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{:011o}\0", content.len()));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\u{0}00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = GzEncoder::new(Vec::new(), Compression::default());
    archive.write_all(&header)?;
    archive.write_all(content)?;
    let padding = content.len().next_multiple_of(512) - content.len();
    archive.write_all(&vec![0; padding + 1024])?;
    archive.finish()
}
