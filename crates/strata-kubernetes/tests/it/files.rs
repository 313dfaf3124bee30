//! Fetching a file: redirects, mirrors, and that a wrong checksum is the end.

use sha2::{Digest, Sha256};
use strata_kubernetes::{Download, DownloadError};
use strata_net::{DialMap, TlsTrust};

use crate::server::{Server, Told, start};

async fn server() -> Server {
    start(false, |asked| {
        let told = |status, header, body: &str| Told { status, header, body: body.as_bytes().to_vec() };
        match asked.path.as_str() {
            "/releases/install.yaml" => told(302, Some(("location", "/assets/1?pass=x".to_owned())), ""),
            "/assets/1" if asked.query == "pass=x" => told(200, None, "content"),
            "/plain" => told(302, Some(("location", "http://localhost/assets/1".to_owned())), ""),
            "/loop" => told(302, Some(("location", "/loop".to_owned())), ""),
            _ => told(404, None, "no"),
        }
    })
    .await
}

fn download<'d>(
    server: &Server,
    path: &str,
    mirror: &'d (dyn Fn(&str) -> String + Send + Sync),
) -> Download<'d> {
    let mut dial = DialMap::new();
    dial.insert("localhost:443", format!("127.0.0.1:{}", server.port));
    Download {
        url: format!("https://localhost{path}"),
        sha256: format!("sha256:{}", hex::encode(Sha256::digest(b"content"))),
        tls: TlsTrust::Ca(server.ca.clone().into_bytes()),
        dial,
        mirror,
    }
}

#[tokio::test]
async fn follows_redirects_and_mirrors() {
    let server = server().await;
    let same = |url: &str| url.to_owned();
    assert_eq!(download(&server, "/releases/install.yaml", &same).fetch().await.unwrap(), b"content");
    let mirror = |url: &str| url.replace("https://github.example", "https://localhost");
    let far = Download {
        url: "https://github.example/releases/install.yaml".to_owned(),
        ..download(&server, "", &mirror)
    };
    assert_eq!(far.fetch().await.unwrap(), b"content");
}

#[tokio::test]
async fn a_wrong_checksum_or_answer_is_the_end() {
    let server = server().await;
    let same = |url: &str| url.to_owned();
    let wrong = Download { sha256: "0".repeat(64), ..download(&server, "/releases/install.yaml", &same) };
    let error = wrong.fetch().await.unwrap_err();
    assert!(matches!(error, DownloadError::Checksum { .. }), "{error}");
    for (path, reason) in [
        ("/nowhere", "HTTP 404 Not Found from `https://localhost`"),
        ("/plain", "`https://localhost` redirects to `http://localhost`, which is not encrypted"),
        ("/loop", "more than 5 redirects"),
    ] {
        let error = download(&server, path, &same).fetch().await.unwrap_err().to_string();
        assert_eq!(error, format!("`https://localhost{path}` cannot be fetched: {reason}"));
    }
    let none = Download { sha256: "latest".to_owned(), ..download(&server, "/assets/1", &same) };
    assert_eq!(
        none.fetch().await.unwrap_err().to_string(),
        "`latest` is not a SHA-256 checksum: it has 64 hex digits"
    );
}
