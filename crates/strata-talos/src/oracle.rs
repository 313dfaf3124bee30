//! Random patches of every document, merged here and by a real `talosctl`: STRATA_TALOSCTL names it.

use std::path::Path;
use std::process::Command;

use strata_secret::SecretString;

use crate::contract::Contract;
use crate::document::plain_tree;
use crate::generate::{ConfigInput, Role, generate};
use crate::patch::Patch;
use crate::secrets::{SecretsBundle, ServiceAccountKey};
use crate::shape::{DocumentShape, Field, Leaf, Record, Shape, V1ALPHA1, tables};
use crate::tree::{Map, Value};
use crate::yaml::{read, write_all};

/// How many configurations are compared in one run.
const CASES: u64 = 300;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end.max(1)
    }

    fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

fn leaf(leaf: &Leaf, random: &mut Random) -> Value {
    let texts: &[&str] = match leaf {
        Leaf::Text | Leaf::Secret => {
            &["a", "b", "", "true", "1.50", "x: y", "two\nlines\n", " edge ", "0o17", "2026-11-15", "no", "#"]
        }
        Leaf::Bool => return Value::Bool(random.chance(50)),
        Leaf::Int { max, .. } => {
            return Value::Int(*random.pick(&[0, 1, 7, 100, *max.min(&i128::from(i32::MAX))]));
        }
        Leaf::Duration => &["5s", "1h", "90m", "0s", "1500ms"],
        Leaf::Url => {
            &["https://a.example:1/x", "http://b.example", "https://c.example/?q=1", "tcp://192.0.2.1:5"]
        }
        Leaf::Ip => &["192.0.2.1", "2001:db8::1", "2001:DB8:0::2"],
        Leaf::Cidr => &["192.0.2.0/24", "192.0.2.7/25", "2001:db8::/32"],
        Leaf::IpPort => &["192.0.2.1:80", "[2001:db8::1]:443"],
        Leaf::Mac => &["bc:24:11:00:00:01", "BC:24:11:00:00:02"],
        Leaf::Base64 => &["YQ==", "YWI="],
        Leaf::CertKey => return Value::map([("crt", Value::text("YQ==")), ("key", Value::text("Yg=="))]),
        Leaf::Cert => return Value::map([("crt", Value::text("YQ=="))]),
        Leaf::Key => return Value::map([("key", Value::text("Yg=="))]),
        Leaf::ByteSize => &["10GiB", "1024", "5 MB"],
        Leaf::Size => &["10GiB", "50%", "1024"],
        Leaf::DiskSize => &["10GB", "1GiB", "1500"],
        Leaf::SizeMatch => &[">= 1TB"],
        Leaf::Cel => &["disk.transport == 'nvme'", "true"],
        Leaf::Mode => return Value::Octal(*random.pick(&[0o644, 0o600, 0])),
        Leaf::PortRange => return random.pick(&[Value::from(80), Value::text("80-90")]).clone(),
        Leaf::Table => &["unspec", "123", "main"],
        Leaf::Choice(names) => {
            return Value::text(
                *random.pick(&names[usize::from(names[0].is_empty() || names[0].contains('('))..]),
            );
        }
    };
    Value::text(*random.pick(texts))
}

/// Keys have one type each, so that two of these can always be merged.
fn any(random: &mut Random, depth: usize) -> Value {
    let mut map = Map::new();
    if random.chance(60) {
        map.insert("number".to_owned(), Value::Int(random.below(3) as i128));
    }
    if random.chance(60) {
        map.insert("text".to_owned(), Value::text(*random.pick(&["", "x", "true"])));
    }
    if random.chance(40) {
        map.insert("flag".to_owned(), Value::Bool(random.chance(50)));
    }
    if random.chance(40) {
        map.insert("list".to_owned(), Value::List(vec![Value::from(1), Value::from("y")]));
    }
    if depth > 0 && random.chance(40) {
        map.insert("deeper".to_owned(), any(random, depth - 1));
    }
    Value::Map(map)
}

