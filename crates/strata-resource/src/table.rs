//! What a kind is like: one table, written where its provider is, from which rules, plans, views and the reference derive.

use crate::rules::{FieldRule, Purpose};
use crate::{Address, FieldPath, Kind, Spec, Value};

/// Everything about a kind that is not a call to its remote. Made by [`crate::kind!`].
#[derive(Debug, Clone, Copy)]
pub struct KindTable {
    /// As in addresses.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub summary: &'static str,
    /// Its own fields.
    pub fields: &'static [FieldRule],
    /// Fields that it has in common with other kinds.
    pub shares: &'static [&'static [FieldRule]],
    /// How a person calls an object: `VM {vmid} on {node}`. `{field:12}` cuts, `{field:upper}` raises.
    pub called: &'static str,
    /// The fields that are the object's identity.
    pub identity: &'static [&'static str],
    /// Other fields, where the first one is set: what is shared is the same whichever node is asked for it.
    pub identity_if: Option<(&'static str, &'static [&'static str])>,
    /// Kinds whose identities are of one series of numbers or names.
    pub namespace: &'static str,
    /// What proves that a live object is ours, for docs/ownership.md.
    pub proof: &'static str,
    /// The requests that take the digest of what was seen, so that the server refuses them if somebody else was there first.
    pub digest_on: &'static str,
    /// What becomes of an entry of the journal that a dead run left open.
    pub recovery: &'static str,
    /// What to show of it in plans.
    pub shown: Shown,
    /// One request makes it complete: if it is there after an interrupted run, nothing of it is missing.
    pub at_once: bool,
    /// Changes are staged beside what is in effect, and brought into effect together: only an open entry says whose they are.
    pub staged: bool,
    /// A replacement makes the new object first, and deletes the old one when nothing uses it any more.
    pub create_first: bool,
    /// Every host has it: it is never made and never deleted, only set.
    pub always_there: bool,
    /// Its provider answers for it only where the state knows it: nothing about the object itself tells whose it is.
    pub seen_by_record: bool,
    /// An object that is ours by its ownership mark and that an interrupted update touched is known from then on. Not where a value that is given only
    /// once would be lost.
    pub recorded_when_begun: bool,
    /// Facts that prove an object to be the same one later. Without any of them it is not taken over.
    pub proof_facts: &'static [&'static str],
    /// Facts whose change is worth a write of the state.
    pub lasting_facts: &'static [&'static str],
    /// Facts that the object itself reports, after it was made and when it is asked: a change of something else leaves them as they were.
    pub reported_facts: &'static [&'static str],
    /// Fields whose change makes them untrue.
    pub reported_through: &'static [&'static str],
    /// Fields that the journal keeps beside the identity: where recovery looks for tasks.
    pub journal_fields: &'static [&'static str],
    /// Why it is made again, where the state knows it and it is not there.
    pub gone: &'static str,
    /// What to do about an object that something else works on; `{name}` is the object's.
    pub busy: &'static str,
    /// How content relates to a name that the source chose.
    pub content: Option<Content>,
    /// The field that `strata adopt` is given for an object that was made by hand; none where it adopts no object of the kind.
    pub adopted_by: Option<&'static str>,
    /// What objects were made from.
    pub made_from: Option<MadeFrom>,
    /// How several of them are changed one after another.
    pub rollout: Rollout,
    /// Others run on it: where one of them says by [`Self::wiped_fact`] that its disk is empty, this one is recreated.
    pub runs_others: bool,
    /// A fact that says that the whole disk was wiped by somebody who said so.
    pub wiped_fact: Option<&'static str>,
    /// Objects that can be made only once: what to say where it is unreachable and what it ran on is recreated. `{what}`, `{stack}`.
    pub lost: Option<(&'static str, &'static str)>,
    /// Why `strata sync` renders no object of the kind for OpenTofu.
    pub no_tofu: Option<&'static str>,
}

