//! Tasks as the API shows them: lists, status, log, and stopping one.

use serde_json::{Map, Value, json};

use crate::api::param::usual;
use crate::api::{Answer, Call, Perm, Refusal, Reply, Route, delete, flag, get, int, text, wrong};
use crate::task::{Task, Upid};

pub fn routes() -> Vec<Route> {
    let upid = || vec![usual::node(), text("upid")];
    let list = vec![
        usual::node(),
        int("start").min(0.0).opt(),
        int("limit").min(0.0).opt(),
        text("userfilter").opt(),
        text("typefilter").opt(),
        usual::vmid().opt(),
        flag("errors").opt(),
        text("source").one_of(&["archive", "active", "all"]).opt(),
        int("since").opt(),
        int("until").opt(),
        text("statusfilter").each(status_kind).opt(),
    ];
    let log = vec![
        usual::node(),
        text("upid"),
        int("start").min(0.0).opt(),
        int("limit").min(0.0).opt(),
        flag("download").opt(),
    ];
    vec![
        get("/cluster/tasks", Perm::Anyone, vec![], cluster_tasks),
        get("/nodes/{node}/tasks", Perm::Anyone, list, node_tasks),
        get("/nodes/{node}/tasks/{upid}", Perm::Anyone, upid(), |_| {
            super::index::listing("name", &["log", "status"])
        }),
        get("/nodes/{node}/tasks/{upid}/status", Perm::Anyone, upid(), status),
        get("/nodes/{node}/tasks/{upid}/log", Perm::Anyone, log, read_log),
        delete("/nodes/{node}/tasks/{upid}", Perm::Anyone, upid(), stop),
    ]
}

fn status_kind(value: &str) -> Result<(), String> {
    match value.to_ascii_lowercase().as_str() {
        "ok" | "error" | "warning" | "unknown" => Ok(()),
        _ => Err(format!("invalid status '{value}'\n")),
    }
}

/// Whether the caller owns a task: as the user, or as the token that started it.
fn is_mine(call: &Call<'_>, task: &Task) -> bool {
    let me = call.user();
    task.upid.user == me || task.user() == me
}

fn find<'c>(call: &'c Call<'_>) -> Result<&'c Task, Refusal> {
    let text = call.args.must("upid");
    Upid::parse(text).ok_or_else(|| wrong("upid", "unable to parse worker upid"))?;
    let task = call.world.tasks.get(text).filter(|task| task.upid.node == call.args.must("node"));
    task.ok_or_else(|| wrong("upid", "no such task"))
}

/// The owner, or whoever may look at the node.
fn check_visible(call: &Call<'_>, task: &Task) -> Result<(), Refusal> {
    if is_mine(call, task) {
        return Ok(());
    }
    call.check(&format!("/nodes/{}", task.upid.node), &["Sys.Audit"])
}

/// The fields that every view of a task has.
fn identity(task: &Task) -> Map<String, Value> {
    let mut row = Map::new();
    row.insert("upid".into(), json!(task.text));
    row.insert("node".into(), json!(task.upid.node));
    row.insert("type".into(), json!(task.upid.kind));
    row.insert("id".into(), json!(task.upid.id));
    row.insert("user".into(), json!(task.user()));
    if let Some(token) = task.token() {
        row.insert("tokenid".into(), json!(token));
    }
    row.insert("starttime".into(), json!(task.upid.start));
    row
}

fn status(call: &mut Call<'_>) -> Reply {
    let task = find(call)?;
    check_visible(call, task)?;
    let mut row = identity(task);
    row.insert("pid".into(), json!(task.upid.pid));
    row.insert("pstart".into(), json!(task.upid.pstart));
    row.insert("status".into(), json!(if task.end.is_some() { "stopped" } else { "running" }));
    if let Some(exit) = &task.exit {
        row.insert("exitstatus".into(), json!(exit));
    }
    Ok(Value::Object(row).into())
}

