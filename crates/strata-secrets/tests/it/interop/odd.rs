//! Documents that are odd, but that someone has.

use strata_secret::SecretBytes;
use strata_secrets::sops::{self, Format, SopsFile};

use super::{World, settings};
use crate::keys::{FIRST, NOW, random};

const DOCUMENTS: &[&str] = &[
    "base: &b\n  k: v\nm:\n  <<: *b\n  z: 1\n",
    "a: !!float 5\nb: !foo bar\nc: !!binary aGk=\nd: !!str 5\ne: 0x10\n",
    "{a: 1, b: [x, y]}\n",
    "a: {}\nb: []\nc:\nd: ~\n",
    "? a b\n: c\n\"q\\nz\": 1\n",
    "a: 1\r\nb: |\r\n  x\r\n  y\r\nc: 2 # c\r\n",
    "\u{feff}a: 1\n",
    "%YAML 1.1\n---\na: 1\n...\n---\nb: 2\n...\n",
    "--- # top\na: 1\n--- # next\nb: 2\n",
    "a: 1",
    "a: 1\n\n\n",
    "a:\n- b:\n  - c\n  -\n    d: e\n-\n  - x\n",
    "a: plain\n  over\n\n  lines\nb: \"double\n  over\n\n  lines \\\n  escaped\"\nc: 'single\n\n  over'\n",
    "a: |2\n    two more\n  base\nb: >-\n\n\n  late\n\n   more\n  end\nc: |+\n\nd: |\n\ne: end\n",
    "a: [1, # one\n  2 # two\n  ] # end\nb: {x: 1, # one\n  # own\n  y: 2}\n",
    "long: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx xxxxxx\n",
    "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk: v\n",
    "\"\": empty key\n\" \": blank\n'a: b': c\n\"#\": d\n\"[\": e\n'-': f\n'?': g\n\"\\u2028\": h\n",
    "a: \"\\x85\"\nb: \"\\u2029x\"\nc: \"\\uFEFF\"\nd: \"\\r\\n\"\ne: \"x\\ty\"\nf: \"\\\\\"\n",
    "a:\n    - - - deep\n      - b\n    - [c, [d]]\n    - {e: {f: g}}\n",
    "a: &x 1\nb: *x\nc: [*x, *x]\nd: &y {e: *x}\nf: *y\n",
    "t: 2026-01-02T03:04:05Z\nu: 2026-01-02 03:04:05\nv: 2026-1-2\nw: '2026-01-02'\n",
    "# only\n# comments\na: 1\n# at\n\n# the end\n",
    "a:\n    b:\n        k: v\n        # one\n\n        # two\n\n        # three\n    # four\n\n    # five\nz: 1\n",
    "a:\n    b:\n        k: v\n        # one\n\n        # two\nz: 1\n",
    "a:\n  # nothing but a comment\nb:\n  c: 1\n",
    "x: \"ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]\"\n",
    "# ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:comment]\na: 1\n",
    "a: 1e1000\nb: 1_0\nc: 0b2\nd: .5_5\ne: +1\nf: 1.\ng: -.inf\n",
];

const OTHERS: &[(&str, &str)] = &[
    ("a.ini", "a=1\n"),
    ("a.ini", "[s]\na = 1\nb: 2\n\n\n[t]\n"),
    ("a.ini", "[s]\nk = 'q'\nl = \"x\nm = \"a\"b\"\n"),
    ("a.ini", "; top\n[s] ; beside\nk=v\n"),
    ("a.ini", "[s]\n# c1\nk=v # c2\n; trailing\n"),
    ("a.ini", "[a]\n[b]\n\n[a]\nx=1\n[DEFAULT]\ny=2\n"),
    ("a.ini", "k = a \\\n  b\nl = `a\nb`\n\"odd key\" = 1\n`x=y` = 2\n"),
    ("a.ini", "no value\n"),
    ("a.env", "A=1\nB=\n\n#c\n# d\nexport C=x y\n D = e\nE='q'\n"),
    ("a.env", "A=1\r\nB=2\r\n"),
    ("a.env", "A"),
    ("a.env", "A=\\n\\n\n"),
    ("a.json", "{}"),
    (
        "a.json",
        "  {\"a\":{\"b\":[[],{},[1,2.50,-0,1e2,1E-7,12345678901234567890]]},\"\":\"\",\"u\":\"\\u00fc\\ud83d\\ude00\\/\"}  ",
    ),
    ("a.json", "[1]"),
    ("a.json", "{\"a\": \"<>&\\u2028\"}"),
    ("a.txt", ""),
    ("a.txt", "{\"data\": 1}"),
];

#[test]
#[ignore = "needs sops: just interop sops"]
fn odd_documents_go_both_ways() {
    let yaml = DOCUMENTS.iter().map(|plain| ("plain.yaml", *plain));
    for (index, (name, plain)) in yaml.chain(OTHERS.iter().copied()).enumerate() {
        let world = World::new();
        let format = Format::of(name.as_ref());
        let file = world.write(name, plain.as_bytes());
        let theirs = world.sops(&["encrypt", "--age", FIRST.recipient], &file);
        let ours = sops::encrypt(&SecretBytes::new(plain), format, &settings(), NOW, &mut random(1));
        let (theirs, ours) = match (theirs, ours) {
            (Ok(theirs), Ok(ours)) => (theirs, ours),
            (Err(_), Err(_)) => continue,
            (Ok(_), Err(error)) => panic!("{index}: only they can encrypt it: {error}\n{plain}"),
            (Err(error), Ok(_)) => panic!("{index}: only we can encrypt it: {error}\n{plain}"),
        };
        let values = |sealed: &[u8]| {
            let open = SopsFile::parse(sealed, format).and_then(|file| file.open(&FIRST.identities()));
            let open = open.unwrap_or_else(|error| panic!("{index}: {error}\n{plain}"));
            open.plaintext().unwrap_or_else(|error| panic!("{index}: {error}\n{plain}"));
            let values = open.values().into_iter().map(|(path, value)| (path, value.expose().to_vec()));
            values.collect::<Vec<_>>()
        };
        assert_eq!(values(&theirs), values(&ours), "{index}\n{plain}");
        let (ours, theirs) =
            (world.write(&format!("ours-{name}"), &ours), world.write(&format!("theirs-{name}"), &theirs));
        let opened =
            world.sops(&["decrypt"], &ours).unwrap_or_else(|error| panic!("{index}: {error}\n{plain}"));
        let expected = world.sops(&["decrypt"], &theirs).expect("their own");
        assert_eq!(String::from_utf8_lossy(&opened), String::from_utf8_lossy(&expected), "{index}\n{plain}");
    }
}
