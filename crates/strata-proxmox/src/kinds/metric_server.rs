//! Servers that statistics are sent to.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, Shown, kind};

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER, NO_MARK};
use crate::datacenter::{Family, Simple, Unset};
use crate::preflight::Needs;

kind! {
    /// A server that statistics are sent to.
    "metricserver" {
        called: "metric server {metric_server}, {type}",
        identity: &["metric_server"],
        proof: NO_MARK,
        shares: &[ADOPT],
        at_once: true,
        shown: Shown { in_headline: &["type"], ..DATACENTER.shown },
        no_tofu: Some("the module of the datacenter has no metric servers"),
        ..DATACENTER
    }
    /// its id
    "metric_server": Text => InPlace [remote("id")];
    /// `graphite`, `influxdb` or `opentelemetry`
    "type": Text => Replace [remote("type"), because("Proxmox cannot change it")];
    /// its name or address
    "server": Text => InPlace [remote("server"), always_sent];
    /// its port
    "port": Int => InPlace [remote("port"), always_sent];
    /// it is used
    "enabled": Bool => InPlace [inverted("disable"), on_by_default];
    /// the largest packet
    "mtu": Int => InPlace [remote("mtu"), default_int(1500)];
    /// how many seconds the server may take
    "timeout": Int => InPlace [remote("timeout"), default_int(1)];
    /// graphite: `udp` or `tcp`
    "protocol": Text => InPlace [remote("proto"), default_text("udp")];
    /// graphite: the path of the statistics
    "path": Text => InPlace [remote("path")];
    /// influxdb: `udp`, `http` or `https`
    "influx_protocol": Text => InPlace [remote("influxdbproto"), default_text("udp")];
    /// influxdb: the bucket or database
    "bucket": Text => InPlace [remote("bucket")];
    /// influxdb: the organization
    "organization": Text => InPlace [remote("organization")];
    /// influxdb: what lets Proxmox write
    "token": Text => InPlace [remote("token"), write_only];
    /// influxdb: its certificate is checked
    "verify_certificate": Bool => InPlace [remote("verify-certificate"), on_by_default];
    /// opentelemetry: `http` or `https`
    "otel_protocol": Text => InPlace [remote("otel-protocol"), default_text("https")];
    /// opentelemetry: the path of the URL
    "otel_path": Text => InPlace [remote("otel-path"), default_text("/v1/metrics")];
    /// opentelemetry: its certificate is checked
    "otel_verify": Bool => InPlace [remote("otel-verify-ssl"), on_by_default];
    /// opentelemetry: how many seconds the server may take
    "otel_timeout": Int => InPlace [remote("otel-timeout"), default_int(5)];
}

static ROWS: Simple = Simple {
    unset: Unset::Delete,
    read_each: true,
    made_at_path: true,
    ..Simple::new("metric server", "/cluster/metrics/server", &TABLE)
};

pub(super) struct MetricServer;

#[async_trait]
impl ManagedKind for MetricServer {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.datacenter(operation);
    }
}
