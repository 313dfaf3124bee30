//! A client and a server that share a pipe; what is run is only written down.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use strata_mcp::{Argument, Ended, Form, Runner, Tool, command_line, serve};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::sync::Notify;

const STACKS: Argument =
    Argument { name: "stacks", form: Form::Texts, option: None, required: false, help: "stacks by name" };
const BASE: Argument =
    Argument { name: "base", form: Form::Text, option: Some("--base"), required: true, help: "a commit" };
const DETAILS: Argument =
    Argument { name: "details", form: Form::Flag, option: Some("-v"), required: false, help: "more" };

static TOOLS: [Tool; 3] = [
    Tool { name: "plan", verb: &["plan"], arguments: &[STACKS, DETAILS], help: "what would change" },
    Tool { name: "changed", verb: &["review", "changed"], arguments: &[BASE], help: "what can change" },
    Tool { name: "wait", verb: &["wait"], arguments: &[], help: "waits" },
];

/// Writes down what it is to run. `wait` ends when it is told to; whether it was ended is written down, too.
#[derive(Default)]
struct Written {
    lines: Mutex<Vec<Vec<String>>>,
    go: Notify,
    ended: Mutex<bool>,
}

struct Guard<'w>(&'w Written);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        *self.0.ended.lock().unwrap() = true;
        self.0.go.notify_waiters();
    }
}

#[async_trait]
impl Runner for Written {
    async fn run(&self, line: Vec<String>) -> Ended {
        self.lines.lock().unwrap().push(line.clone());
        if line[0] == "wait" {
            let _guard = Guard(self);
            self.go.notified().await;
        }
        Ended { code: Some(0), text: format!("ran {}", line.join(" ")) }
    }
}

struct Client {
    written: Arc<Written>,
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    server: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Client {
    fn new() -> Self {
        let written = Arc::new(Written::default());
        let (mine, theirs) = tokio::io::duplex(4096);
        let (read, write) = tokio::io::split(theirs);
        let runner: Arc<dyn Runner> = Arc::<Written>::clone(&written);
        let server = tokio::spawn(serve(("strata", "1.2.3"), &TOOLS, runner, read, write));
        let (read, input) = tokio::io::split(mine);
        Self { written, input, output: BufReader::new(read).lines(), server }
    }

    async fn send(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn answer(&mut self) -> Value {
        serde_json::from_str(&self.output.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn ask(&mut self, message: Value) -> Value {
        self.send(&message.to_string()).await;
        self.answer().await
    }
}

fn call(id: u32, name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

#[tokio::test]
async fn a_client_learns_what_there_is_and_calls_it() {
    let mut client = Client::new();
    let hello = client
        .ask(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-03-26", "capabilities": {}}}))
        .await;
    assert_eq!(hello["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(hello["result"]["serverInfo"], json!({"name": "strata", "version": "1.2.3"}));
    client.send(r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#).await;
    let tools = client.ask(json!({"jsonrpc": "2.0", "id": "a", "method": "tools/list"})).await;
    assert_eq!(tools["id"], "a");
    let tool = &tools["result"]["tools"][1];
    assert_eq!(tool["name"], "changed");
    assert_eq!(tool["inputSchema"]["required"], json!(["base"]));
    assert_eq!(tool["inputSchema"]["properties"]["base"]["type"], "string");
    let ran = client.ask(call(1, "plan", json!({"stacks": ["web", "data"], "details": true}))).await;
    assert_eq!(ran["result"]["content"][0]["text"], "ran plan -v -- web data");
    assert_eq!(ran["result"]["isError"], false);
    let ran = client.ask(call(2, "changed", json!({"base": "main"}))).await;
    assert_eq!(ran["result"]["content"][0]["text"], "ran review changed --base=main");
}

#[tokio::test]
async fn a_version_that_is_not_known_is_answered_with_the_newest() {
    let mut client = Client::new();
    let hello = client
        .ask(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "1999-01-01"}}))
        .await;
    assert_eq!(hello["result"]["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn an_argument_is_never_an_option() {
    let tool = &TOOLS[0];
    let line = command_line(tool, &json!({"stacks": ["--yes", "-C/", "web"]})).unwrap();
    assert_eq!(line, ["plan", "--", "--yes", "-C/", "web"]);
    let line = command_line(&TOOLS[1], &json!({"base": "--write"})).unwrap();
    assert_eq!(line, ["review", "changed", "--base=--write"]);
}

#[tokio::test]
async fn what_is_wrong_is_answered_and_nothing_is_run() {
    let mut client = Client::new();
    for (message, code) in [
        ("{", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc": "2.0", "id": 1}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": {}, "method": "ping"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/apply"}"#, -32601),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}"#, -32602),
    ] {
        client.send(message).await;
        assert_eq!(client.answer().await["error"]["code"], code, "{message}");
    }
    for (name, arguments, says) in [
        ("apply", json!({}), "there is no tool `apply`"),
        ("plan", json!({"yes": true}), "`plan` takes no argument `yes`"),
        ("plan", json!({"stacks": "web"}), "`stacks` takes a list of texts"),
        ("plan", json!({"stacks": [1]}), "`stacks` takes a list of texts"),
        ("plan", json!({"details": "yes"}), "`details` takes true or false"),
        ("plan", json!([]), "arguments are an object"),
        ("changed", json!({}), "`changed` needs the argument `base`"),
        ("changed", json!({"base": null}), "`changed` needs the argument `base`"),
    ] {
        let answer = client.ask(call(7, name, arguments)).await;
        assert_eq!(answer["error"]["message"], says);
    }
    assert!(client.written.lines.lock().unwrap().is_empty());
    assert_eq!(client.ask(json!({"jsonrpc": "2.0", "id": 9, "method": "ping"})).await["result"], json!({}));
}

#[tokio::test]
async fn a_long_call_holds_up_nothing_and_can_be_cancelled() {
    let mut client = Client::new();
    client.send(&call(1, "wait", json!({})).to_string()).await;
    assert_eq!(client.ask(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await["id"], 2);
    let twice = client.ask(call(1, "wait", json!({}))).await;
    assert_eq!(twice["error"]["message"], "a call with this id is running");
    let ended = client.written.go.notified();
    client
        .input
        .write_all(b"{\"jsonrpc\": \"2.0\", \"method\": \"notifications/cancelled\", \"params\": {\"requestId\": 1}}\n")
        .await
        .unwrap();
    ended.await;
    assert!(*client.written.ended.lock().unwrap());
    // Nothing is answered to what was cancelled.
    assert_eq!(client.ask(json!({"jsonrpc": "2.0", "id": 3, "method": "ping"})).await["id"], 3);
}

#[tokio::test]
async fn the_end_of_the_input_ends_what_runs() {
    let mut client = Client::new();
    client.send(&call(1, "wait", json!({})).to_string()).await;
    assert_eq!(client.ask(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await["id"], 2);
    client.input.shutdown().await.unwrap();
    client.server.await.unwrap().unwrap();
    while !*client.written.ended.lock().unwrap() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_line_without_an_end_is_refused() {
    let mut client = Client::new();
    let block = vec![b'x'; 64 * 1024];
    while client.input.write_all(&block).await.is_ok() {}
    assert!(client.server.await.unwrap().is_err());
}
