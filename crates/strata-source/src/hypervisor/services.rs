//! What the cluster does by itself: its options, where its statistics and notifications go.

use strata_yaml::{Map, Spanned, TextRule, TextShape, Value, choice, record};

use crate::value::address::Cidr;
use crate::value::name::{ID, TAG, USER};
use crate::value::place::{ADDRESS, VM_ID};

/// The first bytes of hardware addresses.
const MAC_PREFIX: TextRule = TextRule {
    shape: TextShape {
        what: "the first bytes of hardware addresses, such as `BC:24:11`",
        pattern: Some("^[0-9A-F][02468ACE](:[0-9A-F]{2}){0,4}$"),
    },
    accepts: |text| {
        let parts: Vec<&str> = text.split(':').collect();
        let byte = |part: &&str| {
            let upper = |byte: u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte);
            part.len() == 2 && part.bytes().all(upper)
        };
        let unicast = u8::from_str_radix(parts[0], 16).is_ok_and(|first| first & 1 == 0);
        parts.len() < 6 && parts.iter().all(byte) && unicast
    },
};

/// Of a tag: `ff8800`, and the colour of its text, `ff8800:000000`.
const COLOR: TextRule = TextRule {
    shape: TextShape {
        what: "a colour of six hex digits, with `:` and the colour of the text where it is not chosen by Proxmox",
        pattern: Some("^[0-9a-fA-F]{6}(:[0-9a-fA-F]{6})?$"),
    },
    accepts: |text| {
        let hex = |part: &str| part.len() == 6 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        match text.split_once(':') {
            Some((tag, own)) => hex(tag) && hex(own),
            None => hex(text),
        }
    },
};

choice! {
    /// How guests travel between hosts.
    pub enum TransferType { Secure = "secure", Insecure = "insecure" }
}

record! {
    /// How and where guests travel between hosts.
    pub struct Transfer [shorthand("network")] {
        /// the network of the hosts that is used; otherwise that of the cluster
        "network" network: Option<Spanned<Cidr>> [label(ADDRESS)];
        /// whether it is encrypted
        "type" kind: Option<TransferType>;
    }
}

choice! {
    /// How high availability chooses a host.
    pub enum SchedulerMode { Basic = "basic", Static = "static" }
}

record! {
    /// How the cluster chooses hosts.
    pub struct ClusterScheduler [shorthand("ha")] {
        /// by the number of guests, or by what they are given
        "ha" ha: Option<SchedulerMode>;
        /// a guest that starts may be put on a better host
        "rebalanceOnStart" rebalance_on_start: Option<bool>;
    }
}

choice! {
    /// What becomes of guests of high availability when their host shuts down.
    pub enum ShutdownPolicy {
        Freeze = "freeze",
        Failover = "failover",
        Conditional = "conditional",
        Migrate = "migrate",
    }
}

record! {
    /// The VMIDs that Proxmox offers for new guests.
    pub struct NextId {
        /// the first
        "lower" lower: Option<u32> [range(100, 999_999_999), label(VM_ID)];
        /// the one after the last
        "upper" upper: Option<u32> [range(100, 1_000_000_000), label(VM_ID)];
    }
}

choice! {
    /// How tags look.
    pub enum TagShape { Full = "full", Circle = "circle", Dense = "dense", None = "none" }
}

choice! {
    /// In which order tags stand.
    pub enum TagOrdering { Config = "config", Alphabetical = "alphabetical" }
}

record! {
    /// How tags look in Proxmox.
    pub struct TagStyle {
        /// their form
        "shape" shape: Option<TagShape>;
        /// their order
        "ordering" ordering: Option<TagOrdering>;
        /// whether upper and lower case differ
        "caseSensitive" case_sensitive: Option<bool>;
        /// their colours, by tag: `{prod: ff0000}`
        "colors" colors: Map<Spanned<String>> [keys(TAG), text(COLOR)];
    }
}

