//! The kinds of managed objects, by name. What a kind is like, its [`KindTable`] says; the provider that makes objects of the kind owns
//! that table and registers it at start-up, so that nothing here names a kind.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{PoisonError, RwLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules::KindRules;
use crate::table::KindTable;

/// What sort of object a resource is: the `vm` of `web/vm/web-1`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
pub struct Kind(&'static str);

/// A table, and its rules as they are looked up.
struct Registered {
    /// In the order of registration.
    rank: usize,
    table: &'static KindTable,
    rules: KindRules,
}

static REGISTRY: RwLock<BTreeMap<&'static str, &'static Registered>> = RwLock::new(BTreeMap::new());

/// What stands for a kind that nobody registered: it has no fields, so every change of it is refused.
static UNKNOWN: KindTable = KindTable::new("unknown", "A kind that no provider has registered.", &[]);

/// Makes kinds known to everything that reads addresses, compares specs or shows plans. Registering a table again does nothing.
pub fn register_kinds(tables: &[&'static KindTable]) {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    for table in tables {
        let rank = registry.len();
        registry.entry(table.name).or_insert_with(|| {
            let rules = KindRules::new(table.shares.iter().chain([&table.fields]).flat_map(|fields| *fields));
            // Once for each kind in the life of a process.
            Box::leak(Box::new(Registered { rank, table, rules }))
        });
    }
}

/// Every kind that is registered, by name.
pub fn registered_kinds() -> Vec<&'static KindTable> {
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    registry.values().map(|registered| registered.table).collect()
}

impl Kind {
    /// The kind of this name. Whether a provider knows it shows when it is looked up.
    pub const fn named(name: &'static str) -> Self {
        Self(name)
    }

    /// As in addresses.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// Where objects of the kind come among others that they do not depend on: as their providers registered them.
    pub fn rank(self) -> usize {
        self.registered().map_or(usize::MAX, |registered| registered.rank)
    }

    /// Its table; one without fields where no provider registered it.
    pub fn table(self) -> &'static KindTable {
        self.registered().map_or(&UNKNOWN, |registered| registered.table)
    }

    /// The rules of its fields, as they are looked up.
    pub fn rules(self) -> &'static KindRules {
        static NONE: KindRules = KindRules::none();
        self.registered().map_or(&NONE, |registered| &registered.rules)
    }

    fn registered(self) -> Option<&'static Registered> {
        REGISTRY.read().unwrap_or_else(PoisonError::into_inner).get(self.0).copied()
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
        registry.get_key_value(text).map(|(name, _)| Self(name)).ok_or_else(|| {
            let known: Vec<_> = registry.keys().copied().collect();
            format!("`{text}` is no kind; there are {}", known.join(", "))
        })
    }
}

impl TryFrom<String> for Kind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Kind> for String {
    fn from(kind: Kind) -> Self {
        kind.0.to_owned()
    }
}
