//! `strata serve` as an administrator runs it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::world::BINARY;

fn serve(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(BINARY)
        .arg("serve")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct Running(Child, String);

impl Running {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(BINARY)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.split("http://").nth(1).and_then(|rest| rest.split(',').next()).unwrap().to_owned();
        Self(child, address)
    }

    fn ask(&self, method: &str, path: &str, token: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.1).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_from_its_first_user_to_its_backup() {
    let folder = tempfile::TempDir::new().unwrap();
    let folder = folder.path();
    let nobody = serve(folder, &["--listen", "127.0.0.1:0"]);
    assert_eq!(nobody.status.code(), Some(3));
    insta::assert_snapshot!(text(&nobody.stderr), @"
    error: nobody may use this server yet
      hint: `strata serve user add NAME --admin` makes the first user; `--open` does without
    ");
    let useless = serve(folder, &["user", "add", "ci"]);
    assert!(text(&useless.stderr).contains("`ci` could do nothing"), "{}", text(&useless.stderr));
    assert!(serve(folder, &["user", "add", "ci", "--allow", "prod=read,write,lock"]).status.success());
    assert_eq!(serve(folder, &["user", "add", "ci", "--admin"]).status.code(), Some(1));
    let token = text(&serve(folder, &["token", "add", "ci"]).stdout).trim().to_owned();
    assert!(token.starts_with("strata_") && token.len() == 50, "{token}");
    let list = text(&serve(folder, &["user", "list"]).stdout);
    assert_eq!(list, "ci: prod=read,write,lock, tokens default\n");
    let plain = serve(folder, &["--listen", "0.0.0.0:0"]);
    assert_eq!(plain.status.code(), Some(3));
    assert!(text(&plain.stderr).contains("without TLS"), "{}", text(&plain.stderr));

    let server = Running::start(folder, &[]);
    let state = r#"{"serial":1,"lineage":"l","resources":[]}"#;
    assert!(server.ask("POST", "/states/prod/a", &token, state).starts_with("HTTP/1.1 200"));
    assert!(server.ask("POST", "/states/lab/a", &token, state).starts_with("HTTP/1.1 403"));
    assert!(server.ask("GET", "/states/prod/a", "wrong", "").starts_with("HTTP/1.1 401"));
    let second = serve(folder, &["--listen", "127.0.0.1:0"]);
    assert!(text(&second.stderr).contains("in use by another server"), "{}", text(&second.stderr));
    let backup = serve(folder, &["backup", "backup"]);
    assert_eq!(text(&backup.stdout), "1 state in `./backup`\n");
    drop(server);

    let restored = serve(folder, &["--data", "other", "restore", "backup"]);
    assert!(restored.status.success(), "{}", text(&restored.stderr));
    let server = Running::start(folder, &["--data", "other"]);
    assert!(server.ask("GET", "/states/prod/a", &token, "").ends_with(state), "states and users came back");
}