record! {
    /// At most so many KiB a second.
    pub struct BandwidthLimits {
        /// for what is not named here
        "default" default: Option<u32>;
        /// copying templates and guests
        "clone" clone_: Option<u32>;
        /// moving guests between hosts
        "migration" migration: Option<u32>;
        /// moving disks
        "move" move_: Option<u32>;
        /// restoring backups
        "restore" restore: Option<u32>;
    }
}

choice! {
    /// What consoles open with.
    pub enum Console { Applet = "applet", SpiceViewer = "vv", Html5 = "html5", XtermJs = "xtermjs" }
}

record! {
    /// Options of the whole datacenter. What is not said stays as it is.
    pub struct DatacenterOptions {
        /// the keyboard of consoles: `de`, `en-us`
        "keyboard" keyboard: Option<String>;
        /// what consoles open with
        "console" console: Option<Console>;
        /// the address that Proxmox sends mail from
        "emailFrom" email_from: Option<String>;
        /// a proxy for downloads: `http://192.0.2.3:3128`
        "httpProxy" http_proxy: Option<String>;
        /// the first bytes of hardware addresses of new guests
        "macPrefix" mac_prefix: Option<Spanned<String>> [text(MAC_PREFIX)];
        /// how many tasks of one bulk action run at once
        "maxWorkers" max_workers: Option<u32> [range(1, 1000)];
        /// how guests are moved
        "migration" migration: Option<Transfer>;
        /// how guests are replicated
        "replication" replication: Option<Transfer>;
        /// how the cluster chooses hosts
        "scheduler" scheduler: Option<ClusterScheduler>;
        /// what becomes of guests of high availability when their host shuts down
        "haShutdownPolicy" ha_shutdown_policy: Option<ShutdownPolicy>;
        /// the VMIDs that Proxmox offers for new guests
        "nextId" next_id: Option<NextId>;
        /// how tags look
        "tagStyle" tag_style: Option<TagStyle>;
        /// how fast disks are copied
        "bandwidthLimits" bandwidth_limits: Option<BandwidthLimits>;
    }
}

choice! {
    /// What takes statistics.
    pub enum MetricServerType { Graphite = "graphite", InfluxDb = "influxdb", OpenTelemetry = "opentelemetry" }
}

choice! {
    /// How statistics are sent.
    pub enum MetricProtocol { Udp = "udp", Tcp = "tcp", Http = "http", Https = "https" }
}

