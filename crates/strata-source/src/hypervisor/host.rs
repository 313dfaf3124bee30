//! A host itself: its settings and its firewall.

use strata_yaml::{Map, Spanned, Value, record};

use crate::machine::firewall::{FirewallRule, LogLevel};
use crate::value::address::{Ip, Mac};
use crate::value::name::{ID, URL};

record! {
    /// How a host is woken up by others.
    pub struct WakeOnLan [shorthand("mac")] {
        /// the hardware address of its card
        "mac" mac: Mac;
        /// the interface that the others send from
        "interface" interface: Option<String>;
        /// the address that they send to
        "broadcast" broadcast: Option<Ip>;
    }
}

record! {
    /// The firewall of one host. It filters where that of the datacenter is on, and its rules come before those.
    pub struct HostFirewall [shorthand("enabled")] {
        /// whether it applies; left as it is if not said
        "enabled" enabled: Option<bool>;
        /// how much is logged of packets to the host that no rule speaks of
        "logLevelIn" log_level_in: Option<LogLevel>;
        /// the same, from the host
        "logLevelOut" log_level_out: Option<LogLevel>;
        /// the same, through the host
        "logLevelForward" log_level_forward: Option<LogLevel>;
        /// connections are logged
        "logConnections" log_connections: Option<bool>;
        /// how many connections are followed at most
        "maxConnections" max_connections: Option<u32> [range(32_768, 4_294_967_295)];
        /// after how many seconds an idle connection is forgotten
        "connectionTimeout" connection_timeout: Option<u32> [range(7_875, 4_294_967_295)];
        /// packets that belong to no connection pass
        "allowInvalid" allow_invalid: Option<bool>;
        /// neighbour discovery
        "ndp" ndp: Option<bool>;
        /// packets from broadcast addresses are dropped
        "noSmurfs" no_smurfs: Option<bool>;
        /// how much of them is logged
        "smurfLogLevel" smurf_log_level: Option<LogLevel>;
        /// packets with impossible flags of TCP are dropped
        "tcpFlags" tcp_flags: Option<bool>;
        /// how much of them is logged
        "tcpFlagsLogLevel" tcp_flags_log_level: Option<LogLevel>;
        /// only so many new connections a second from one address
        "synFloodProtection" syn_flood_protection: Option<bool>;
        /// how many
        "synFloodRate" syn_flood_rate: Option<u32>;
        /// how many at once
        "synFloodBurst" syn_flood_burst: Option<u32>;
        /// by nftables, and no longer by iptables
        "nftables" nftables: Option<bool>;
        /// the first that matches decides
        "rules" rules: Vec<FirewallRule>;
        /// it may keep Strata and people away from the host
        "mayLockOut" may_lock_out: bool = false;
        /// taken over if it is there already
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// An account at an authority for certificates. Only root@pam can make one: the target needs `login`.
    pub struct AcmeAccount {
        /// the addresses that the authority writes to
        "contact" contact: Vec<String>;
        /// the URL of the authority; otherwise Let's Encrypt
        "directory" directory: Option<String> [text(URL)];
        /// the URL of its terms of service, which are accepted with this
        "terms" terms: Option<String> [text(URL)];
        /// the id of an account that the authority knows already
        "eabKeyId" eab_key_id: Option<String>;
        /// its key
        "eabKey" eab_key: Option<Value<String>> [secret];
        /// taken over if it is there already
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// How it is proved by DNS that a domain is one's own.
    pub struct AcmePlugin {
        /// the DNS service: `cf`, `hetzner`, `nsupdate`, …
        "api" api: String;
        /// what lets Proxmox change records there, by the names that the service's script has: `CF_Token`
        "credentials" credentials: Map<Value<String>> [keys(ID), secret];
        /// the hosts that can use it; otherwise all
        "nodes" nodes: Vec<String> [text(ID)];
        /// how many seconds records take to be seen; otherwise 30
        "validationDelay" validation_delay: Option<u32> [range(0, 172_800)];
        /// whether it is used
        "enabled" enabled: bool = true;
        /// taken over if it is there already
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// Authorities that give certificates, and how domains are proved to be one's own.
    pub struct Acme {
        /// accounts, by name
        "accounts" accounts: Map<AcmeAccount> [keys(ID)];
        /// plugins for DNS, by id
        "plugins" plugins: Map<AcmePlugin> [keys(ID)];
    }
}

record! {
    /// A domain of a host's certificate.
    pub struct AcmeDomain [shorthand("domain")] {
        /// its name
        "domain" domain: String;
        /// the plugin that proves it; otherwise the host is asked on port 80
        "plugin" plugin: Option<Spanned<String>> [text(ID)];
        /// the domain whose records prove it
        "alias" alias: Option<String>;
    }
}

record! {
    /// What the certificate is about that a host orders from an authority.
    pub struct HostAcme {
        /// the account; otherwise `default`
        "account" account: Option<Spanned<String>> [text(ID)];
        /// up to six domains
        "domains" domains: Vec<Spanned<AcmeDomain>>;
    }
}

record! {
    /// A certificate of one's own for the API and the web interface of a host.
    pub struct HostCertificate {
        /// the certificate, then those between it and its authority, in PEM
        "chain" chain: Value<String>;
        /// its private key, in PEM
        "key" key: Value<String> [secret];
        /// taken over if one is there already
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// A host.
    pub struct Host {
        /// its notes
        "notes" notes: Option<String> [env()];
        /// how many seconds pass before its first guest is started with it
        "startDelay" start_delay: Option<u32> [range(0, 300)];
        /// how many percent of its memory guests with ballooning may fill; otherwise 80
        "ballooningTarget" ballooning_target: Option<u32> [range(0, 100)];
        /// how it is woken up by others
        "wakeOnLan" wake_on_lan: Option<WakeOnLan>;
        /// the account and the domains of a certificate that the host orders from an authority
        "acme" acme: Option<HostAcme>;
        /// a certificate of one's own, beside the one that Proxmox makes
        "certificate" certificate: Option<Spanned<HostCertificate>>;
        /// which of Proxmox' own repositories its packages come from, by handle: `no-subscription`, `enterprise`; others stay as they are
        "repositories" repositories: Map<bool> [keys(ID)];
        /// its firewall
        "firewall" firewall: Option<Spanned<HostFirewall>>;
    }
}
