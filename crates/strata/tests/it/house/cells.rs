//! No cell that can be written lies between observing, reviewing and executing: what was seen is evidence, what is sent is the payload of
//! its step. What is left is listed here with its reason.

use super::{crates, product, rust_files};

/// File, name of the field or type, and why it may be there.
const ALLOWED: [(&str, &str, &str); 10] = [
    ("strata-proxmox/src/client.rs", "permits", "the pool of connections: so many requests at once"),
    ("strata-proxmox/src/client/auth.rs", "ticket", "the pool of connections: a ticket can be had again"),
    ("strata-proxmox/src/kinds/network/watched.rs", "made", "lives as long as one operation is executed"),
    ("strata-proxmox/src/kinds/network/watched.rs", "reloads", "lives as long as one operation is executed"),
    ("strata-cluster/src/connections.rs", "pool", "the pool of connections"),
    ("strata-cluster/src/node.rs", "Registration", "lives as long as one wait"),
    ("strata-cluster/src/rejoin.rs", "OutsideEtcd", "lives as long as one wait"),
    ("strata-cluster/src/rollout.rs", "lock", "the rollout lock"),
    (
        "strata-cluster/src/rollout.rs",
        "etcd_runs",
        "the rollout lock: what steps of one run know of each other",
    ),
    ("strata-truenas/src/client.rs", "connection", "the pool of connections"),
];

const CELLS: [&str; 9] =
    ["Mutex<", "RwLock<", "Cell<", "Lock<", "OnceCell<", "Atomic", "Semaphore", "watch::Sender", "Notify"];

/// The field or the type that a line declares with a cell in it.
fn declared_cell(line: &str) -> Option<&str> {
    let line = line.trim();
    let visible = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
    if !CELLS.iter().any(|cell| visible.contains(cell)) {
        return None;
    }
    if let Some(rest) = visible.strip_prefix("struct ").or(visible.strip_prefix("static ")) {
        return rest.split(['(', ':', ' ', '<']).next();
    }
    let (name, rest) = visible.split_once(": ")?;
    let is_field = name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    // A value that is made, a parameter and a guard are no declarations.
    let is_type = rest.ends_with(',') && !rest.contains("::new(") && !rest.contains("default()");
    (is_field && is_type && !rest.contains('&') && !rest.contains("MutexGuard")).then_some(name)
}

#[test]
fn providers_have_no_cells_but_pools_and_the_rollout_lock() {
    let mut found = Vec::new();
    for owner in ["strata-proxmox", "strata-cluster", "strata-truenas"] {
        for path in rust_files(&crates().join(owner).join("src")) {
            let file = path.strip_prefix(crates()).unwrap().to_string_lossy().into_owned();
            found.extend(
                product(&path).lines().filter_map(declared_cell).map(|name| (file.clone(), name.to_owned())),
            );
        }
    }
    let allowed =
        |file: &str, name: &str| ALLOWED.iter().any(|(in_file, of, _)| (*in_file, *of) == (file, name));
    let more: Vec<_> = found.iter().filter(|(file, name)| !allowed(file, name)).collect();
    assert!(more.is_empty(), "carry it as evidence or payload, or say here why it may be there: {more:?}");
    let gone: Vec<_> = ALLOWED
        .iter()
        .filter(|(file, name, _)| !found.contains(&((*file).to_owned(), (*name).to_owned())))
        .collect();
    assert!(gone.is_empty(), "allowed and not there: {gone:?}");
}

#[test]
fn who_observes_or_reviews_a_cluster_does_not_ask_the_rollout() {
    for file in ["observe", "review", "evidence", "forecast", "preconditions", "running"] {
        let code = product(&crates().join(format!("strata-cluster/src/{file}.rs")));
        for name in ["rollout", "is_alive", "now_alive"] {
            assert!(!code.contains(name), "`{file}.rs` asks `{name}`");
        }
    }
}

#[test]
fn a_cell_is_found_where_it_is_declared() {
    let found = |line: &str| declared_cell(line).map(str::to_owned);
    assert_eq!(found("    pub(crate) seen: Mutex<BTreeMap<String, String>>,").as_deref(), Some("seen"));
    assert_eq!(found("    alive: AtomicBool,").as_deref(), Some("alive"));
    assert_eq!(found("pub(crate) struct Memory(RefCell<Vec<u8>>);").as_deref(), Some("Memory"));
    assert_eq!(found("static SEEN: OnceLock<u8> = OnceLock::new();").as_deref(), Some("SEEN"));
    for line in
        ["let done = AtomicBool::new(false);", "alive: AtomicBool::new(true),", "lock: MutexGuard<'_, ()>,"]
    {
        assert_eq!(found(line), None, "{line}");
    }
}
