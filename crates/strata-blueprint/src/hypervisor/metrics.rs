//! Servers that statistics are sent to.

use strata_source::hypervisor::Hypervisor;
use strata_source::hypervisor::services::{MetricProtocol, MetricServer, MetricServerType};
use strata_yaml::Spanned;

use super::Part;
use crate::fields::{Fields, int};
use crate::kinds;
use crate::site::Draft;

impl Draft<'_> {
    pub(super) fn metric_servers(&mut self, hypervisor: &Hypervisor) {
        for (name, server) in hypervisor.services.metric_servers.iter() {
            self.metric_server(name, server);
        }
    }

    fn metric_server(&mut self, name: &Spanned<String>, server: &MetricServer) {
        let mut part = Part::new(kinds::METRIC_SERVER, name, name.span).flags(server.adopt, server.protect);
        let spec = &mut part.spec;
        spec.put("metric_server", name.as_str());
        spec.put("type", server.kind.to_string());
        spec.put("server", server.server.as_str());
        spec.put("port", int(server.port));
        spec.put("enabled", server.enabled);
        let fields = Fitting::of(server.kind);
        let mut wrong = Vec::new();
        let mut put = |written: &'static str,
                       field: Option<&'static str>,
                       value: Option<strata_resource::Value>| {
            match (field, value) {
                (Some(field), value) => spec.put_some(field, value),
                (None, Some(_)) => wrong.push(written),
                (None, None) => {}
            }
        };
        let protocol = server.protocol.map(|protocol| protocol.to_string().into());
        put("protocol", Some(fields.protocol), protocol);
        put("path", fields.path, server.path.clone().map(Into::into));
        put("bucket", fields.influx.then_some("bucket"), server.bucket.clone().map(Into::into));
        let organization = server.organization.clone().map(Into::into);
        put("organization", fields.influx.then_some("organization"), organization);
        put("verifyCertificate", fields.verify, server.verify_certificate.map(Into::into));
        put("mtu", fields.mtu, server.mtu.map(int));
        put("timeout", Some(fields.timeout), server.timeout.map(int));
        if server.token.is_some() && !fields.influx {
            wrong.push("token");
        }
        for key in wrong {
            let message =
                format!("the metric server `{name}` is of type `{}`, which has no `{key}`", server.kind);
            self.refuse("no-such-field", message, name.span);
        }
        if let Some(protocol) = server.protocol.filter(|protocol| !fields.protocols.contains(protocol)) {
            let message = format!("a metric server of type `{}` is not reached by `{protocol}`", server.kind);
            self.refuse("no-such-protocol", message, name.span);
        }
        let token = server.token.as_ref().and_then(|token| self.secret(token));
        part.spec.put_some("token", token);
        self.part(part);
    }
}

/// Where each type keeps what it has.
struct Fitting {
    protocol: &'static str,
    protocols: &'static [MetricProtocol],
    path: Option<&'static str>,
    influx: bool,
    verify: Option<&'static str>,
    mtu: Option<&'static str>,
    timeout: &'static str,
}

impl Fitting {
    fn of(kind: MetricServerType) -> Self {
        use MetricProtocol::{Http, Https, Tcp, Udp};
        match kind {
            MetricServerType::Graphite => Self {
                protocol: "protocol",
                protocols: &[Udp, Tcp],
                path: Some("path"),
                influx: false,
                verify: None,
                mtu: Some("mtu"),
                timeout: "timeout",
            },
            MetricServerType::InfluxDb => Self {
                protocol: "influx_protocol",
                protocols: &[Udp, Http, Https],
                path: None,
                influx: true,
                verify: Some("verify_certificate"),
                mtu: Some("mtu"),
                timeout: "timeout",
            },
            MetricServerType::OpenTelemetry => Self {
                protocol: "otel_protocol",
                protocols: &[Http, Https],
                path: Some("otel_path"),
                influx: false,
                verify: Some("otel_verify"),
                mtu: None,
                timeout: "otel_timeout",
            },
        }
    }
}
