//! Certificates of a node: its own, and one that was uploaded. What is served on the wire stays the simulator's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use strata_sim_core::cert;
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate, X509Name};
use x509_parser::public_key::PublicKey;

use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{
    Call, Param, Perm, Refusal, Reply, Route, delete, flag, fuse, get, no, post, put, text, wrong,
};
use crate::endpoints::index::listing;
use crate::task::{Step, work};
use crate::world::node::Certificate;

pub fn routes() -> Vec<Route> {
    let with = |extra: Vec<Param>| [vec![usual::node()], extra].concat();
    let modify = || on("/nodes/{node}", &["Sys.Modify"]);
    let restart = || flag("restart").opt();
    let custom = "/nodes/{node}/certificates/custom";
    let ordered = "/nodes/{node}/certificates/acme/certificate";
    vec![
        get("/nodes/{node}/certificates", Perm::Anyone, with(vec![]), |_| {
            listing("name", &["acme", "custom", "info"])
        })
        .anywhere(),
        get("/nodes/{node}/certificates/info", Perm::Anyone, with(vec![]), list),
        get("/nodes/{node}/certificates/acme", Perm::Anyone, with(vec![]), |_| {
            listing("name", &["certificate"])
        })
        .anywhere(),
        post(
            custom,
            modify(),
            with(vec![
                text("certificates").format(chain),
                text("key").format(pem).opt(),
                flag("force").opt(),
                restart(),
            ]),
            upload,
        ),
        delete(custom, modify(), with(vec![restart()]), |call| {
            let name = call.node();
            call.world.nodes.get_mut(&name).into_iter().for_each(|node| node.certificate = None);
            Ok(().into())
        }),
        post(ordered, modify(), with(vec![flag("force").opt()]), |call| order(call, "acmenewcert")),
        put(ordered, modify(), with(vec![flag("force").opt()]), |call| order(call, "acmerenew")),
        delete(ordered, modify(), with(vec![]), |call| order(call, "acmerevoke")),
    ]
}

/// The blocks of a text in PEM, each with its label; none if there is anything else.
fn blocks(text: &str) -> Option<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    // Text before the first block is let through.
    let mut rest = &text[text.find("-----BEGIN ")?..];
    while !rest.trim().is_empty() {
        let label = rest.trim_start().strip_prefix("-----BEGIN ")?;
        let (label, body) = label.split_once("-----")?;
        let end = format!("-----END {label}-----");
        let (body, after) = body.split_once(&end)?;
        let packed: String = body.split_whitespace().collect();
        found.push((label.to_owned(), STANDARD.decode(packed).ok()?));
        rest = after;
    }
    Some(found)
}

fn invalid() -> String {
    "not a valid PEM-formatted string.\n".to_owned()
}

fn pem(value: &str) -> Result<(), String> {
    blocks(value).filter(|all| all.len() == 1).map(drop).ok_or_else(invalid)
}

fn chain(value: &str) -> Result<(), String> {
    let all = blocks(value).ok_or_else(invalid)?;
    if all.iter().all(|(label, _)| label == "CERTIFICATE") { Ok(()) } else { Err(invalid()) }
}

/// A name in the form with slashes.
fn one_line(name: &X509Name<'_>) -> String {
    let mut out = String::new();
    for part in name.iter_attributes() {
        let oid = part.attr_type().to_id_string();
        let short = match oid.as_str() {
            "2.5.4.3" => "CN",
            "2.5.4.6" => "C",
            "2.5.4.7" => "L",
            "2.5.4.8" => "ST",
            "2.5.4.10" => "O",
            "2.5.4.11" => "OU",
            "1.2.840.113549.1.9.1" => "emailAddress",
            other => other,
        };
        out.push_str(&format!("/{short}={}", part.as_str().unwrap_or_default()));
    }
    out
}

fn alternative_names(parsed: &X509Certificate<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for extension in parsed.extensions() {
        let ParsedExtension::SubjectAlternativeName(all) = extension.parsed_extension() else { continue };
        for name in &all.general_names {
            match name {
                GeneralName::DNSName(name) => names.push((*name).to_owned()),
                GeneralName::IPAddress(bytes) => match bytes.len() {
                    4 => names.push(bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(".")),
                    _ => {
                        let groups = bytes.chunks(2).map(hex::encode);
                        names.push(groups.collect::<Vec<_>>().join(":"));
                    }
                },
                _ => {}
            }
        }
    }
    names
}

