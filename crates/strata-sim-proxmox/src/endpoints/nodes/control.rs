//! What a node is told to do, and what it lets one read of its logs.

use serde_json::json;

use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Answer, Call, Param, Perm, Reply, Route, format, get, int, no, post, text, wrong};
use crate::task::{Step, work};

pub fn routes() -> Vec<Route> {
    let with = |extra: Vec<Param>| [vec![usual::node()], extra].concat();
    let syslog = || on("/nodes/{node}", &["Sys.Syslog"]);
    let power = || on("/nodes/{node}", &["Sys.PowerMgmt"]);
    let at_least = |name: &'static str| int(name).min(0.0).opt();
    let time = |name: &'static str| text(name).pattern(r"\d{4}-\d{2}-\d{2}( \d{2}:\d{2}(:\d{2})?)?").opt();
    let shell = vec![
        text("cmd").one_of(&["ceph_install", "login", "upgrade"]).opt(),
        text("cmd-opts").needs("cmd").opt(),
    ];
    let reference = text("reference").pattern(concat!(
        r"(?:(?:[a-zA-Z\d]|[a-zA-Z\d][a-zA-Z\d-]*[a-zA-Z\d])",
        r"(?:\.(?:[a-zA-Z\d]|[a-zA-Z\d][a-zA-Z\d-]*[a-zA-Z\d]))*(?::\d+)?/)?",
        r"[a-z\d]+(?:(?:[._]|__|[-]*)[a-z\d]+)*(?:/[a-z\d]+(?:(?:[._]|__|[-]*)[a-z\d]+)*)*"
    ));
    vec![
        post(
            "/nodes/{node}/status",
            power(),
            with(vec![text("command").one_of(&["reboot", "shutdown"])]),
            command,
        ),
        get("/nodes/{node}/report", on("/nodes/{node}", &["Sys.Audit"]), with(vec![]), |call| {
            Ok(json!(format!("==== general system info ====\n\n# hostname\n{}\n", call.args.must("node")))
                .into())
        }),
        post("/nodes/{node}/wakeonlan", power(), with(vec![]), wake).anywhere(),
        post("/nodes/{node}/execute", Perm::Root, with(vec![text("commands")]), |_| Ok(json!([]).into())),
        post("/nodes/{node}/termproxy", on("/nodes/{node}", &["Sys.Console"]), with(shell), terminal),
        post(
            "/nodes/{node}/aplinfo",
            on("/storage/{storage}", &["Datastore.AllocateTemplate"]),
            with(vec![text("storage").format(format::storage_id), text("template").max_len(255)]),
            fetch_appliance,
        ),
        get(
            "/nodes/{node}/query-oci-repo-tags",
            on("/nodes/{node}", &["Sys.AccessNetwork"]),
            with(vec![reference]),
            |_| Ok(json!(["latest"]).into()),
        ),
        get(
            "/nodes/{node}/syslog",
            syslog(),
            with(vec![
                at_least("limit"),
                at_least("start"),
                text("service").max_len(128).opt(),
                time("since"),
                time("until"),
            ]),
            |_| {
                Ok(Answer {
                    data: json!([{ "n": 1, "t": "no content" }]),
                    total: Some(1),
                    ..Answer::default()
                })
            },
        ),
        get(
            "/nodes/{node}/journal",
            syslog(),
            with(vec![
                text("endcursor").opt(),
                at_least("lastentries"),
                at_least("since"),
                text("startcursor").opt(),
                at_least("until"),
            ]),
            |_| Ok(json!([]).into()),
        ),
    ]
}

/// Goes down, with its guests. After a reboot it is there again; after a shutdown somebody has to press its button. It answers
/// before it goes down, and tells of no task.
fn command(call: &mut Call<'_>) -> Reply {
    let (node, reboot) = (call.node(), call.args.must("command") == "reboot");
    call.world.power_later(&node, false, 2.0);
    if reboot {
        call.world.power_later(&node, true, 60.0);
    }
    Ok(().into())
}

fn wake(call: &mut Call<'_>) -> Reply {
    let name = call.node();
    if call.world.nodes.keys().next() == Some(&name) {
        return Err(no(format!("'{name}' is local node, cannot wake my self!")));
    }
    let Some(node) = call.world.nodes.get_mut(&name) else {
        return Err(no(format!("no such cluster node '{name}'")));
    };
    let option = node.config.get("wakeonlan").map_or("", String::as_str);
    let mac = option.split(',').next().unwrap_or_default().trim_start_matches("mac=").to_owned();
    if mac.is_empty() {
        return Err(no(format!("No wake on LAN MAC address defined for '{name}'!")));
    }
    node.down = false;
    Ok(json!(mac).into())
}

fn terminal(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let work = work(|_, _| Ok(Step::wait(10.0, |_, _| Ok(Step::Done))));
    let upid = call.spawn(&node, "vncshell", "", work);
    let secret = hex::encode(&call.world.derive(&["termproxy", &node])[..20]);
    Ok(json!({ "user": call.user(), "ticket": format!("PVEVNC:{secret}"), "port": 5900, "upid": upid })
        .into())
}

/// Templates come from the list of appliances.
fn fetch_appliance(call: &mut Call<'_>) -> Reply {
    let (node, id) = (call.node(), call.args.must("template").to_owned());
    if super::reports::APPLIANCE != id {
        return Err(wrong("template", "no such template"));
    }
    let name = call.args.must("storage").to_owned();
    let storage = call.world.storage_on(&name, &node)?;
    if !storage.holds("vztmpl") {
        return Err(no(format!("storage '{name}' does not support templates")));
    }
    let at = node.clone();
    let template = id.clone();
    let work = work(move |_, _| {
        Ok(Step::wait(3.0, move |world, _| {
            world.add_file(&name, &at, "vztmpl", &template, "tzst", 1_112_146);
            Ok(Step::Done)
        }))
    });
    Ok(call.spawn(&node, "download", id, work).into())
}
