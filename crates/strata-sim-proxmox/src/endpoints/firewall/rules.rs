//! Rules, of firewalls and of security groups.

use serde_json::{Map, Value, json};

use super::verify::RulePosition;
use super::{Scope, Site, digest_of, may_change, may_look, spec};
use crate::api::param::usual;
use crate::api::{Call, Param, Refusal, Reply, Route, delete, format, get, int, no, post, put, text, wrong};
use crate::endpoints::section::number;
use crate::world::Firewall;
use crate::world::firewall::Rule;

const LEVELS: &[&str] = &["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug", "nolog"];
/// What a rule is made of.
const KEYS: &[&str] = &[
    "type",
    "action",
    "macro",
    "iface",
    "source",
    "dest",
    "proto",
    "enable",
    "log",
    "sport",
    "dport",
    "comment",
    "icmp-type",
];

pub fn routes(site: Site) -> Vec<Route> {
    let (all, one) = (site.path("/rules"), site.path("/rules/{pos}"));
    routes_at(site, all, one, None)
}

/// Rules of a security group are reached through its own path.
pub fn routes_at(site: Site, all: &'static str, one: &'static str, more: Option<Param>) -> Vec<Route> {
    let with = |extra: Vec<Param>| site.with(more.clone().into_iter().chain(extra));
    let mut create_params = vec![int("pos").min(0.0).opt()];
    create_params.extend(fields(true));
    let mut update_params = vec![pos(), usual::delete(), int("moveto").min(0.0).opt()];
    update_params.extend(fields(false));
    vec![
        get(all, site.look(), with(vec![]), list),
        post(all, site.change(), with(create_params), create),
        get(one, site.look(), with(vec![pos()]), show),
        put(one, site.change(), with(update_params), update),
        delete(one, site.change(), with(vec![pos(), usual::digest()]), remove),
    ]
}

fn pos() -> Param {
    int("pos").min(0.0)
}

fn fields(creating: bool) -> Vec<Param> {
    let must = |param: Param| if creating { param } else { param.opt() };
    vec![
        must(text("type").one_of(&["in", "out", "forward", "group"])),
        must(text("action").min_len(2).max_len(20).pattern(spec::NAME)),
        text("macro").max_len(128).opt(),
        text("iface").format(format::iface).min_len(2).max_len(20).opt(),
        text("source").format(spec::addresses).max_len(512).opt(),
        text("dest").format(spec::addresses).max_len(512).opt(),
        text("proto").format(spec::protocol).opt(),
        int("enable").min(0.0).opt(),
        text("log").one_of(LEVELS).opt(),
        text("sport").format(spec::source_ports).opt(),
        text("dport").format(spec::dest_ports).opt(),
        text("comment").opt(),
        text("icmp-type").format(spec::icmp_type).opt(),
        usual::digest(),
    ]
}

/// The rules that a call is about.
fn load(call: &Call<'_>) -> Result<Vec<Rule>, Refusal> {
    let firewall = call.world.firewall_of(&Scope::of(call));
    match call.args.text("group") {
        None => Ok(firewall.rules),
        Some(name) => match firewall.groups.get(name) {
            Some(group) => Ok(group.rules.clone()),
            None => Err(no(format!("no such security group '{name}'"))),
        },
    }
}

fn save(call: &mut Call<'_>, rules: Vec<Rule>) {
    let scope = Scope::of(call);
    let mut firewall = call.world.firewall_of(&scope);
    match call.args.text("group") {
        None => firewall.rules = rules,
        Some(name) => {
            if let Some(group) = firewall.groups.get_mut(name) {
                group.rules = rules;
            }
        }
    }
    call.world.keep_firewall(&scope, firewall);
}

/// Every rule as it is shown, without its position.
fn views(call: &Call<'_>, rules: &[Rule]) -> Vec<Map<String, Value>> {
    let scope = Scope::of(call);
    let place = RulePosition { world: call.world, scope: &scope, in_group: call.args.has("group") };
    let mut rows: Vec<Map<String, Value>> = rules
        .iter()
        .map(|rule| {
            let mut rule = rule.clone();
            let verdict = place.verify(&mut rule);
            let mut row: Map<String, Value> = rule
                .iter()
                .map(|(k, v)| (k.clone(), if k == "enable" { number(v) } else { json!(v) }))
                .collect();
            if let Some(version) = verdict.version {
                row.insert("ipversion".into(), json!(version));
            }
            if !verdict.problems.is_empty() {
                let errors: Map<String, Value> =
                    verdict.problems.into_iter().map(|(k, text)| (k.to_owned(), json!(text))).collect();
                row.insert("errors".into(), Value::Object(errors));
            }
            row
        })
        .collect();
    let digest = digest(rules);
    for row in &mut rows {
        row.insert("digest".into(), json!(digest));
    }
    rows
}