record! {
    /// A server that statistics of hosts, guests and storages are sent to.
    pub struct MetricServer {
        /// what it is
        "type" kind: MetricServerType;
        /// its name or address
        "server" server: String [label(ADDRESS)];
        /// its port
        "port" port: u16 [range(1, 65535)];
        /// how it is reached: graphite `udp` or `tcp`, influxdb `udp`, `http` or `https`, opentelemetry `http` or `https`
        "protocol" protocol: Option<MetricProtocol>;
        /// graphite: the path of the statistics; opentelemetry: that of the URL
        "path" path: Option<String>;
        /// influxdb: the bucket or database
        "bucket" bucket: Option<String>;
        /// influxdb: the organization
        "organization" organization: Option<String>;
        /// influxdb: the token that lets Proxmox write
        "token" token: Option<Value<String>> [secret];
        /// whether the certificate of the server is checked
        "verifyCertificate" verify_certificate: Option<bool>;
        /// the largest packet
        "mtu" mtu: Option<u32> [range(512, 65_536)];
        /// how many seconds the server may take
        "timeout" timeout: Option<u32> [range(0, 3600)];
        /// whether it is used
        "enabled" enabled: bool = true;
        /// taken over if it is there already
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

choice! {
    /// How a notification is sent.
    pub enum EndpointType { Sendmail = "sendmail", Smtp = "smtp", Gotify = "gotify", Webhook = "webhook" }
}

choice! {
    /// How a mail server is reached.
    pub enum SmtpMode { Insecure = "insecure", StartTls = "starttls", Tls = "tls" }
}

choice! {
    /// The request of a webhook.
    pub enum WebhookMethod { Post = "post", Put = "put", Get = "get" }
}

record! {
    /// Where notifications can be sent.
    pub struct NotificationEndpoint {
        /// what it is
        "type" kind: EndpointType;
        /// smtp: the mail server; gotify: its URL
        "server" server: Option<String> [label(ADDRESS)];
        /// smtp: its port
        "port" port: Option<u16> [range(1, 65535)];
        /// smtp: how it is reached; otherwise `tls`
        "mode" mode: Option<SmtpMode>;
        /// smtp: who logs in there
        "username" username: Option<Value<String>>;
        /// smtp: their password
        "password" password: Option<Value<String>> [secret];
        /// sendmail, smtp: the address that mail comes from
        "from" from: Option<String>;
        /// sendmail, smtp: the name beside that address
        "author" author: Option<String>;
        /// sendmail, smtp: addresses that mail goes to
        "to" to: Vec<String>;
        /// sendmail, smtp: users whose addresses mail goes to: `root@pam`
        "users" users: Vec<String> [text(USER)];
        /// gotify: the token that lets Proxmox send
        "token" token: Option<Value<String>> [secret];
        /// webhook: the URL; `{{ secrets.NAME }}` stands for a secret
        "url" url: Option<String>;
        /// webhook: the request; otherwise `post`
        "method" method: Option<WebhookMethod>;
        /// webhook: headers, by name
        "headers" headers: Map<String> [keys(ID)];
        /// webhook: what is sent, with `{{ title }}`, `{{ message }}` and the like
        "body" body: Option<String>;
        /// webhook: secrets that URL, headers and body refer to, by name
        "secrets" secrets: Map<Value<String>> [keys(ID), secret];
        /// whether it is used
        "enabled" enabled: bool = true;
        /// for people
        "comment" comment: Option<String> [env()];
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

choice! {
    /// How urgent a notification is.
    pub enum Severity {
        Info = "info",
        Notice = "notice",
        Warning = "warning",
        Error = "error",
        Unknown = "unknown",
    }
}

choice! {
    /// Whether all of the conditions must hold.
    pub enum MatchMode { All = "all", Any = "any" }
}

record! {
    /// Which notifications go where.
    pub struct NotificationMatcher {
        /// the endpoints that they go to
        "targets" targets: Vec<Spanned<String>> [text(ID)];
        /// how urgent they are
        "severities" severities: Vec<Severity>;
        /// what their fields say: `exact:type=vzdump`, `regex:hostname=^pve`
        "fields" fields: Vec<String>;
        /// when they are sent: `mon..fri 8:00-17:00`
        "calendar" calendar: Vec<String>;
        /// whether all of these must hold, or any; otherwise all
        "mode" mode: Option<MatchMode>;
        /// those for which that does not hold
        "invert" invert: Option<bool>;
        /// whether it is used
        "enabled" enabled: bool = true;
        /// for people
        "comment" comment: Option<String> [env()];
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// Where notifications go, and which.
    pub struct Notifications {
        /// where they can be sent, by name
        "endpoints" endpoints: Map<NotificationEndpoint> [keys(ID)];
        /// which of them go where, by name
        "matchers" matchers: Map<NotificationMatcher> [keys(ID)];
    }
}

record! {
    /// What the cluster does by itself.
    pub struct Services {
        /// options of the whole datacenter: networks of migrations, the scheduler, tags, VMIDs
        "options" options: Option<Spanned<DatacenterOptions>>;
        /// servers that statistics are sent to, by id
        "metricServers" metric_servers: Map<MetricServer> [keys(ID), env()];
        /// where notifications go, and which
        "notifications" notifications: Option<Notifications>;
    }
}