/// What plans, graphs and reports show.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// Fields that the headline of a new object tells, or that are nobody's concern there.
    pub in_headline: &'static [&'static str],
    /// Values that are defaults are left out, and small groups of fields are not folded into one line.
    pub terse: bool,
    /// A field that holds a whole document: its keys are shown, and changes in a few lines.
    pub summarised: Option<&'static str>,
    /// What becomes of an object that is not wanted any more; the flag says that its whole rollout group goes.
    pub removal: fn(&Spec, bool) -> &'static str,
    /// While that happens and when it is done.
    pub removing: (&'static str, &'static str),
    /// How a graph draws it.
    pub shape: Shape,
    /// What a reader looks for first; the other fields follow by name.
    pub first: &'static [&'static str],
    /// The same within a group of fields, and how each is said there.
    pub parts: &'static [(&'static str, Said)],
    /// Fields that events for programs carry with every step: where the object is.
    pub reported: &'static [&'static str],
}

/// How a field is said among others of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// `vlan 30`
    Named,
    /// `64 GiB`
    Bare,
    /// `on tank`, without a comma before it.
    On,
    /// As `Named`, and as `Bare` in a list of whole objects, such as rules.
    BareInLists,
}

/// How a graph draws it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A box.
    Plain,
    /// A cylinder.
    Volume,
    /// A box with a fold.
    Template,
    /// A box that says that it holds a secret.
    Secret,
}

/// An object whose name the source may choose: another content under the same name is another object.
#[derive(Debug, Clone, Copy)]
pub struct Content {
    /// The field with the name. What stands before its last `/` says where it is, not what.
    pub name: &'static str,
    /// Fields that say what the content is, the surest first: the first that both sides have decides.
    pub by: &'static [&'static str],
}

/// An object that was made from another one.
#[derive(Debug, Clone, Copy)]
pub struct MadeFrom {
    /// Fields that say from what. The record keeps them: whatever the source says later, that is what it was made from.
    pub fields: &'static [&'static str],
    /// The same inside of each slot: `("disks", "import")`.
    pub in_slots: &'static [(&'static str, &'static str)],
    /// Recreated when what it is made from changes, with this reason; otherwise it stays as it is.
    pub follows: Option<&'static str>,
}

/// What a kind means where objects that belong together are changed one after the other.
#[derive(Debug, Clone, Copy)]
pub enum Rollout {
    /// It is no part of such a group.
    No,
    /// While it is in the state, the group works and its members must not be disturbed side by side; with it the group ends.
    Gate,
    /// A part of a member, by its name.
    Member {
        /// Every step disturbs it; otherwise only what is felt does.
        always: bool,
        /// Those that come after the others, and that cannot answer without the gate.
        follows: fn(&Spec) -> bool,
        /// Its equals, with which it must not be down at the same time.
        group: fn(&Spec) -> Option<RestartGroup>,
    },
}

/// Objects that do the same work: only so many of them may be down at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestartGroup {
    /// What its members have in common.
    pub name: String,
    /// How many of them may be down at once.
    pub max_unavailable: usize,
}

fn deleted(_: &Spec, _: bool) -> &'static str {
    "deleted"
}

impl KindTable {
    /// A table with the usual answers.
    pub const fn new(name: &'static str, summary: &'static str, fields: &'static [FieldRule]) -> Self {
        Self {
            name,
            summary,
            fields,
            shares: &[],
            called: name,
            identity: &[],
            identity_if: None,
            namespace: "",
            proof: "",
            digest_on: "",
            recovery: "looked at again, and brought to its spec",
            shown: Shown::USUAL,
            at_once: false,
            staged: false,
            create_first: false,
            always_there: false,
            seen_by_record: false,
            recorded_when_begun: false,
            proof_facts: &[],
            lasting_facts: &[],
            reported_facts: &[],
            reported_through: &[],
            journal_fields: &[],
            gone: "it is gone: somebody else deleted it",
            busy: "wait until it has ended",
            content: None,
            adopted_by: None,
            made_from: None,
            rollout: Rollout::No,
            runs_others: false,
            wiped_fact: None,
            lost: None,
            no_tofu: None,
        }
    }

    /// The kind that this is the table of.
    pub const fn kind(&self) -> Kind {
        Kind::named(self.name)
    }