fn value(shape: &Shape, random: &mut Random, density: usize) -> Value {
    let few = random.below(3);
    match shape {
        Shape::Leaf(kind) => leaf(kind, random),
        Shape::Any { .. } => any(random, 2),
        Shape::Args => {
            let arg = |random: &mut Random| match random.below(3) {
                0 => Value::texts(["a", "b"]),
                _ => Value::text(*random.pick(&["1", "", "x=y"])),
            };
            Value::Map((0..few).map(|_| (random.pick(&["v", "w"]).to_string(), arg(random))).collect())
        }
        Shape::List { item, .. } => Value::List((0..few).map(|_| value(item, random, density)).collect()),
        Shape::Map(item) => {
            let entry = |random: &mut Random| {
                (random.pick(&["k", "l", "m"]).to_string(), value(item, random, density))
            };
            Value::Map((0..few).map(|_| entry(random)).collect())
        }
        Shape::Record(shape) => Value::Map(record(shape, random, density)),
    }
}

fn record(record: &Record, random: &mut Random, density: usize) -> Map {
    // Talos cannot merge two sizes to match, not even equal ones.
    let mergeable = |field: &Field| !matches!(field.shape, Shape::Leaf(Leaf::SizeMatch));
    let chosen = |field: &&Field| field.name != "name" && field.name != "version" && mergeable(field);
    let mut map = Map::new();
    for field in record.fields.iter().filter(chosen) {
        if random.chance(density) {
            map.insert(field.name.to_owned(), value(&field.shape, random, density));
        }
    }
    if record.field("name").is_some() {
        map.insert("name".to_owned(), Value::text(*random.pick(&["one", "two"])));
    }
    map
}

fn document(shape: &DocumentShape, random: &mut Random, density: usize) -> Value {
    let mut map = Map::new();
    if shape.kind == V1ALPHA1 {
        // The part that is given is never empty: a document needs something to be known by.
        for part in ["machine", "cluster"] {
            let field = shape.record.field(part).expect("a part");
            map.insert(part.to_owned(), value(&field.shape, random, density));
        }
        return Value::Map(map);
    }
    map.insert("apiVersion".to_owned(), Value::text("v1alpha1"));
    map.insert("kind".to_owned(), Value::text(shape.kind));
    map.extend(record(&shape.record, random, density));
    Value::Map(map)
}

/// A patch that deletes one thing, or tries to.
fn deletion(shape: &Shape, random: &mut Random) -> Value {
    let gone = || Value::map([("$patch", Value::text("delete"))]);
    if random.chance(25) {
        return gone();
    }
    match shape {
        Shape::Record(record) if !record.fields.is_empty() => {
            let field = random.pick(&record.fields);
            Value::map([(field.name, deletion(&field.shape, random))])
        }
        Shape::Map(item) => Value::map([(*random.pick(&["k", "l"]), deletion(item, random))]),
        Shape::Args => Value::map([(*random.pick(&["v", "w"]), gone())]),
        Shape::Any { .. } => Value::map([(*random.pick(&["text", "deeper", "list"]), gone())]),
        Shape::List { item, .. } => match &**item {
            Shape::Record(record) if !record.fields.is_empty() => {
                let field = random.pick(&record.fields);
                let value = value(&field.shape, random, 0);
                Value::List(vec![Value::map([(field.name, value), ("$patch", Value::text("delete"))])])
            }
            _ => gone(),
        },
        _ => gone(),
    }
}

