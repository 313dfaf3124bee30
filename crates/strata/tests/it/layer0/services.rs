//! What the cluster does by itself: options, statistics, notifications.

use serde_json::json;

use super::certificates::ACME;
use super::hosts::HOSTS;
use super::realms::REALMS;
use super::sdn::{SDN, SERVERS};
use super::{Datacenter, FILE, PASSWORD, PBS, assert_same, datacenter, without_settings};
use crate::least_privilege::{become_somebody_with, computed};

/// One of everything.
pub(crate) const SERVICES: &str = r#"
metadata: {name: dc, environment: test}
proxmox: {target: pve, nodes: [pve1, pve2]}
options:
  keyboard: de
  migration: 192.0.2.0/24
  scheduler: static
  nextId: {lower: 5000}
  tagStyle: {shape: full, colors: {prod: ff0000}}
  bandwidthLimits: {migration: 100000}
metricServers:
  stats: {type: influxdb, server: 192.0.2.40, port: 8086, protocol: https, bucket: pve, token: {env: ANN_PASSWORD}}
  graphs: {type: graphite, server: 192.0.2.41, port: 2003, enabled: false}
notifications:
  endpoints:
    ops: {type: smtp, server: mail.example.test, from: pve@example.test, to: [ops@example.test], username: pve, password: {env: PBS_PASSWORD}, comment: for ops}
    chat: {type: webhook, url: "https://chat.example/{{ secrets.id }}", headers: {Content-Type: application/json}, body: '{"text": "{{ title }}"}', secrets: {id: {env: PBS_PASSWORD}}}
    phone: {type: gotify, server: "https://push.example", token: {env: ANN_PASSWORD}}
    local: {type: sendmail, users: [root@pam]}
  matchers:
    errors: {targets: [ops, chat], severities: [error, warning], fields: ["exact:type=vzdump"], calendar: ["mon..fri 8:00-17:00"]}
"#;

#[test]
fn services_are_made_kept_and_taken_away() {
    let dc = Datacenter::new(SERVICES);
    let before = dc.export();
    dc.strata().run(&["validate"]).ok();
    let plan = dc.strata().run(&["plan"]).ok().stdout;
    insta::assert_snapshot!(plan, @r#"
    dc (hypervisors, test/dc)
      ~ dc/options/datacenter  options of the datacenter
          bandwidth_limits.migration  + 100000
          keyboard                    + de
          migration.network           + 192.0.2.0/24
          migration.type              + secure
          next_id.lower               + 5000
          scheduler.ha                + static
          tag_style.colors            + prod:ff0000
          tag_style.shape             + full
      + dc/metricserver/graphs  metric server graphs, graphite
          enabled  no
          port     2003
          server   192.0.2.41
      + dc/metricserver/stats  metric server stats, influxdb
          bucket           pve
          influx_protocol  https
          port             8086
          server           192.0.2.40
          token            (secret)
      + dc/notification/chat  notification endpoint chat, webhook
          body         {"text": "{{ title }}"}
          headers      Content-Type application/json
          http_method  post
          secrets      id (secret)
          url          https://chat.example/{{ secrets.id }}
      + dc/notification/local  notification endpoint local, sendmail
          users  root@pam
      + dc/notification/ops  notification endpoint ops, smtp
          comment   for ops
          from      pve@example.test
          password  (secret)
          server    mail.example.test
          to        ops@example.test
          username  pve
      + dc/notification/phone  notification endpoint phone, gotify
          server  https://push.example
          token   (secret)
      + dc/matcher/errors  notification matcher errors
          calendar      mon..fri 8:00-17:00
          match_fields  exact:type=vzdump
          severities    error,warning
          targets       ops, chat

    7 to create, 1 to change
    blast radius: hypervisors: 8 in 1 stack
    "#);
    let applied = dc.apply();
    assert!(!applied.contains(PASSWORD) && !applied.contains(PBS), "{applied}");
    dc.assert_settled();
    let drift = dc.strata().run(&["drift"]).ok().all();
    assert!(drift.contains("no drift") || drift.contains("nothing"), "{drift}");
    for (path, bytes) in dc.repo.all_files() {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(PASSWORD) && !text.contains(PBS), "`{}` holds a secret", path.display());
    }
    dc.strata().run(&["destroy", "--yes"]).ok();
    assert_same(&dc.without_settings(), &without_settings(before), "destroy leaves the datacenter as it was");
}

#[test]
fn each_field_of_a_service_can_change() {
    let dc = Datacenter::new(SERVICES);
    dc.apply();
    for (from, to) in [
        ("  keyboard: de\n", "  console: html5\n  macPrefix: \"BC:24:11\"\n"),
        ("migration: 192.0.2.0/24", "migration: {network: 198.51.100.0/24, type: insecure}"),
        ("lower: 5000", "lower: 5000, upper: 6000"),
        ("shape: full, colors: {prod: ff0000}", "shape: dense, caseSensitive: true"),
        ("  bandwidthLimits: {migration: 100000}\n", "  haShutdownPolicy: migrate\n"),
        ("protocol: https, bucket: pve", "protocol: http, organization: lab, verifyCertificate: false"),
        ("token: {env: ANN_PASSWORD}}\n  graphs", "token: {env: PBS_PASSWORD}}\n  graphs"),
        ("type: graphite, server: 192.0.2.41", "type: influxdb, server: 192.0.2.42"),
        ("to: [ops@example.test]", "to: [ops@example.test, a@example.test], port: 587, mode: starttls"),
        (", comment: for ops", ", author: Proxmox"),
        (
            "headers: {Content-Type: application/json}",
            "headers: {Content-Type: text/plain, X-One: one}, method: put",
        ),
        ("secrets: {id: {env: PBS_PASSWORD}}", "secrets: {id: {env: ANN_PASSWORD}}"),
        ("users: [root@pam]", "to: [root@example.test], enabled: false"),
        ("severities: [error, warning]", "severities: [error], mode: any, invert: true"),
        (", calendar: [\"mon..fri 8:00-17:00\"]", ""),
    ] {
        dc.assert_edited(from, to);
    }
    let options = dc.export()["cluster"]["options"].clone();
    assert_eq!(options["keyboard"], json!(null));
    assert_eq!(options["migration"], "type=insecure,network=198.51.100.0/24");
}

