//! Bundles and the certificates that are signed with them.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use strata_secret::{Redactor, SecretString};
use strata_talos::{
    Authority, BundleError, CLIENT_VALIDITY, ConfigInput, Contract, MachineConfig, PkiError, Role,
    SecretsBundle, ServiceAccountKey, TalosRole, generate,
};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::X509Certificate;

use crate::node::secrets;
use crate::world::{beside_workspace, now, read, seeded};

fn bundle(seed: u64) -> SecretsBundle {
    SecretsBundle::generate(now(), ServiceAccountKey::Ecdsa, &mut seeded(seed))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Looks at a certificate in PEM, and at who signed it.
fn look<T>(certificate: &[u8], signer: &Authority, check: impl FnOnce(&X509Certificate<'_>) -> T) -> T {
    let (_, pem) = parse_x509_pem(certificate).expect("PEM");
    let (_, authority) = parse_x509_pem(&signer.certificate).expect("PEM");
    let (certificate, authority) = (pem.parse_x509().expect("X.509"), authority.parse_x509().expect("X.509"));
    assert_eq!(certificate.issuer().as_raw(), authority.subject().as_raw());
    certificate.verify_signature(Some(authority.public_key())).expect("a signature");
    check(&certificate)
}

#[test]
fn authorities_are_as_talos_makes_them() {
    let bundle = bundle(1);
    for ((_, authority), organization) in
        bundle.authorities().into_iter().zip([Some("etcd"), Some("kubernetes"), None, Some("talos")])
    {
        look(&authority.certificate, authority, |certificate| {
            let found =
                certificate.subject().iter_organization().next().map(|name| name.as_str().expect("text"));
            assert_eq!(found, organization);
            assert!(certificate.is_ca());
            assert_eq!(certificate.validity().not_before.timestamp(), now().as_second());
            assert_eq!(certificate.validity().not_after.timestamp() - now().as_second(), 87_600 * 3600);
            let usage = certificate.key_usage().expect("usage").expect("usage");
            assert!(usage.critical && usage.value.digital_signature() && usage.value.key_cert_sign());
            assert!(!usage.value.crl_sign());
            let extended = certificate.extended_key_usage().expect("usage").expect("usage").value;
            assert!(extended.client_auth && extended.server_auth);
        });
        assert_eq!(authority.expires(), Ok(now().as_second() + 87_600 * 3600));
    }
    assert!(bundle.os.key.expose().starts_with(b"-----BEGIN ED25519 PRIVATE KEY-----\n"));
    assert!(bundle.etcd.key.expose().starts_with(b"-----BEGIN EC PRIVATE KEY-----\n"));
    let token = bundle.trustd_token.expose();
    assert!(token.len() == 23 && token.as_bytes()[6] == b'.');
    assert_eq!(STANDARD.decode(&bundle.cluster_id).expect("base64").len(), 32);
}

#[test]
fn clients_are_signed_for_their_roles_and_time() {
    let bundle = bundle(2);
    let client = bundle.talos_client(TalosRole::EtcdBackup, now(), Duration::from_secs(3600), &mut seeded(4));
    let client = client.unwrap_or_else(|error| panic!("{error}"));
    assert!(client.key.expose().starts_with(b"-----BEGIN ED25519 PRIVATE KEY-----\n"));
    look(&client.certificate, &bundle.os, |certificate| {
        let roles: Vec<_> =
            certificate.subject().iter_organization().map(|name| name.as_str().expect("text")).collect();
        assert_eq!(roles, ["os:etcd:backup"]);
        assert_eq!(certificate.validity().not_after.timestamp(), now().as_second() + 3600);
        let extended = certificate.extended_key_usage().expect("usage").expect("usage").value;
        assert!(extended.client_auth && !extended.server_auth && !certificate.is_ca());
    });
    let admin = bundle
        .kubernetes_admin(now(), CLIENT_VALIDITY, &mut seeded(4))
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(admin.key.expose().starts_with(b"-----BEGIN EC PRIVATE KEY-----\n"));
    look(&admin.certificate, &bundle.kubernetes, |certificate| {
        assert_eq!(certificate.subject().to_string(), "O=system:masters, CN=admin");
        assert_eq!(certificate.validity().not_before.timestamp(), now().as_second() - 10);
    });
}

#[test]
fn client_files_name_their_cluster() {
    let bundle = bundle(2);
    let talosconfig = bundle.talosconfig("homelab", &["192.0.2.41".to_owned()], now(), &mut seeded(4));
    let text = talosconfig.unwrap_or_else(|error| panic!("{error}")).to_yaml();
    assert!(text.expose().starts_with("context: homelab\ncontexts:\n    homelab:\n        endpoints:\n            - 192.0.2.41\n        ca: "));
    let kubeconfig =
        bundle.kubeconfig("homelab", "https://192.0.2.40:6443", now(), CLIENT_VALIDITY, &mut seeded(4));
    let kubeconfig = kubeconfig.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(kubeconfig.context(), "admin@homelab");
    let text = kubeconfig.to_yaml();
    for line in
        ["kind: Config\n", "current-context: admin@homelab\n", "        server: https://192.0.2.40:6443\n"]
    {
        assert!(text.expose().contains(line), "{line}");
    }
}

#[test]
fn the_file_survives_and_is_talosctls() {
    let bundle = bundle(3);
    let text = bundle.to_yaml();
    let read_back = SecretsBundle::from_yaml(&text).unwrap_or_else(|error| panic!("{error}"));
    assert!(read_back == bundle);
    assert!(read_back.to_yaml() == text);
    if let Some(directory) = beside_workspace("shared/talos") {
        let theirs = read(&directory.join("secrets.yaml"));
        let bundle = SecretsBundle::from_yaml(&SecretString::from(theirs.as_str()))
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(bundle.to_yaml().expose(), theirs);
    }
}

#[test]
fn other_spellings_are_read() {
    let bundle = bundle(3);
    let text = bundle.to_yaml();
    let other = text
        .expose()
        .replace("bootstraptoken", "bootstrap_token")
        .replace("secretboxencryptionsecret", "SecretboxEncryptionSecret")
        .replace("k8saggregator", "k8s_aggregator")
        .replace("crt:", "cert:")
        .replace("    ", "  ");
    assert!(
        SecretsBundle::from_yaml(&SecretString::from(other)).unwrap_or_else(|error| panic!("{error}"))
            == bundle
    );
}

#[test]
fn a_bundle_that_cannot_work_is_refused() {
    let text = bundle(3).to_yaml().expose().to_owned();
    let error = |text: &str| SecretsBundle::from_yaml(&SecretString::from(text)).err().expect("an error");
    assert_eq!(error("a: 1"), BundleError::Missing("cluster.id"));
    assert_eq!(error("[]"), BundleError::NotBundle);
    assert_eq!(error(&format!("{text}sops: {{}}\n")), BundleError::Encrypted);
    assert_eq!(error(&text.replace("trustdinfo", "other")), BundleError::Missing("trustdinfo.token"));
    assert_eq!(error(&text.replacen("crt: L", "crt: '!' #", 1)), BundleError::NotBase64("certs.etcd.crt"));
    let mut mixed = bundle(3);
    mixed.etcd.key = bundle(4).etcd.key;
    let expected = BundleError::Pki { part: "certs.etcd", error: PkiError::KeyMismatch };
    assert_eq!(mixed.check(), Err(expected.clone()));
    assert_eq!(error(mixed.to_yaml().expose()), expected);
    let mut both = bundle(3);
    both.aescbc_secret.clone_from(&both.secretbox_secret);
    assert_eq!(both.check(), Err(BundleError::TwoEncryptionSecrets));
}

#[test]
fn a_bundle_is_taken_out_of_a_control_plane() {
    for contract in Contract::ALL {
        let input = ConfigInput::new(contract, "homelab", "https://192.0.2.40:6443", "1.34.1");
        let config = |role| generate(&input, &secrets(), role).unwrap_or_else(|error| panic!("{error}"));
        let text = config(Role::ControlPlane).to_yaml();
        let read_back = MachineConfig::from_yaml(&text).unwrap_or_else(|error| panic!("{error}"));
        let taken =
            SecretsBundle::from_config(&read_back).unwrap_or_else(|error| panic!("{contract}: {error}"));
        assert!(taken == secrets(), "{contract}");
        assert!(SecretsBundle::from_config(&config(Role::Worker)).is_err());
    }
}

#[test]
fn a_redactor_learns_the_whole_bundle() {
    let redactor = Redactor::new();
    secrets().add_to(&redactor);
    let input = ConfigInput::new(Contract::V1_14, "homelab", "https://192.0.2.40:6443", "1.34.1");
    let config = generate(&input, &secrets(), Role::ControlPlane).unwrap_or_else(|error| panic!("{error}"));
    for document in config.documents() {
        let secret = matches!(
            document.kind(),
            "v1alpha1"
                | "DiscoveryIdentityConfig"
                | "KubeAPIServerCAConfig"
                | "KubeAggregatorCAConfig"
                | "KubeEtcdEncryptionConfig"
                | "KubeServiceAccountConfig"
        );
        assert_eq!(redactor.is_in(document.to_yaml().expose().as_bytes()), secret, "{}", document.kind());
    }
}

#[test]
fn a_configuration_for_people_has_no_secrets() {
    let bundle = secrets();
    let hidden = [
        bundle.cluster_secret.expose(),
        bundle.bootstrap_token.expose(),
        bundle.trustd_token.expose(),
        bundle.secretbox_secret.as_ref().expect("a secret").expose(),
        &STANDARD.encode(bundle.os.key.expose()),
        &STANDARD.encode(bundle.service_account_key.expose()),
        "PRIVATE KEY",
    ];
    for contract in Contract::ALL {
        let input = ConfigInput::new(contract, "homelab", "https://192.0.2.40:6443", "1.34.1");
        for role in Role::ALL {
            let config = generate(&input, &bundle, role).unwrap_or_else(|error| panic!("{error}"));
            let shown = config.to_redacted_yaml();
            hidden.iter().for_each(|secret| assert!(!shown.contains(secret), "{contract} {role:?}"));
            assert!(shown.contains("homelab"));
        }
    }
}
