//! Key groups, SSH keys, and changes of keys, both ways.

use strata_secrets::Identities;
use strata_secrets::sops::{ForeignKeys, Format, Settings, SopsFile};

use super::{World, open, seal, settings};
use crate::keys::{FIRST, NOW, SECOND, SSH, random};

const YAML: &str = "# a comment\na: secret\nb: [1, 2]\n";

fn both() -> Identities {
    Identities::parse(&format!("{}\n{}\n", FIRST.secret, SECOND.secret).into()).expect("two keys")
}

#[test]
#[ignore = "needs sops: just interop sops"]
fn shared_keys_go_both_ways() {
    let world = World::new();
    let groups = vec![vec![FIRST.recipient.to_owned()], vec![SECOND.recipient.to_owned()]];
    let settings = Settings { groups, threshold: Some(2), ..settings() };
    let ours = world.write("ours.yaml", &seal(YAML.as_bytes(), Format::Yaml, &settings));
    let opened = world.sops_with("both.txt", &["decrypt"], &ours).expect("both keys");
    assert!(String::from_utf8_lossy(&opened).contains("a: secret"));
    world.sops(&["decrypt"], &ours).expect_err("one key is not enough");

    let config = format!(
        "creation_rules:\n  - shamir_threshold: 2\n    key_groups:\n      - age: [{}]\n      - age: [{}]\n",
        FIRST.recipient, SECOND.recipient
    );
    let config = world.write(".sops.yaml", config.as_bytes());
    let config = config.to_str().expect("UTF-8");
    let plain = world.write("plain.yaml", YAML.as_bytes());
    let theirs = world.sops(&["--config", config, "encrypt"], &plain).expect("encrypted");
    let parse = || SopsFile::parse(&theirs, Format::Yaml).expect("a file");
    assert_eq!(parse().settings(), settings);
    let opened = parse().open(&both()).expect("both keys");
    assert_eq!(opened.get(&["a"]).expect("there").expose(), "secret");
    parse().open(&FIRST.identities()).err().expect("one key is not enough");
}

#[test]
#[ignore = "needs sops: just interop sops"]
fn ssh_keys_go_both_ways() {
    let world = World::new();
    world.write("id_ed25519", SSH.secret.as_bytes());
    let identities = Identities::parse(&SSH.secret.into()).expect("an SSH key");
    let settings = Settings { groups: vec![vec![SSH.recipient.to_owned()]], ..settings() };
    let ours = world.write("ours.yaml", &seal(YAML.as_bytes(), Format::Yaml, &settings));
    let key = world.path("id_ed25519").display().to_string();
    let run = |arguments: &[&str], file: &str| {
        let arguments: Vec<&str> = arguments.iter().copied().chain([file]).collect();
        world.run("STRATA_SOPS", "sops", &arguments, &[("SOPS_AGE_SSH_PRIVATE_KEY_FILE", &key)])
    };
    assert!(
        String::from_utf8_lossy(&run(&["decrypt"], ours.to_str().expect("UTF-8")).expect("opened"))
            .contains("secret")
    );
    let plain = world.write("plain.yaml", YAML.as_bytes());
    let theirs =
        run(&["encrypt", "--age", SSH.recipient], plain.to_str().expect("UTF-8")).expect("encrypted");
    let opened =
        SopsFile::parse(&theirs, Format::Yaml).and_then(|file| file.open(&identities)).expect("opened");
    assert_eq!(opened.get(&["a"]).expect("there").expose(), "secret");
}

#[test]
#[ignore = "needs sops: just interop sops"]
fn changed_and_rotated_keys_are_good_for_the_other_program() {
    let world = World::new();
    let sealed = seal(YAML.as_bytes(), Format::Yaml, &settings());
    let groups = vec![vec![FIRST.recipient.to_owned(), SECOND.recipient.to_owned()]];
    let shared = open(&sealed, Format::Yaml)
        .update_keys(&groups, None, &mut random(8))
        .expect("updated")
        .expect("a change");
    world.write("second.txt", format!("{}\n", SECOND.secret).as_bytes());
    let file = world.write("shared.yaml", &shared);
    world.sops_with("second.txt", &["decrypt"], &file).expect("the new key");

    let only = vec![vec![SECOND.recipient.to_owned()]];
    let rotated =
        open(&shared, Format::Yaml).rotate(Some((&only, None)), ForeignKeys::Keep, NOW, &mut random(9));
    let file = world.write("rotated.yaml", &rotated.expect("rotated"));
    world.sops_with("second.txt", &["decrypt"], &file).expect("the new key");
    world.sops(&["decrypt"], &file).expect_err("the old key");

    let file = world.write("theirs.yaml", &sealed);
    world.sops(&["rotate", "-i", "--add-age", SECOND.recipient], &file).expect("rotated");
    let theirs = SopsFile::parse(&world.read("theirs.yaml"), Format::Yaml).expect("a file");
    assert_eq!(theirs.recipients(), [[FIRST.recipient, SECOND.recipient]]);
    assert_eq!(
        theirs.open(&SECOND.identities()).expect("opened").get(&["a"]).expect("there").expose(),
        "secret"
    );
}
