//! HTTP as the original speaks it.

use crate::client::{Site, TOKEN};

#[tokio::test]
async fn a_missing_guest_is_500_with_the_message_as_reason() {
    let site = Site::single().await;
    let answer = site.call("GET", "/nodes/pve/qemu/999/config", &[]).await;
    assert_eq!(answer.status, 500);
    assert_eq!(answer.reason, "Configuration file 'nodes/pve/qemu-server/999.conf' does not exist");
    assert_eq!(
        answer.body["message"],
        "Configuration file 'nodes/pve/qemu-server/999.conf' does not exist\n"
    );
}

#[tokio::test]
async fn a_refused_login_has_no_body() {
    let site = Site::single().await;
    for (token, reason) in [
        ("root@pam!test=wrong", "Authentication failed!"),
        ("ghost@pve!t=aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee", "Authentication failed!"),
    ] {
        let answer = site.call_as(token, "GET", "/version", &[]).await;
        assert_eq!((answer.status, answer.reason.as_str()), (401, reason));
        assert_eq!(answer.body, "");
    }
    let url = format!("{}/api2/json/version", site.sim.endpoint());
    assert_eq!(site.http.get(url).send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn a_ticket_needs_the_other_token_to_write() {
    let site = Site::single().await;
    let login = site
        .call_as("", "POST", "/access/ticket", &[("username", "root@pam"), ("password", "strata-sim")])
        .await;
    let ticket = login.data()["ticket"].as_str().unwrap().to_owned();
    let csrf = login.data()["CSRFPreventionToken"].as_str().unwrap().to_owned();
    let url = format!("{}/api2/json/nodes/pve/qemu", site.sim.endpoint());
    let post = |csrf: Option<String>| {
        let mut request = site
            .http
            .post(&url)
            .header("Cookie", format!("PVEAuthCookie={ticket}"))
            .form(&[("vmid", "100"), ("args", "-no-reboot")]);
        if let Some(csrf) = csrf {
            request = request.header("CSRFPreventionToken", csrf);
        }
        request.send()
    };
    assert_eq!(post(None).await.unwrap().status(), 401);
    assert_eq!(post(Some("6AFA0366:bad".into())).await.unwrap().status(), 401);
    // Root itself may set what a token of root may not.
    assert_eq!(post(Some(csrf)).await.unwrap().status(), 200);
    let refused = site.post("/nodes/pve/qemu", &[("vmid", "101"), ("args", "-no-reboot")]).await;
    assert_eq!(refused.reason, "only root can set 'args' config");
}

#[tokio::test]
async fn unknown_paths_and_methods_are_501() {
    let site = Site::single().await;
    let answer = site.call("GET", "/nosuch", &[]).await;
    assert_eq!((answer.status, answer.reason.as_str()), (501, "Method 'GET /nosuch' not implemented"));
    assert_eq!(answer.body["message"], "Method 'GET /nosuch' not implemented");
    let url = format!("{}/api2/json/version", site.sim.endpoint());
    let head = site.http.head(&url).send().await.unwrap();
    assert_eq!(head.status(), 501);
    let body = site
        .http
        .delete(&url)
        .header("Authorization", format!("PVEAPIToken={TOKEN}"))
        .form(&[("a", "b")])
        .send()
        .await
        .unwrap();
    assert_eq!(body.status(), 501);
    assert_eq!(body.text().await.unwrap(), "Unexpected content for method 'DELETE'");
}

#[tokio::test]
async fn bodies_are_forms_or_json_and_nothing_else() {
    let site = Site::single().await;
    let url = format!("{}/api2/json/nodes/pve/qemu", site.sim.endpoint());
    let send = |kind: &'static str, body: &'static str| {
        site.http
            .post(&url)
            .header("Authorization", format!("PVEAPIToken={TOKEN}"))
            .header("Content-Type", kind)
            .body(body)
            .send()
    };
    assert_eq!(send("text/plain", "vmid=100").await.unwrap().status(), 506);
    let bad = send("application/json", "{bad").await.unwrap();
    assert_eq!(bad.status(), 500);
    assert!(bad.text().await.unwrap().starts_with("'\"' expected, at character offset 1 (before \"bad\")"));
    let good = send("application/json", r#"{"vmid":100,"memory":64,"onboot":true}"#).await.unwrap();
    assert_eq!(good.status(), 200);
    let config = site.get("/nodes/pve/qemu/100/config").await;
    assert_eq!((&config["memory"], &config["onboot"]), (&"64".into(), &1.into()));
}

#[tokio::test]
async fn the_certificate_is_the_one_the_ready_line_names() {
    let site = Site::single().await;
    let line: serde_json::Value = serde_json::from_str(&site.sim.ready_line()).unwrap();
    assert_eq!(line["proxmox"]["endpoint"], site.sim.endpoint());
    assert_eq!(line["proxmox"]["token"], TOKEN);
    assert_eq!(line["proxmox"]["fingerprint"], strata_sim::fingerprint());
    assert_eq!(strata_sim::fingerprint().split(':').count(), 32);
}
