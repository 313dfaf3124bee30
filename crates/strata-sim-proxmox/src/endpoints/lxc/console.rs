//! Consoles of containers. A ticket is given, but nobody listens on the port.

use serde_json::{Value, json};

use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Route, flag, int, post};
use crate::auth;
use crate::task::{Step, work};
use crate::world::GuestKind;
use strata_sim_core::cert;

pub fn routes() -> Vec<Route> {
    let perm = || on("/vms/{vmid}", &["VM.Console"]);
    let own = || vec![usual::node(), usual::vmid()];
    let vnc = vec![
        flag("websocket").opt(),
        int("width").min(16.0).max(4096.0).opt(),
        int("height").min(16.0).max(2160.0).opt(),
    ];
    vec![
        post("/nodes/{node}/lxc/{vmid}/vncproxy", perm(), [own(), vnc].concat(), |call| {
            let mut data = open(call)?;
            data["cert"] = json!(cert::CA_PEM);
            Ok(data.into())
        }),
        post("/nodes/{node}/lxc/{vmid}/termproxy", perm(), own(), |call| Ok(open(call)?.into())),
    ]
}

fn open(call: &mut Call<'_>) -> Result<Value, crate::api::Refusal> {
    let (node, vmid) = (call.node(), call.vmid());
    call.world.guest(&node, vmid, GuestKind::Lxc)?;
    let user = call.user().to_owned();
    let ticket = auth::make_ticket(call.world, &user).replacen("PVE:", "PVEVNC:", 1);
    let upid = call.spawn(&node, "vncproxy", vmid.to_string(), work(|_, _| Ok(Step::Done)));
    Ok(json!({ "user": user, "ticket": ticket, "port": 5900 + vmid % 100, "upid": upid }))
}