struct Case {
    contract: Contract,
    patches: Vec<String>,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.next();
        let contract = *random.pick(&Contract::ALL);
        let fits = |shape: &&DocumentShape| (shape.kind == V1ALPHA1) == (contract < Contract::V1_12);
        let shapes: Vec<_> = tables().iter().filter(fits).collect();
        let kinds: Vec<_> = (0..5).map(|_| *random.pick(&shapes)).collect();
        let patches = (0..3).map(|_| {
            let mut documents: Vec<Value> = Vec::new();
            for kind in &kinds {
                let density = *random.pick(&[15, 40, 90]);
                documents.push(document(kind, &mut random, density));
                if kind.kind == V1ALPHA1 {
                    break;
                }
            }
            write_all(&documents).to_string()
        });
        let mut patches: Vec<String> = patches.collect();
        let shape = kinds[0];
        let mut map = Map::new();
        if shape.kind != V1ALPHA1 {
            map.insert("apiVersion".to_owned(), Value::text("v1alpha1"));
            map.insert("kind".to_owned(), Value::text(shape.kind));
        }
        if let Value::Map(fields) = deletion(&Shape::Record(shape.record.clone()), &mut random) {
            map.extend(fields);
        }
        if shape.named {
            map.insert("name".to_owned(), Value::text("one"));
        }
        if random.chance(50) {
            patches.push(write_all(&[Value::Map(map)]).to_string());
        }
        Self { contract, patches }
    }

    /// What is made here: the file, or why there is none.
    fn ours(&self, secrets: &SecretsBundle) -> Result<String, String> {
        let input = ConfigInput::new(self.contract, "c", "https://192.0.2.40:6443", "1.34.1");
        let mut config = generate(&input, secrets, Role::Worker).map_err(|error| error.to_string())?;
        for patch in &self.patches {
            let patch =
                Patch::parse(&SecretString::from(patch.as_str())).map_err(|error| error.to_string())?;
            config = patch.apply(config).map_err(|error| error.to_string())?;
        }
        Ok(config.to_yaml().expose().to_owned())
    }

    fn theirs(&self, talosctl: &str, directory: &Path) -> Result<String, String> {
        let mut command = Command::new(talosctl);
        command.args([
            "gen",
            "config",
            "c",
            "https://192.0.2.40:6443",
            "--with-docs=false",
            "--with-examples=false",
        ]);
        command.args(["--kubernetes-version", "1.34.1", "--talos-version", &self.contract.to_string()]);
        command.args(["--output-types", "worker", "--output", "-", "--with-secrets"]);
        command.arg(directory.join("secrets.yaml"));
        for (index, patch) in self.patches.iter().enumerate() {
            let path = directory.join(format!("{index}.yaml"));
            std::fs::write(&path, patch).expect("a file");
            command.arg("--config-patch-worker").arg(format!("@{}", path.display()));
        }
        let output = command.output().expect("talosctl runs");
        if output.status.success() {
            Ok(String::from_utf8(output.stdout).expect("UTF-8"))
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
}

fn trees(text: &str) -> Vec<Value> {
    read(text).unwrap_or_else(|error| panic!("{error}")).iter().map(plain_tree).collect()
}

#[test]
#[ignore = "needs talosctl: just interop talos"]
fn random_patches_are_merged_as_talosctl_merges_them() {
    let talosctl = std::env::var("STRATA_TALOSCTL").expect("STRATA_TALOSCTL is set");
    let directory = tempfile::tempdir().expect("a directory");
    let now = "2026-11-15T12:00:00Z".parse().expect("a time");
    let mut state = Random(77);
    let mut random =
        move |buffer: &mut [u8]| buffer.iter_mut().for_each(|byte| *byte = (state.next() >> 32) as u8);
    let secrets = SecretsBundle::generate(now, ServiceAccountKey::Ecdsa, &mut random)
        .unwrap_or_else(|error| panic!("{error}"));
    std::fs::write(directory.path().join("secrets.yaml"), secrets.to_yaml().expose()).expect("a file");
    let first = std::env::var("STRATA_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let (mut equal, mut refused, mut wrong) = (0, 0, Vec::new());
    for seed in first..first + CASES {
        let case = Case::new(seed);
        match (case.ours(&secrets), case.theirs(&talosctl, directory.path())) {
            (Ok(ours), Ok(theirs)) if ours == theirs || trees(&ours) == trees(&theirs) => equal += 1,
            (Err(_), Err(_)) => refused += 1,
            (ours, theirs) => wrong.push((seed, case, ours, theirs)),
        }
    }
    println!("{equal} equal, {refused} refused by both, {} wrong", wrong.len());
    for (seed, case, ours, theirs) in &wrong {
        println!("== seed {seed}, {}", case.contract);
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => {
                let differ =
                    ours.lines().zip(theirs.lines()).enumerate().find(|(_, (ours, theirs))| ours != theirs);
                println!("{differ:?}; {} and {} lines", ours.lines().count(), theirs.lines().count());
                if let Ok(directory) = std::env::var("STRATA_KEEP") {
                    std::fs::write(format!("{directory}/{seed}.ours"), ours).expect("a file");
                    std::fs::write(format!("{directory}/{seed}.theirs"), theirs).expect("a file");
                }
            }
            (ours, theirs) => println!("ours {:?}\ntheirs {:?}", ours.as_ref().err(), theirs.as_ref().err()),
        }
    }
    assert!(wrong.is_empty() && equal > 0);
}