#[test]
fn drift_of_services_is_seen_and_mended() {
    let dc = Datacenter::new(SERVICES);
    dc.apply();
    // What nobody speaks of stays.
    dc.change(
        "PUT",
        "/cluster/options",
        json!({"keyboard": "fr", "language": "fr", "tag-style": "shape=none,ordering=config"}),
    );
    dc.change("PUT", "/cluster/metrics/server/stats", json!({"server": "192.0.2.99", "port": 8086}));
    dc.change("PUT", "/cluster/notifications/endpoints/smtp/ops", json!({"comment": "by hand"}));
    dc.change("DELETE", "/cluster/notifications/matchers/errors", json!({}));
    let drift = dc.strata().run(&["drift"]).all();
    for address in
        ["dc/options/datacenter", "dc/metricserver/stats", "dc/notification/ops", "dc/matcher/errors"]
    {
        assert!(drift.contains(address), "{address}:\n{drift}");
    }
    dc.apply();
    dc.assert_settled();
    let options = dc.export()["cluster"]["options"].clone();
    assert_eq!((&options["language"], &options["keyboard"]), (&json!("fr"), &json!("de")));
    assert!(options["tag-style"].as_str().unwrap().contains("ordering=config"), "{options}");
}

#[test]
fn services_of_others_stay_as_they_are() {
    let dc = Datacenter::new(SERVICES);
    let graphite = json!({"type": "graphite", "server": "192.0.2.70", "port": 2003});
    dc.change("POST", "/cluster/metrics/server/graphs", graphite);
    let gotify = json!({"name": "phone", "server": "https://other.example", "token": "t"});
    dc.change("POST", "/cluster/notifications/endpoints/gotify", gotify);
    let before = dc.export();
    let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
    for name in ["metric server `graphs`", "notification endpoint `phone`"] {
        assert!(refused.contains(name), "{name}:\n{refused}");
    }
    assert_same(&dc.export(), &before, "nothing is touched");
    dc.repo.edit(FILE, "port: 2003, enabled: false", "port: 2003, enabled: false, adopt: true");
    dc.repo.edit(FILE, "type: gotify,", "type: gotify, adopt: true,");
    dc.apply();
    dc.assert_settled();
    dc.strata().run(&["destroy", "--yes"]).ok();
    assert!(dc.export()["cluster"]["files"]["metrics"]["graphs"].is_object(), "what was there before stays");
}

#[test]
fn wrong_services_are_named_before_anything_is_done() {
    for (from, to, told) in [
        ("nextId: {lower: 5000}", "nextId: {lower: 5000, upper: 4000}", "offers no VMID"),
        ("type: graphite,", "type: graphite, bucket: x,", "has no `bucket`"),
        ("type: graphite,", "type: graphite, protocol: https,", "is not reached by `https`"),
        ("type: sendmail, users: [root@pam]", "type: sendmail", "goes to nobody"),
        ("type: gotify, server: \"https://push.example\",", "type: gotify,", "has no `server`"),
        ("    errors: {", "    ops: {", "both called `ops`"),
    ] {
        let dc = Datacenter::new(&SERVICES.replacen(from, to, 1));
        let refused = dc.strata().run(&["validate"]);
        assert!(refused.code != 0 && refused.all().contains(told), "{to}:\n{}", refused.all());
    }
}

#[test]
fn the_computed_role_is_enough_for_all_of_it() {
    for source in [SERVICES, SDN, SERVERS, REALMS, HOSTS, ACME] {
        let world = datacenter(source);
        become_somebody_with(&world, &computed(&world));
        world.strata().run(&["apply", "--yes"]).ok();
        world.assert_settled();
        world.strata().run(&["destroy", "--yes"]).ok();
    }
}

/// A run that is killed at a write: the next one ends as an undisturbed one does.
#[test]
fn a_kill_while_services_are_made_loses_nothing() {
    let undisturbed = Datacenter::new(SERVICES);
    undisturbed.apply();
    let expected = undisturbed.export();
    for (kind, path) in [
        ("hold-after", "/cluster/options"),
        ("hold-after", "/cluster/metrics/server/stats"),
        ("hold-after", "/cluster/notifications/endpoints/webhook"),
        ("hold-before", "/cluster/notifications/matchers"),
    ] {
        let dc = Datacenter::new(SERVICES);
        let fault = json!({"kind": kind, "path": path, "writes": true});
        let killed =
            dc.strata().kill_at(&dc.sim.control(), &fault, &["apply", "--yes", "--parallelism", "1"]);
        assert!(killed.struck_or_good(path), "{path}");
        dc.apply();
        assert_same(&dc.export(), &expected, path);
        dc.assert_settled();
    }
}
