//! What else the guest agent is asked to do. A system in the simulator runs nothing and has no files.

use serde_json::json;

use super::agent::answer;
use crate::api::param::usual;
use crate::api::permission::{on, on_any};
use crate::api::{Param, Perm, Route, array, flag, get, int, no, post, text};
use crate::endpoints::index::listing;

const COMMANDS: &[&str] = &[
    "fsfreeze-freeze",
    "fsfreeze-status",
    "fsfreeze-thaw",
    "fstrim",
    "get-fsinfo",
    "get-host-name",
    "get-memory-block-info",
    "get-memory-blocks",
    "get-osinfo",
    "get-time",
    "get-timezone",
    "get-users",
    "get-vcpus",
    "info",
    "network-get-interfaces",
    "ping",
    "shutdown",
    "suspend-disk",
    "suspend-hybrid",
    "suspend-ram",
];

pub fn routes() -> Vec<Route> {
    let with = |extra: Vec<Param>| [vec![usual::node(), usual::vmid()], extra].concat();
    let all = || on("/vms/{vmid}", &["VM.GuestAgent.Unrestricted"]);
    let audit = || on_any("/vms/{vmid}", &["VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted"]);
    let files = || on_any("/vms/{vmid}", &["VM.GuestAgent.FileSystemMgmt", "VM.GuestAgent.Unrestricted"]);
    let power = || on_any("/vms/{vmid}", &["VM.PowerMgmt", "VM.GuestAgent.Unrestricted"]);
    let state = on_any(
        "/vms/{vmid}",
        &["VM.GuestAgent.Audit", "VM.GuestAgent.FileSystemMgmt", "VM.GuestAgent.Unrestricted"],
    );
    let password = vec![flag("crypted").opt(), text("password").min_len(5).max_len(1024), text("username")];
    let read = vec![
        int("count").min(1.0).max(16_777_216.0).opt(),
        flag("decode").opt(),
        text("file"),
        int("offset").min(0.0).opt(),
    ];
    let write = vec![text("content").max_len(61_440), flag("encode").opt(), text("file")];
    vec![
        get("/nodes/{node}/qemu/{vmid}/agent", Perm::Anyone, with(vec![]), |_| {
            let more = ["exec", "exec-status", "file-read", "file-write", "set-user-password"];
            let mut names: Vec<&str> = COMMANDS.iter().copied().chain(more).collect();
            names.sort_unstable();
            listing("name", &names)
        }),
        post(
            "/nodes/{node}/qemu/{vmid}/agent",
            on_any("/vms/{vmid}", &["VM.GuestAgent.Unrestricted", "VM.GuestAgent.Unrestricted"]),
            with(vec![text("command").one_of(COMMANDS)]),
            |call| answer(call, |_, _| json!({})),
        ),
        post(
            "/nodes/{node}/qemu/{vmid}/agent/exec",
            all(),
            with(vec![array("command", text("command")), text("input-data").max_len(65_536).opt()]),
            |call| {
                answer(call, |_, _| json!(null))?;
                Ok(json!({ "pid": 1000 }).into())
            },
        ),
        get("/nodes/{node}/qemu/{vmid}/agent/exec-status", all(), with(vec![int("pid")]), |call| {
            answer(call, |_, _| json!(null))?;
            Ok(json!({ "exited": 1, "exitcode": 0 }).into())
        }),
        get(
            "/nodes/{node}/qemu/{vmid}/agent/file-read",
            on_any("/vms/{vmid}", &["VM.GuestAgent.FileRead", "VM.GuestAgent.Unrestricted"]),
            with(read),
            |call| {
                answer(call, |_, _| json!(null))?;
                let file = call.args.must("file");
                Err(no(format!("Agent error: failed to open file '{file}': No such file or directory")))
            },
        ),
        post(
            "/nodes/{node}/qemu/{vmid}/agent/file-write",
            on_any("/vms/{vmid}", &["VM.GuestAgent.FileWrite", "VM.GuestAgent.Unrestricted"]),
            with(write),
            |call| {
                answer(call, |_, _| json!(null))?;
                Ok(().into())
            },
        ),
        post("/nodes/{node}/qemu/{vmid}/agent/set-user-password", all(), with(password), |call| {
            answer(call, |_, _| json!({}))
        }),
        get("/nodes/{node}/qemu/{vmid}/agent/info", audit(), with(vec![]), |call| {
            answer(call, |_, _| json!({ "version": "10.0.0", "supported_commands": [] }))
        }),
        get("/nodes/{node}/qemu/{vmid}/agent/get-users", audit(), with(vec![]), |call| {
            answer(call, |_, _| json!([]))
        }),
        get("/nodes/{node}/qemu/{vmid}/agent/get-fsinfo", audit(), with(vec![]), |call| {
            answer(call, |_, _| json!([]))
        }),
        get("/nodes/{node}/qemu/{vmid}/agent/get-vcpus", audit(), with(vec![]), |call| {
            answer(call, |_, _| json!([]))
        }),
        post("/nodes/{node}/qemu/{vmid}/agent/fstrim", files(), with(vec![]), |call| {
            answer(call, |_, _| json!({ "paths": [] }))
        }),
        post("/nodes/{node}/qemu/{vmid}/agent/fsfreeze-freeze", files(), with(vec![]), |call| {
            answer(call, |_, _| json!(0))
        }),
        post("/nodes/{node}/qemu/{vmid}/agent/fsfreeze-thaw", files(), with(vec![]), |call| {
            answer(call, |_, _| json!(0))
        }),
        post("/nodes/{node}/qemu/{vmid}/agent/fsfreeze-status", state, with(vec![]), |call| {
            answer(call, |_, _| json!("thawed"))
        }),
        post("/nodes/{node}/qemu/{vmid}/agent/shutdown", power(), with(vec![]), |call| {
            answer(call, |_, _| json!({}))
        }),
    ]
}
