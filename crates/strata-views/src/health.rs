//! How a cluster is, as a table that fits a narrow terminal.

use std::fmt::Write as _;

use strata_cluster::{ClusterHealth, NodeHealth};

use crate::style::{self, paint};

/// What is wrong is told below the node, indented.
const INDENT: usize = 4;
/// Longer lines are hard to read, however wide the terminal is.
const WIDEST: usize = 100;

/// Talos' word for what a node is.
pub fn role(node: &NodeHealth) -> &'static str {
    if node.control_plane { "controlplane" } else { "worker" }
}

/// A table of the nodes, then etcd and Kubernetes, in so many columns.
pub fn render(health: &ClusterHealth, columns: usize) -> String {
    let columns = columns.min(WIDEST);
    let mut text = table(health, columns);
    let _ = write!(text, "{} ", label("etcd", health.etcd_trouble.is_none()));
    let _ = write!(text, "{}", members(health, columns));
    if let Some(trouble) = &health.etcd_trouble {
        let _ = write!(text, "{}", told(trouble, columns));
    }
    let version = health.kubernetes.as_deref().unwrap_or("no version");
    let _ = write!(text, "\n{} {version}", label("Kubernetes", health.kubernetes_trouble.is_none()));
    if let Some(trouble) = &health.kubernetes_trouble {
        let _ = write!(text, "{}", told(trouble, columns));
    }
    text
}

fn label(what: &str, well: bool) -> String {
    paint(if well { style::CREATE } else { style::ERROR }, format!("{what}:"))
}

fn table(health: &ClusterHealth, columns: usize) -> String {
    let head = ["NODE", "ROLE", "ADDRESS", "TALOS", "KUBELET"].map(str::to_owned);
    let row = |node: &NodeHealth| {
        let or = |version: &Option<String>| version.clone().unwrap_or_else(|| "-".to_owned());
        [node.name.clone(), role(node).to_owned(), node.address.clone(), or(&node.version), or(&node.kubelet)]
    };
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(health.nodes.iter().map(row)).collect();
    let widths: [usize; 5] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let line = |row: &[String; 5]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ")
    };
    let mut text = format!("{}\n", paint(style::FAINT, line(&rows[0]).trim_end()));
    for (row, node) in rows[1..].iter().zip(&health.nodes) {
        let (colour, word) = match node.trouble {
            None => (style::CREATE, "healthy"),
            Some(_) => (style::ERROR, "unhealthy"),
        };
        let _ = write!(text, "{}  {}", line(row), paint(colour, word));
        if let Some(trouble) = &node.trouble {
            text.push_str(&told(trouble, columns));
        }
        text.push('\n');
    }
    text
}

fn members(health: &ClusterHealth, columns: usize) -> String {
    let names: Vec<String> = health
        .members
        .iter()
        .map(|member| match (member.learner, member.healthy) {
            (true, _) => format!("{} (learning)", member.name),
            (false, true) => member.name.clone(),
            (false, false) => format!("{} (unhealthy)", member.name),
        })
        .collect();
    let count = match names.len() {
        0 => return "no members".to_owned(),
        1 => "1 member".to_owned(),
        more => format!("{more} members"),
    };
    format!("{count}{}", told(&names.join(", "), columns))
}

/// A text on lines of its own, indented, broken between words.
fn told(text: &str, columns: usize) -> String {
    let room = columns.saturating_sub(INDENT).max(20);
    let mut shown = String::new();
    let mut used = room;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used + 1 + length > room {
            let _ = write!(shown, "\n{:INDENT$}{word}", "");
            used = length;
        } else {
            let _ = write!(shown, " {word}");
            used += 1 + length;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use strata_cluster::MemberHealth;

    use super::*;

    fn node(name: &str, trouble: Option<&str>) -> NodeHealth {
        NodeHealth {
            name: name.to_owned(),
            address: "198.51.100.111".to_owned(),
            control_plane: name.contains("cp"),
            version: trouble.is_none().then(|| "v1.13.9".to_owned()),
            kubelet: Some("v1.36.3".to_owned()),
            trouble: trouble.map(str::to_owned),
        }
    }

    #[test]
    fn fits_eighty_columns() {
        let trouble = "cannot connect to 198.51.100.111:50000: no route to host, and nothing else is known of it at the moment";
        let member =
            |name: &str, well| MemberHealth { name: name.to_owned(), id: 1, learner: false, healthy: well };
        let health = ClusterHealth {
            nodes: vec![node("homelab-cp-1", None), node("homelab-worker-10", Some(trouble))],
            members: vec![member("homelab-cp-1", true), member("homelab-cp-2", false)],
            etcd_trouble: Some("its member on `homelab-cp-2` is unhealthy".to_owned()),
            kubernetes: Some("v1.36.3".to_owned()),
            kubernetes_trouble: None,
        };
        let text = anstream::adapter::strip_str(&render(&health, 80)).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text, @r"
        NODE               ROLE          ADDRESS         TALOS    KUBELET
        homelab-cp-1       controlplane  198.51.100.111  v1.13.9  v1.36.3  healthy
        homelab-worker-10  worker        198.51.100.111  -        v1.36.3  unhealthy
            cannot connect to 198.51.100.111:50000: no route to host, and nothing else
            is known of it at the moment
        etcd: 2 members
            homelab-cp-1, homelab-cp-2 (unhealthy)
            its member on `homelab-cp-2` is unhealthy
        Kubernetes: v1.36.3
        ");
    }
}