fn read_log(call: &mut Call<'_>) -> Reply {
    let task = find(call)?;
    check_visible(call, task)?;
    let start = call.args.int("start").and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let limit = call.args.int("limit").and_then(|n| usize::try_from(n).ok()).unwrap_or(50);
    let limit = if limit == 0 { usize::MAX } else { limit };
    let mut rows: Vec<Value> = task
        .log
        .iter()
        .enumerate()
        .skip(start)
        .take(limit)
        .map(|(n, line)| json!({ "n": n + 1, "t": line }))
        .collect();
    let total = task.log.len();
    if total == 0 && start == 0 {
        rows.push(json!({ "n": 1, "t": "no content" }));
    }
    Ok(Answer { data: Value::Array(rows), total: Some(total), ..Answer::default() })
}

fn stop(call: &mut Call<'_>) -> Reply {
    let task = find(call)?;
    if !is_mine(call, task) {
        call.check(&format!("/nodes/{}", task.upid.node), &["Sys.Modify"])?;
    }
    task.stop.ask();
    Ok(().into())
}

fn row(task: &Task) -> Map<String, Value> {
    let mut row = identity(task);
    if let Some(end) = task.end {
        row.insert("endtime".into(), json!(end));
        row.insert("status".into(), json!(task.exit));
    }
    row
}

fn cluster_tasks(call: &mut Call<'_>) -> Reply {
    let all = call.may("/", "Sys.Audit");
    // The cluster keeps only the newest of each node.
    let rows: Vec<Value> = call
        .world
        .tasks
        .iter()
        .filter(|task| all || is_mine(call, task))
        .take(25 * call.world.nodes.len())
        .map(|task| {
            let mut row = row(task);
            if task.end.is_some() {
                row.insert("saved".into(), json!("1"));
            }
            Value::Object(row)
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn node_tasks(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let args = &call.args;
    let all = call.may(&format!("/nodes/{node}"), "Sys.Audit");
    let source = args.text("source").unwrap_or("archive");
    let statuses = args.list("statusfilter");
    let wanted = |task: &&Task| {
        let running = task.end.is_none();
        let by_source = match source {
            "archive" => !running,
            "active" => running,
            _ => true,
        };
        let kind = match task.exit.as_deref() {
            Some("OK") => "ok",
            Some(exit) if exit.starts_with("WARNINGS") => "warning",
            Some(_) => "error",
            None => "unknown",
        };
        task.upid.node == node
            && by_source
            && args.text("typefilter").is_none_or(|kind| task.upid.kind == kind)
            && args
                .text("userfilter")
                .is_none_or(|part| task.upid.user.to_lowercase().contains(&part.to_lowercase()))
            && args.text("vmid").is_none_or(|vmid| task.upid.id == vmid)
            && (!args.is_set("errors") || task.failed())
            && args.int("since").is_none_or(|since| task.upid.start >= since)
            && args.int("until").is_none_or(|until| task.upid.start <= until)
            && (statuses.is_empty() || statuses.iter().any(|s| s.eq_ignore_ascii_case(kind)))
            && (all || is_mine(call, task))
    };
    let start = args.int("start").and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let limit = args.int("limit").and_then(|n| usize::try_from(n).ok()).unwrap_or(50);
    let mut total = 0;
    let mut rows = Vec::new();
    // Running ones first; the others are archived when they end, and shown last in, first out.
    let mut tasks: Vec<&Task> = call.world.tasks.iter().filter(wanted).collect();
    tasks.sort_by_key(|task| std::cmp::Reverse(if task.end.is_none() { u64::MAX } else { task.ended }));
    for task in tasks {
        if total >= start && rows.len() < limit {
            let mut row = row(task);
            row.insert("pid".into(), json!(task.upid.pid));
            row.insert("pstart".into(), json!(task.upid.pstart));
            if task.end.is_none() {
                row.insert("status".into(), json!("RUNNING"));
            }
            rows.push(Value::Object(row));
        }
        total += 1;
    }
    Ok(Answer { data: Value::Array(rows), total: Some(total), ..Answer::default() })
}