    /// Own fields and shared ones.
    pub fn all_fields(&self) -> impl Iterator<Item = &'static FieldRule> {
        self.fields.iter().chain(self.shares.iter().flat_map(|fields| fields.iter()))
    }

    /// The fields of a spec that are the object's identity; two objects with equal identities on one target are the same one.
    pub fn identity_of(&self, spec: &Spec) -> Spec {
        let is_set = |flag: &str| spec.get(flag).and_then(Value::as_bool) == Some(true);
        let fields = match self.identity_if {
            Some((flag, fields)) if is_set(flag) => fields,
            _ => self.identity,
        };
        fields.iter().filter_map(|field| Some(((*field).to_owned(), spec.get(*field)?.stored()))).collect()
    }

    /// `VM 9100 on pve1`.
    pub fn call(&self, spec: &Spec) -> String {
        let shown = |field: &str| match spec.get(field) {
            Some(Value::Text(text)) => text.clone(),
            Some(Value::Int(number)) => number.to_string(),
            _ => "?".to_owned(),
        };
        fill(self.called, &|placeholder| match placeholder.split_once(':') {
            Some((field, "upper")) => shown(field).to_uppercase(),
            Some((field, length)) => {
                shown(field).chars().take(length.parse().unwrap_or(usize::MAX)).collect()
            }
            None => shown(placeholder),
        })
    }

    /// What to do about an object that something else works on.
    pub fn busy_hint(&self, address: &Address) -> String {
        fill(self.busy, &|_| address.name().to_owned())
    }

    /// Whether it has a field of this name, or fields below it.
    pub fn has_field(&self, path: &FieldPath) -> bool {
        let fits = |field: &'static FieldRule| {
            let mut own = field.path.split('.');
            path.keys().iter().all(|key| own.next().is_some_and(|part| part == "*" || part == key))
        };
        self.all_fields().any(fits) || self.kind().rules().knows(path)
    }

    /// The names of its fields, with keys of `like` where any name can stand.
    pub fn fields_like(&self, like: &FieldPath) -> Vec<String> {
        let filled = |field: &'static FieldRule| {
            let parts = field.path.split('.').enumerate();
            let parts = parts.map(|(at, part)| match like.keys().get(at) {
                Some(key) if part == "*" => key.as_str(),
                _ => part,
            });
            parts.collect::<Vec<_>>().join(".")
        };
        self.all_fields().map(filled).collect()
    }

    /// The field that holds the ownership mark.
    pub fn mark_field(&self) -> Option<&'static str> {
        self.field_for(Purpose::Mark)
    }

    /// The field that serves a purpose, at the top of the spec.
    pub fn field_for(&self, purpose: Purpose) -> Option<&'static str> {
        self.all_fields().find(|field| field.purpose == Some(purpose)).map(|field| field.path)
    }

    /// What a spec says in the field that serves a purpose.
    pub fn value_for<'s>(&self, purpose: Purpose, spec: &'s Spec) -> Option<&'s Value> {
        spec.get(self.field_for(purpose)?)
    }

    /// Whether what is there already can be taken over by the source.
    pub fn is_adoptable(&self) -> bool {
        self.field_for(Purpose::Adopt).is_some()
    }

    /// The command that adopts the object that a spec names.
    pub fn adopt_command(&self, address: &Address, spec: &Spec) -> Option<String> {
        match spec.get(self.adopted_by?)? {
            Value::Int(number) => Some(format!("strata adopt {address}={number}")),
            Value::Text(name) => Some(format!("strata adopt {address}={name}")),
            _ => None,
        }
    }

    /// Whether later looks tell by facts that an object is the same one, as of guests: it is taken over and kept with these.
    pub fn is_proven_by_facts(&self) -> bool {
        !self.proof_facts.is_empty()
    }

    /// Whether others of its group wait for it.
    pub fn is_gate(&self) -> bool {
        matches!(self.rollout, Rollout::Gate)
    }
}

impl Shown {
    /// What most kinds are shown like.
    pub const USUAL: Self = Self {
        in_headline: &[],
        terse: false,
        summarised: None,
        removal: deleted,
        removing: ("destroying", "destroyed"),
        shape: Shape::Plain,
        first: &[],
        parts: &[],
        reported: &[],
    };

    /// Where a field comes among others: those that are named, then the rest.
    pub fn place(&self, field: &str) -> usize {
        self.first.iter().position(|known| *known == field).unwrap_or(self.first.len())
    }

    /// The same within a group.
    pub fn part_place(&self, field: &str) -> usize {
        self.parts.iter().position(|(known, _)| *known == field).unwrap_or(self.parts.len())
    }

    /// How a field of a group is said.
    pub fn said(&self, field: &str) -> Said {
        self.parts.iter().find(|(known, _)| *known == field).map_or(Said::Named, |(_, said)| *said)
    }
}

