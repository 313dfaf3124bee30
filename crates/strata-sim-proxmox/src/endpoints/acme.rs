//! Certificates from authorities: accounts there, and the plugins that prove ownership. Nothing is ordered.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::index::listing;
use super::section::{self, Options, Props};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{
    Call, Param, Perm, Refusal, Reply, Route, delete, flag, format, get, int, no, post, put, text, wrong,
};
use crate::task::{Step, work};
use crate::world::World;
use crate::world::cluster::Section;

const FILE: &str = "acme/plugins";
const ACCOUNTS: &str = "acme/accounts";
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

pub fn routes() -> Vec<Route> {
    let modify = || on("/", &["Sys.Modify"]);
    let kind = || text("type").one_of(&["dns", "standalone"]);
    let one = "/cluster/acme/plugins/{id}";
    vec![
        get("/cluster/acme", Perm::Anyone, vec![], |_| {
            listing("name", &["account", "tos", "meta", "directories", "plugins", "challenge-schema"])
        }),
        get("/cluster/acme/directories", Perm::Anyone, vec![], directories),
        get("/cluster/acme/account", Perm::Anyone, vec![], |call| {
            let names = call.world.cluster.file(ACCOUNTS).map(|(name, _)| json!({ "name": name }));
            Ok(Value::Array(names.collect()).into())
        }),
        post("/cluster/acme/account", Perm::Root, account(true), register),
        get("/cluster/acme/account/{name}", Perm::Root, vec![account_name()], show_account),
        put("/cluster/acme/account/{name}", Perm::Root, account(false), change_account),
        delete("/cluster/acme/account/{name}", Perm::Root, vec![account_name()], close_account),
        get("/cluster/acme/plugins", modify(), vec![kind().opt()], list),
        post("/cluster/acme/plugins", modify(), [fields(), vec![kind()]].concat(), create),
        get(one, modify(), vec![id()], show),
        put(one, modify(), [fields(), vec![usual::delete().max_len(4096), usual::digest()]].concat(), update),
        delete(one, modify(), vec![id()], |call| {
            let id = call.args.must("id").to_owned();
            call.world.cluster.file_mut(FILE).shift_remove(&id);
            Ok(().into())
        }),
    ]
}

fn account_name() -> Param {
    text("name").format(format::configid).opt()
}

fn account(creating: bool) -> Vec<Param> {
    let contact = text("contact").each(format::email);
    if !creating {
        return vec![account_name(), contact.opt()];
    }
    vec![
        account_name(),
        contact,
        text("directory").pattern("https?://.*").opt(),
        text("eab-hmac-key").needs("eab-kid").opt(),
        text("eab-kid").needs("eab-hmac-key").opt(),
        text("tos_url").opt(),
    ]
}

fn name_of(call: &Call<'_>) -> String {
    call.args.text("name").unwrap_or("default").to_owned()
}

/// The account that a call is about.
fn known(call: &Call<'_>) -> Result<String, Refusal> {
    let name = name_of(call);
    match call.world.cluster.section(ACCOUNTS, &name) {
        Some(_) => Ok(name),
        None => Err(wrong("name", format!("ACME account config file '{name}' does not exist."))),
    }
}

/// The task in which a host speaks to the authority: any authority agrees to all that is asked.
fn at_authority(
    call: &mut Call<'_>,
    task: &'static str,
    change: impl FnOnce(&mut World) + Send + 'static,
) -> Reply {
    let node = call.world.nodes.keys().next().cloned().unwrap_or_default();
    let work = work(move |world, _| -> Result<Step, String> {
        change(world);
        Ok(Step::Done)
    });
    Ok(call.spawn(&node, task, "", work).into())
}

fn register(call: &mut Call<'_>) -> Reply {
    let name = name_of(call);
    if call.world.cluster.section(ACCOUNTS, &name).is_some() {
        return Err(wrong("name", format!("ACME account config file '{name}' already exists.")));
    }
    let mut props = section::given(call, &["name", "eab-kid", "eab-hmac-key"]);
    props.entry("directory".to_owned()).or_insert_with(|| LETS_ENCRYPT.to_owned());
    at_authority(call, "acmeregister", move |world| {
        world.cluster.file_mut(ACCOUNTS).insert(name, Section { kind: "account".into(), props });
    })
}

fn show_account(call: &mut Call<'_>) -> Reply {
    let name = known(call)?;
    let section = call.world.cluster.section(ACCOUNTS, &name);
    let prop = |key: &str| section.and_then(|section| section.props.get(key)).map_or("", String::as_str);
    let contact = prop("contact").split([',', ';', ' ']).filter(|text| !text.is_empty());
    let contact: Vec<String> = contact.map(|text| format!("mailto:{text}")).collect();
    let number = crate::world::made_up::sha1_hex(&name);
    let mut data = json!({
        "account": { "contact": contact, "status": "valid", "createdAt": "2030-01-01T00:00:00Z" },
        "directory": prop("directory"),
        "location": format!("{}/acct/{}", prop("directory").trim_end_matches("/directory"), &number[..8]),
    });
    if !prop("tos_url").is_empty() {
        data["tos"] = json!(prop("tos_url"));
    }
    Ok(data.into())
}

fn change_account(call: &mut Call<'_>) -> Reply {
    let name = known(call)?;
    let contact = call.args.owned("contact");
    at_authority(call, "acmeupdate", move |world| {
        let section = world.cluster.file_mut(ACCOUNTS).get_mut(&name);
        if let Some((section, contact)) = section.zip(contact) {
            section.props.insert("contact".to_owned(), contact);
        }
    })
}

