//! A real kube-apiserver with its etcd on loopback, and nothing else: no controllers, no kubelet.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use strata_kubernetes::{KubeClient, KubeOptions, Patience};
use strata_secret::SecretString;
use tempfile::TempDir;

use super::program;
use crate::api::silent;

pub(crate) struct ControlPlane {
    pub(crate) folder: TempDir,
    pub(crate) options: KubeOptions,
    /// Ended in this order.
    _apiserver: Running,
    _etcd: Running,
}

/// A program that ends with its value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl ControlPlane {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path();
        let ports: Vec<TcpListener> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let [client, peer, secure] = [0, 1, 2].map(|index| ports[index].local_addr().unwrap().port());
        drop(ports);
        let (ca, certificate, key) = certificates(place);

        let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let etcd = run(
            "STRATA_ETCD",
            place,
            "etcd",
            &[
                ("data-dir", &place.join("data").display().to_string()),
                ("listen-client-urls", &client),
                ("advertise-client-urls", &client),
                ("listen-peer-urls", &peer),
                ("initial-advertise-peer-urls", &peer),
                ("initial-cluster", &format!("default={peer}")),
            ],
        );
        let file = |name: &str| place.join(name).display().to_string();
        let apiserver = run(
            "STRATA_KUBE_APISERVER",
            place,
            "apiserver",
            &[
                ("etcd-servers", &client),
                ("bind-address", "127.0.0.1"),
                ("secure-port", &secure.to_string()),
                ("client-ca-file", &file("ca.crt")),
                ("tls-cert-file", &file("server.crt")),
                ("tls-private-key-file", &file("server.key")),
                ("service-account-issuer", "https://kubernetes.default.svc"),
                ("service-account-key-file", &file("server.crt")),
                ("service-account-signing-key-file", &file("server.key")),
                ("service-cluster-ip-range", "10.96.0.0/16"),
                ("authorization-mode", "RBAC"),
                // Nobody makes the accounts that it asks for.
                ("disable-admission-plugins", "ServiceAccount"),
            ],
        );
        let options =
            KubeOptions::new(format!("https://127.0.0.1:{secure}"), ca, certificate, SecretString::new(key));
        let plane = Self { folder, options, _apiserver: apiserver, _etcd: etcd };
        if let Err(error) = plane.client().wait_ready(Patience::seconds(120), &silent).await {
            let log = fs::read_to_string(plane.folder.path().join("apiserver.log")).unwrap();
            panic!("{error}\n{}", log.lines().rev().take(20).collect::<Vec<_>>().join("\n"));
        }
        plane
    }

    pub(crate) fn client(&self) -> KubeClient {
        KubeClient::new(self.options.clone()).unwrap()
    }

    /// Runs `kubectl` as the same administrator.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let place = self.folder.path();
        let file = |name: &str| place.join(name).display().to_string();
        let output = Command::new(program("STRATA_KUBECTL"))
            .env_clear()
            .env("HOME", place)
            .arg(format!("--server={}", self.options.endpoints[0]))
            .arg(format!("--certificate-authority={}", file("ca.crt")))
            .arg(format!("--client-certificate={}", file("admin.crt")))
            .arg(format!("--client-key={}", file("admin.key")))
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

fn run(variable: &str, place: &Path, name: &str, flags: &[(&str, &str)]) -> Running {
    let log = fs::File::create(place.join(format!("{name}.log"))).unwrap();
    let flags = flags.iter().map(|(flag, value)| format!("--{flag}={value}"));
    let child = Command::new(program(variable))
        .args(flags)
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn();
    Running(child.unwrap())
}

/// Writes what the server needs, and gives CA, certificate and key of an administrator.
fn certificates(place: &Path) -> (String, String, String) {
    let write = |name: &str, text: &str| fs::write(place.join(name), text).unwrap();
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    ca.distinguished_name.push(DnType::CommonName, "kubernetes");
    let ca_pem = ca.self_signed(&ca_key).unwrap().pem();
    let issuer = Issuer::new(ca, &ca_key);
    let server_key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["127.0.0.1".to_owned()])
        .unwrap()
        .signed_by(&server_key, &issuer)
        .unwrap();
    let admin_key = KeyPair::generate().unwrap();
    let mut admin = CertificateParams::new(Vec::new()).unwrap();
    admin.distinguished_name.push(DnType::CommonName, "admin");
    admin.distinguished_name.push(DnType::OrganizationName, "system:masters");
    admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let admin = admin.signed_by(&admin_key, &issuer).unwrap().pem();
    write("ca.crt", &ca_pem);
    write("server.crt", &server.pem());
    write("server.key", &server_key.serialize_pem());
    write("admin.crt", &admin);
    write("admin.key", &admin_key.serialize_pem());
    (ca_pem, admin, admin_key.serialize_pem())
}
