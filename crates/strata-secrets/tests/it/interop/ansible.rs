//! Vaults of `ansible-vault`.

use strata_secret::{SecretBytes, SecretString};
use strata_secrets::vault::{self, Passwords, VaultPassword};

use super::World;
use crate::generate::Generator;
use crate::keys::random;

fn ansible(world: &World, arguments: &[&str]) -> Result<Vec<u8>, String> {
    world.run("STRATA_ANSIBLE_VAULT", "ansible-vault", arguments, &[("LC_ALL", "C.UTF-8")])
}

fn world() -> World {
    let world = World::new();
    world.write("pass.txt", b"first password\n");
    world.write("prod.txt", "zweites Paßwort\n".as_bytes());
    world
}

fn password(id: Option<&str>) -> VaultPassword {
    let text = if id.is_some() { "zweites Paßwort" } else { "first password" };
    VaultPassword::new(id, SecretString::from(text)).expect("a good id")
}

fn passwords() -> Passwords {
    Passwords::given(vec![password(None), password(Some("prod"))])
}

#[test]
#[ignore = "needs ansible-vault: just interop ansible-vault"]
fn vaults_go_both_ways() {
    let world = world();
    for seed in 0..4 {
        let plain = Generator::new(seed).yaml();
        for (id, option) in
            [(None, "--vault-password-file=pass.txt"), (Some("prod"), "--vault-id=prod@prod.txt")]
        {
            let ours = vault::encrypt(&SecretBytes::new(plain.clone()), &password(id), &mut random(seed))
                .expect("encrypted");
            world.write("ours.yaml", ours.as_bytes());
            let viewed = ansible(&world, &["view", option, "ours.yaml"]).expect("viewed");
            assert_eq!(String::from_utf8_lossy(&viewed).trim_end(), plain.trim_end());
            world.write("theirs.yaml", plain.as_bytes());
            ansible(&world, &["encrypt", option, "theirs.yaml"]).expect("encrypted");
            let opened = vault::open(&world.read("theirs.yaml"), &passwords()).expect("opened");
            assert_eq!(opened.plaintext().expose(), plain.as_bytes());
            assert_eq!(opened.id(), id);
            let edited = opened
                .edit(&SecretBytes::new("x: y\n"), &mut random(seed))
                .expect("edited")
                .expect("a change");
            world.write("edited.yaml", edited.as_bytes());
            assert_eq!(ansible(&world, &["view", option, "edited.yaml"]).expect("viewed"), b"x: y\n");
        }
    }
}

#[test]
#[ignore = "needs ansible-vault: just interop ansible-vault"]
fn rekeyed_vaults_go_both_ways() {
    let world = world();
    let ours =
        vault::encrypt(&SecretBytes::new("a: b\n"), &password(None), &mut random(1)).expect("encrypted");
    let rekeyed = vault::rekey(ours.as_bytes(), &passwords(), &password(Some("prod")), &mut random(2))
        .expect("rekeyed");
    world.write("rekeyed.yaml", rekeyed.as_bytes());
    assert_eq!(
        ansible(&world, &["view", "--vault-id=prod@prod.txt", "rekeyed.yaml"]).expect("viewed"),
        b"a: b\n"
    );
    world.write("theirs.yaml", ours.as_bytes());
    let options = ["rekey", "--vault-password-file=pass.txt", "--new-vault-id=prod@prod.txt", "theirs.yaml"];
    ansible(&world, &options).expect("rekeyed");
    let opened = vault::open(&world.read("theirs.yaml"), &passwords()).expect("opened");
    assert_eq!(opened.plaintext().expose(), b"a: b\n");
    assert_eq!(opened.id(), Some("prod"));
}

#[test]
#[ignore = "needs ansible-vault: just interop ansible-vault"]
fn single_values_go_both_ways() {
    let world = world();
    let options = ["encrypt_string", "--vault-password-file=pass.txt", "--name", "token", "a: secret #1"];
    let theirs = String::from_utf8(ansible(&world, &options).expect("encrypted")).expect("UTF-8");
    let file = format!("host: db\n{}\nlast: 1\n", theirs.trim_end());
    assert_eq!(vault::encrypted_names(&file).expect("YAML"), [["token"]]);
    let clear = vault::decrypt_values(&file, &passwords()).expect("opened");
    assert_eq!(clear.expose().trim_end(), "host: db\ntoken: \"a: secret #1\"\nlast: 1");

    let ours = vault::encrypt_value("token: a secret\n", &["token"], &password(None), &mut random(3))
        .expect("encrypted");
    let lines: String = ours.lines().skip(1).map(|line| format!("{}\n", line.trim())).collect();
    world.write("value.vault", lines.as_bytes());
    let opened = ansible(&world, &["view", "--vault-password-file=pass.txt", "value.vault"]).expect("viewed");
    assert_eq!(String::from_utf8_lossy(&opened).trim_end(), "a secret");
}