fn close_account(call: &mut Call<'_>) -> Reply {
    let name = known(call)?;
    at_authority(call, "acmedeactivate", move |world| {
        world.cluster.file_mut(ACCOUNTS).shift_remove(&name);
    })
}

/// The DNS services that a plugin can ask.
#[rustfmt::skip]
const APIS: &[&str] = &[
    "1984hosting", "acmedns", "acmeproxy", "active24", "ad", "ali", "anx", "arvan", "autodns", "aws",
    "azure", "cf", "clouddns", "cloudns", "cn", "conoha", "constellix", "cx", "cyon", "da", "ddnss",
    "desec", "df", "dgon", "dnsimple", "do", "doapi", "domeneshop", "dp", "dpi", "dreamhost", "duckdns",
    "durabledns", "dyn", "dynu", "dynv6", "easydns", "edgedns", "euserv", "exoscale", "freedns",
    "gandi_livedns", "gcloud", "gd", "gdnsdk", "he", "hetzner", "hexonet", "hostingde", "huaweicloud",
    "infoblox", "infomaniak", "internetbs", "inwx", "ionos", "ispconfig", "jd", "joker", "kappernet", "kas",
    "kinghost", "knot", "leaseweb", "lexicon", "linode", "linode_v4", "loopia", "lua", "maradns", "me",
    "miab", "misaka", "myapi", "mydevil", "mydnsjp", "namecheap", "namecom", "namesilo", "nederhost",
    "neodigit", "netcup", "netlify", "nic", "njalla", "nm", "nsd", "nsone", "nsupdate", "nw", "one",
    "online", "openprovider", "openstack", "opnsense", "ovh", "pdns", "pleskxml", "pointhq", "rackcorp",
    "rackspace", "rcode0", "regru", "scaleway", "schlundtech", "selectel", "servercow", "simply", "tele3",
    "transip", "ultra", "unoeuro", "variomedia", "vscale", "vultr", "world4you", "yandex", "zilore", "zone",
    "zonomi",
];

fn id() -> Param {
    text("id").format(format::configid)
}

fn fields() -> Vec<Param> {
    vec![
        id(),
        text("api").one_of(APIS).opt(),
        text("data").opt(),
        flag("disable").opt(),
        text("nodes").each(format::node).opt(),
        int("validation-delay").min(0.0).max(172_800.0).opt(),
    ]
}

fn options(kind: &str) -> Options {
    match kind {
        "dns" => {
            Options { required: &[], optional: &["api", "data", "nodes", "disable", "validation-delay"] }
        }
        _ => Options { required: &[], optional: &["nodes", "disable"] },
    }
}

fn directories(_: &mut Call<'_>) -> Reply {
    Ok(json!([
        { "name": "Let's Encrypt V2", "url": "https://acme-v02.api.letsencrypt.org/directory" },
        { "name": "Let's Encrypt V2 Staging", "url": "https://acme-staging-v02.api.letsencrypt.org/directory" },
    ])
    .into())
}

fn view(call: &Call<'_>, id: &str, kind: &str, props: &Props) -> Value {
    let mut row = section::typed_all(&fields(), props);
    if let Some(data) = props.get("data") {
        // Credentials come encoded, and are shown as they are.
        let plain = STANDARD.decode(data).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        row.insert("data".into(), json!(plain.as_deref().unwrap_or(data).trim_end_matches('\n')));
    }
    row.insert("plugin".into(), json!(id));
    row.insert("type".into(), json!(kind));
    row.insert("digest".into(), json!(section::file_digest(call.world, FILE)));
    Value::Object(row)
}

fn list(call: &mut Call<'_>) -> Reply {
    let wanted = call.args.text("type");
    let empty = Props::new();
    // The plugin that needs no configuration is always there.
    let built_in = call.world.cluster.section(FILE, "standalone").is_none().then_some((
        "standalone",
        "standalone",
        &empty,
    ));
    let own = call.world.cluster.file(FILE).map(|(id, s)| (id, s.kind.as_str(), &s.props));
    let rows: Vec<Value> = own
        .chain(built_in)
        .filter(|(_, kind, _)| wanted.is_none_or(|wanted| wanted == *kind))
        .map(|(id, kind, props)| view(call, id, kind, props))
        .collect();
    Ok(Value::Array(rows).into())
}

fn show(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id");
    match call.world.cluster.section(FILE, id) {
        Some(section) => Ok(view(call, id, &section.kind, &section.props).into()),
        None if id == "standalone" => Ok(view(call, id, id, &Props::new()).into()),
        None => Err(no(format!("ACME plugin '{id}' not defined"))),
    }
}

fn create(call: &mut Call<'_>) -> Reply {
    let (id, kind) = (call.args.must("id").to_owned(), call.args.must("type").to_owned());
    if call.world.cluster.section(FILE, &id).is_some() || id == "standalone" {
        return Err(no(format!("ACME plugin ID '{id}' already exists")));
    }
    let props = section::given(call, &["id", "type"]);
    options(&kind).check(&props, true)?;
    call.world.cluster.file_mut(FILE).insert(id, Section { kind, props });
    Ok(().into())
}

fn update(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id").to_owned();
    call.check_digest(&section::file_digest(call.world, FILE))?;
    let Some(mut section) = call.world.cluster.section(FILE, &id).cloned() else {
        return Err(no(format!("ACME plugin ID '{id}' does not exist")));
    };
    let set = section::given(call, &["id", "delete", "digest"]);
    let options = options(&section.kind);
    options.remove(&mut section.props, &Props::new(), &call.args.list("delete"))?;
    options.check(&set, false)?;
    section.props.extend(set);
    call.world.cluster.file_mut(FILE).insert(id, section);
    Ok(().into())
}
