//! `strata mcp`, as an agent uses it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::world::{STACK, World};

struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u32,
}

impl Agent {
    fn new(world: &World) -> Self {
        let mut child =
            world.strata().command(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut agent = Self { child, input, output, asked: 0 };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        assert_eq!(agent.ask("initialize", &hello)["serverInfo"]["name"], "strata");
        agent
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params});
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], self.asked, "{answer}");
        answer["result"].clone()
    }

    /// The text of a call, and whether it is an error.
    fn call(&mut self, name: &str, arguments: &Value) -> (String, bool) {
        let result = self.ask("tools/call", &json!({"name": name, "arguments": arguments}));
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{name}: {result}"));
        (text.to_owned(), result["isError"].as_bool().unwrap())
    }
}

#[test]
fn an_agent_looks_at_everything_and_changes_nothing() {
    let world = World::instant(STACK);
    let mut agent = Agent::new(&world);
    let tools = agent.ask("tools/list", &json!({}));
    assert_eq!(tools["tools"].as_array().unwrap().len(), 10);
    world.sim.control().reset_requests();
    for (name, arguments, says) in [
        ("validate", json!({}), "valid:"),
        ("explain", json!({"code": "unknown-key"}), "A key that this part of the file does not have"),
        ("reference", json!({"kind": "stack"}), "| `haRules` |"),
        ("graph", json!({}), "flowchart"),
        ("plan", json!({"stacks": ["web"]}), "to create"),
        ("plan", json!({"events": true}), "\"event\":\"planned\""),
        ("drift", json!({}), "no drift"),
        ("inventory", json!({}), "{"),
        ("doctor", json!({}), "the repository is valid"),
    ] {
        let (text, failed) = agent.call(name, &arguments);
        assert!(!failed && text.contains(says), "{name}: {text}");
    }
    // A word that would be an option is a stack that does not exist.
    let (text, failed) = agent.call("plan", &json!({"stacks": ["--destroy"]}));
    assert!(failed && text.contains("--destroy") && text.contains("(exit code"), "{text}");
    let (text, failed) = agent.call("show", &json!({"file": "/dev/zero"}));
    assert!(failed && text.contains("a device, not a file"), "{text}");
    world.repo.write("stacks/web/stack.yaml", "vms: {a: {memmory: 5}}\n");
    let (text, failed) = agent.call("validate", &json!({}));
    assert!(failed && text.contains("error[unknown-key]") && text.contains("(exit code 1)"), "{text}");
    let requests = world.sim.control().requests();
    let rows = requests["counts"].as_array().unwrap_or_else(|| panic!("{requests}"));
    assert!(rows.len() > 3 && rows.iter().all(|row| row["method"] == "GET"), "{requests}");
    drop(agent.input.take());
    assert!(agent.child.wait().unwrap().success());
}