/// What is told of a certificate.
fn info(filename: &str, text: &str) -> Option<Value> {
    let (_, der) = blocks(text)?.into_iter().next()?;
    let (_, parsed) = X509Certificate::from_der(&der).ok()?;
    let fingerprint: Vec<String> = Sha256::digest(&der).iter().map(|byte| format!("{byte:02X}")).collect();
    let (kind, bits) = match parsed.public_key().parsed() {
        Ok(PublicKey::RSA(key)) => ("rsaEncryption", key.key_size()),
        Ok(PublicKey::EC(point)) => ("id-ecPublicKey", point.key_size()),
        _ => ("ED25519", 256),
    };
    let encoded = STANDARD.encode(&der);
    let lines: Vec<&str> =
        encoded.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"));
    Some(json!({
        "filename": filename, "fingerprint": fingerprint.join(":"), "pem": pem,
        "subject": one_line(parsed.subject()), "issuer": one_line(parsed.issuer()),
        "notbefore": parsed.validity().not_before.timestamp(),
        "notafter": parsed.validity().not_after.timestamp(),
        "san": alternative_names(&parsed), "public-key-type": kind, "public-key-bits": bits,
    }))
}

fn list(call: &mut Call<'_>) -> Reply {
    let name = call.args.must("node");
    let mut rows: Vec<Value> = info("pve-ssl.pem", cert::NODE_PEM).into_iter().collect();
    if let Some(own) = &call.world.nodes[name].certificate {
        rows.extend(info("pveproxy-ssl.pem", &own.chain));
    }
    Ok(Value::Array(rows).into())
}

fn upload(call: &mut Call<'_>) -> Reply {
    let name = call.node();
    let old = call.world.nodes[&name].certificate.clone();
    let key = call.args.filled("key").map(str::to_owned);
    if key.is_none() && old.is_none() {
        return Err(wrong("key", "Attempted to upload custom certificate without (existing) key."));
    }
    let failed = |text: &str| -> Refusal { fuse(500, format!("{text}\n\n")) };
    if old.is_some() && !call.args.is_set("force") {
        return Err(failed("Custom certificate file exists but force flag is not set."));
    }
    let chain = call.args.must("certificates").to_owned();
    let Some(row) = info("pveproxy-ssl.pem", &chain) else {
        return Err(failed("Setting certificate files failed - could not load certificate (chain)"));
    };
    let key = key.or_else(|| old.map(|old| old.key)).unwrap_or_default();
    call.world.nodes.get_mut(&name).into_iter().for_each(|node| {
        node.certificate = Some(Certificate { chain: chain.clone(), key: key.clone() });
    });
    Ok(row.into())
}

/// The domains of a node's certificate, with the plugins that prove them.
fn domains(call: &Call<'_>) -> Vec<(String, String)> {
    let config = &call.world.nodes[call.args.must("node")].config;
    let part =
        |text: &str, key: &str| text.split(',').find_map(|part| part.strip_prefix(key)).map(str::to_owned);
    let listed = config.get("acme").and_then(|acme| part(acme, "domains=")).unwrap_or_default();
    let mut all: Vec<(String, String)> = listed
        .split(';')
        .filter(|domain| !domain.is_empty())
        .map(|domain| (domain.to_owned(), "standalone".to_owned()))
        .collect();
    for (_, value) in config.iter().filter(|(key, _)| key.starts_with("acmedomain")) {
        let domain =
            part(value, "domain=").unwrap_or_else(|| value.split(',').next().unwrap_or_default().to_owned());
        all.push((domain, part(value, "plugin=").unwrap_or_else(|| "standalone".to_owned())));
    }
    all
}

/// No authority is simulated, so every order fails where it would load its account.
fn order(call: &mut Call<'_>, task: &'static str) -> Reply {
    let node = call.node();
    let has_own = call.world.nodes[&node].certificate.is_some();
    if task != "acmerevoke" && has_own && !call.args.is_set("force") && task == "acmenewcert" {
        return Err(wrong("force", "Custom certificate exists but 'force' is not set."));
    }
    if task == "acmerenew" && !has_own {
        return Err(fuse(400, "No current (custom) certificate found, please order a new certificate!\n"));
    }
    let all = domains(call);
    let known =
        |plugin: &str| plugin == "standalone" || call.world.cluster.section("acme/plugins", plugin).is_some();
    if let Some((domain, plugin)) = all.iter().find(|(_, plugin)| !known(plugin)) {
        return Err(no(format!("plugin '{plugin}' for domain '{domain}' not found!")));
    }
    if all.is_empty() {
        return Err(fuse(400, "ACME domain list in node configuration is missing!"));
    }
    if task == "acmerevoke" && !has_own {
        let path = format!("/etc/pve/nodes/{node}/pveproxy-ssl.pem");
        return Err(no(format!("can't open '{path}' - No such file or directory")));
    }
    let config = &call.world.nodes[&node].config;
    let account =
        config.get("acme").and_then(|acme| acme.split(',').find_map(|p| p.strip_prefix("account=")));
    let account = account.unwrap_or("default").to_owned();
    let work = work(move |_, _| -> Result<Step, String> {
        Err(format!("ACME account config file '{account}' does not exist."))
    });
    Ok(call.spawn(&node, task, "", work).into())
}
