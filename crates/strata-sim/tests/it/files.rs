//! Files that are uploaded to a storage or downloaded by it.

use serde_json::json;
use strata_sim::synthetic_checksum;

use crate::client::{Answer, Site};

const DOWNLOAD: &str = "/nodes/pve/storage/local/download-url";
const URL: &str = "https://images.example.test/debian-12.img";

async fn upload(site: &Site, fields: &[(&str, &str)], filename: &str, content: &str) -> Answer {
    let mut body = String::new();
    for (name, value) in fields {
        body += &format!("--cut\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    }
    body += &format!(
        "--cut\r\nContent-Disposition: form-data; name=\"filename\"; filename=\"{filename}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n{content}\r\n--cut--\r\n"
    );
    let url = format!("{}/api2/json/nodes/pve/storage/local/upload", site.sim.endpoint());
    let request = site
        .http
        .post(url)
        .header("Authorization", format!("PVEAPIToken={}", site.token))
        .header("Content-Type", "multipart/form-data; boundary=cut")
        .body(body);
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    Answer { status, reason: String::new(), body: response.json().await.unwrap_or_default() }
}

#[tokio::test]
async fn an_uploaded_file_is_there_and_replaces_its_namesake() {
    let site = Site::single().await;
    for (content, size) in [("ab".repeat(512), 1024), ("ab".repeat(256), 512)] {
        let answer = upload(&site, &[("content", "iso")], "my.iso", &content).await;
        assert_eq!(site.wait(answer.data().as_str().unwrap()).await, "OK");
        let file = site.get("/nodes/pve/storage/local/content/local:iso/my.iso").await;
        assert_eq!(file["size"], size);
    }
}

#[tokio::test]
async fn an_upload_with_a_wrong_checksum_or_extension_leaves_nothing() {
    let site = Site::single().await;
    let before = site.export().await;
    let fields = [("content", "iso"), ("checksum-algorithm", "md5"), ("checksum", "00")];
    let answer = upload(&site, &fields, "my.iso", "hello").await;
    assert_eq!(
        site.wait(answer.data().as_str().unwrap()).await,
        "checksum mismatch: got '5d41402abc4b2a76b9719d911017c592' != expect '00'"
    );
    let answer = upload(&site, &[("content", "iso")], "my.txt", "hello").await;
    assert_eq!(answer.error("filename"), "wrong file extension");
    assert_eq!(site.export().await, before);
}

#[tokio::test]
async fn a_download_has_the_checksum_that_derives_from_its_url() {
    let site = Site::single().await;
    let checksum = synthetic_checksum(URL, "sha512").unwrap();
    let params = [
        ("content", "iso"),
        ("filename", "debian-12.iso"),
        ("url", URL),
        ("checksum-algorithm", "sha512"),
        ("checksum", &checksum),
    ];
    assert_eq!(site.task("POST", DOWNLOAD, &params).await, "OK");
    let file = site.get("/nodes/pve/storage/local/content/local:iso/debian-12.iso").await;
    let size = file["size"].as_u64().unwrap();
    assert!((64 << 10..256 << 10).contains(&size), "{size}");
    let other = synthetic_checksum("https://images.example.test/other.img", "sha512").unwrap();
    assert_ne!(other, checksum);
    let wrong = [params[0], ("filename", "other.iso"), params[2], params[3], ("checksum", &other)];
    let exit = site.task("POST", DOWNLOAD, &wrong).await;
    assert!(exit.contains("checksum mismatch"), "{exit}");
}

#[tokio::test]
async fn a_file_is_not_downloaded_over_another_one() {
    let site = Site::single().await;
    let params = [("content", "iso"), ("filename", "test.iso"), ("url", URL)];
    let exit = site.task("POST", DOWNLOAD, &params).await;
    assert!(exit.contains("refusing to override existing file"), "{exit}");
}

#[tokio::test]
async fn what_is_missing_is_missing_and_leaves_nothing() {
    let site = Site::single().await;
    let before = site.export().await;
    let url = "https://images.example.test/missing/debian.iso";
    assert_eq!(synthetic_checksum(url, "sha256"), None);
    let params = [("content", "iso"), ("filename", "debian.iso"), ("url", url)];
    let upid = site.post(DOWNLOAD, &params).await.text().to_owned();
    assert_eq!(site.wait(&upid).await, "download failed: exit code 8");
    let log = site.get(&format!("/nodes/pve/tasks/{upid}/log")).await.to_string();
    assert!(log.contains("404 Not Found"), "{log}");
    assert_eq!(site.export().await, before);
}

#[tokio::test]
async fn a_downloaded_image_becomes_a_disk() {
    let site = Site::single().await;
    let params = [("content", "import"), ("filename", "debian-12.qcow2"), ("url", URL)];
    assert_eq!(site.task("POST", DOWNLOAD, &params).await, "OK");
    let create =
        [("vmid", "100"), ("scsi0", "local:0,import-from=local:import/debian-12.qcow2,format=qcow2")];
    assert_eq!(site.task("POST", "/nodes/pve/qemu", &create).await, "OK");
    let disk = site.get("/nodes/pve/qemu/100/config").await["scsi0"].as_str().unwrap().to_owned();
    assert!(disk.starts_with("local:100/vm-100-disk-0.qcow2"), "{disk}");
}

#[tokio::test]
async fn a_url_says_what_it_has() {
    let site = Site::single().await;
    let seen = site.call("GET", "/nodes/pve/query-url-metadata", &[("url", URL)]).await;
    assert_eq!(seen.data()["filename"], "debian-12.img");
    assert!(seen.data()["size"].is_u64());
    let missing = "https://images.example.test/missing/debian.iso";
    let gone = site.call("GET", "/nodes/pve/query-url-metadata", &[("url", missing)]).await;
    assert_eq!((gone.status, gone.body["data"].clone()), (500, json!(null)));
}