fn digest(rules: &[Rule]) -> String {
    digest_of(&json!(rules))
}

fn list(call: &mut Call<'_>) -> Reply {
    may_look(call)?;
    let rules = load(call)?;
    let rows: Vec<Value> = views(call, &rules)
        .into_iter()
        .enumerate()
        .map(|(at, mut row)| {
            row.insert("pos".into(), json!(at));
            Value::Object(row)
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn at(call: &Call<'_>, rules: &[Rule]) -> Result<usize, Refusal> {
    let pos = call.args.must("pos");
    let at = pos.parse::<usize>().unwrap_or(usize::MAX);
    if at < rules.len() { Ok(at) } else { Err(no(format!("no rule at position {pos}"))) }
}

fn show(call: &mut Call<'_>) -> Reply {
    may_look(call)?;
    let rules = load(call)?;
    let at = at(call, &rules)?;
    let mut row = views(call, &rules).swap_remove(at);
    row.insert("pos".into(), json!(call.args.must("pos")));
    Ok(Value::Object(row).into())
}

/// Takes the given parts over; an empty one, or a dash, takes a part away.
fn fill(call: &Call<'_>, rule: &mut Rule) {
    for key in KEYS {
        match call.args.text(key) {
            None => {}
            Some("" | "-") => drop(rule.shift_remove(*key)),
            // A rule is a line of its file.
            Some(value) if *key == "comment" => {
                let first = value.lines().next().unwrap_or_default();
                drop(rule.insert((*key).to_owned(), first.to_owned()));
            }
            Some(value) => drop(rule.insert((*key).to_owned(), value.to_owned())),
        }
    }
}

fn check(call: &Call<'_>, rule: &mut Rule) -> Result<(), Refusal> {
    let scope = Scope::of(call);
    let place = RulePosition { world: call.world, scope: &scope, in_group: call.args.has("group") };
    match place.verify(rule).problems.into_iter().next() {
        Some((param, text)) => Err(wrong(param, text)),
        None => Ok(()),
    }
}

fn create(call: &mut Call<'_>) -> Reply {
    may_change(call)?;
    let mut rules = load(call)?;
    let mut rule = Rule::new();
    fill(call, &mut rule);
    check(call, &mut rule)?;
    rule.entry("enable".to_owned()).or_insert_with(|| "0".to_owned());
    rules.insert(0, rule);
    save(call, rules);
    Ok(().into())
}

fn update(call: &mut Call<'_>) -> Reply {
    may_change(call)?;
    let mut rules = load(call)?;
    call.check_digest(&digest(&rules))?;
    let at = at(call, &rules)?;
    let target = call.args.int("moveto").and_then(|to| usize::try_from(to).ok());
    if let Some(target) = target.filter(|target| *target != at) {
        let rule = rules.remove(at);
        // The target is meant as it was before the rule was removed.
        let target = if target > at { target - 1 } else { target };
        rules.insert(target.min(rules.len()), rule);
    } else {
        let mut rule = rules[at].clone();
        fill(call, &mut rule);
        for key in call.args.list("delete") {
            if matches!(key.as_str(), "type" | "action") {
                return Err(wrong("delete", format!("unable to delete required property '{key}'")));
            }
            if !KEYS.contains(&key.as_str()) && key != "pos" && key != "digest" {
                return Err(wrong("delete", format!("no such property ('{key}')")));
            }
            rule.shift_remove(&key);
        }
        check(call, &mut rule)?;
        rule.entry("enable".to_owned()).or_insert_with(|| "0".to_owned());
        rules[at] = rule;
    }
    save(call, rules);
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    may_change(call)?;
    let mut rules = load(call)?;
    // A file that is gone has no list of rules at all.
    let alone = call.world.firewall_of(&Scope::of(call)) == Firewall::default();
    if alone && !call.args.has("group") {
        let source = "at /usr/share/perl5/PVE/API2/Firewall/Rules.pm line 462.";
        return Err(no(format!("Can't use an undefined value as an ARRAY reference {source}")));
    }
    call.check_digest(&digest(&rules))?;
    let at = at(call, &rules)?;
    rules.remove(at);
    save(call, rules);
    Ok(().into())
}