/// Puts values where a text has `{…}`.
pub fn fill(template: &str, value: &dyn Fn(&str) -> String) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        match after.split_once('}') {
            Some((placeholder, more)) => {
                text.push_str(&value(placeholder));
                rest = more;
            }
            None => {
                text.push('{');
                rest = after;
            }
        }
    }
    text.push_str(rest);
    text
}

/// Declares a kind: its name, what it is like, and every field with its type, what a change of it asks for, and a line of help. In the
/// module of the kind this makes `KIND`, its name for comparisons, and `TABLE`, which its provider registers. What kinds have in common
/// stands behind `..`, as in any struct.
///
/// A field is `"path": Type => Effect [options];` with its help above. The path may have `*` for any name. The types are those of
/// [`crate::FieldType`], the effects of a change those of [`crate::ChangeEffect`]; a field without an effect does not compile. The options are
/// the methods of [`crate::FieldRule`]: `remote("key")` (what the remote calls it), a default (`off_by_default`, `default_int(512)`, …), a unit
/// (`bytes`, `mebibytes`), `write_only` (a secret, or what cannot be read back), `set` (order means nothing), `slot` (comes and goes as a whole),
/// `because("…")` (why a change replaces the object), `no_tofu("…")` (why OpenTofu cannot say it), and what the engine has to know of it
/// (`unfelt`, `read_at_boot`, `volume`, `purpose(…)`).
///
/// ```
/// use strata_resource::kind;
///
/// kind! {
///     /// A shelf of books.
///     "shelf" {
///         called: "shelf {shelf}",
///         identity: &["shelf"],
///         at_once: true,
///     }
///     /// its name
///     "shelf": Text => InPlace [remote("shelfid")];
///     /// how many books fit
///     "width": Int => Replace [remote("width"), because("a shelf cannot be widened")];
///     /// who may take books
///     "readers": List => InPlace [remote("groups"), set];
///     /// a light, by its slot
///     "lights.*": Map => InPlace [slot];
///     /// how bright it is
///     "lights.*.lumen": Int => InPlace [default_int(400)];
/// }
///
/// use strata_resource::{ChangeEffect, FieldPath, Spec, diff_specs, register_kinds};
///
/// // Its provider makes it known; diff, plans and views go by the table.
/// register_kinds(&[&TABLE]);
/// let spec = |json: &str| -> Spec { serde_json::from_str(json).unwrap() };
/// let (wanted, live) = (spec(r#"{"shelf": "a", "width": 90}"#), spec(r#"{"shelf": "a", "width": 60}"#));
/// let changes = diff_specs(KIND.rules(), &wanted, None, &live).changes;
/// assert_eq!(changes[0].path.to_string(), "width");
/// assert_eq!(KIND.rules().rule(&changes[0].path).effect, ChangeEffect::Replace);
/// assert_eq!(TABLE.call(&wanted), "shelf a");
/// assert!(KIND.rules().knows(&FieldPath::dotted("lights.left.lumen")));
/// ```
#[macro_export]
macro_rules! kind {
    (
        $(#[doc = $summary:literal])+
        $name:literal { $($property:ident: $value:expr,)* $(.. $base:expr)? }
        $($fields:tt)*
    ) => {
        /// Its name, for comparisons.
        pub const KIND: $crate::Kind = $crate::Kind::named($name);

        $(#[doc = $summary])+
        pub static TABLE: $crate::KindTable = $crate::KindTable {
            name: $name,
            summary: concat!($($summary),+),
            fields: $crate::fields!($($fields)*),
            $($property: $value,)*
            ..$crate::kind!(@base $($base)?)
        };
    };
    (@base) => { $crate::KindTable::new("", "", &[]) };
    (@base $base:expr) => { $base };
}

/// The fields of a kind, as [`kind!`] takes them, where several kinds share them.
#[macro_export]
macro_rules! fields {
    ($(
        $(#[doc = $help:literal])+
        $path:literal: $type:ident => $effect:ident $([$($option:ident $(($argument:expr))?),* $(,)?])?;
    )*) => {
        &[$(
            $crate::FieldRule::new(
                $path,
                $crate::FieldType::$type,
                $crate::ChangeEffect::$effect,
                concat!($($help),+),
            )$($(.$option($($argument)?))*)?
        ),*]
    };
}
