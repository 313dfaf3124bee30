//! What must be refused, and then has changed nothing.

use super::changes::{TALOS, at};
use super::{APPLY, History, Next};
use crate::cluster::lab::FILE;

const BUNDLE: &str = "clusters/lab/talos.sops.yaml";

impl History {
    /// Runs that are refused with one of these codes, and have changed no machine, no VM and no file of the keys.
    #[track_caller]
    pub(super) fn assert_refused(&mut self, runs: &[&[&str]], codes: &[i32]) {
        let seen = |history: &Self| (history.lab.machines(), history.lab.talos()["reboots"].clone());
        let before = seen(self);
        for arguments in runs {
            let output = self.lab.run(arguments);
            let told = format!("{}\n{arguments:?}\n{}", self.told, output.all());
            assert!(codes.contains(&output.code), "{told}");
            assert!(output.all().contains("hint"), "it says what to do: {told}");
            assert!(seen(self) == before, "it changed something: {told}");
            self.counted.refusals += 1;
        }
        self.assert_invariants();
    }

    /// A field that a running cluster cannot change.
    pub(super) fn asks_the_impossible(&mut self) -> Next {
        let kubernetes = format!("kubernetes: {{version: {}", self.shape.kubernetes);
        let disk = "installDisk: /dev/sda";
        let count = format!("controlPlane: {{count: {}", self.shape.control_planes);
        let talos = format!("version: {}", self.shape.talos);
        let older = (at(&TALOS, &self.shape.talos) + 2) % TALOS.len();
        let impossible = [
            (kubernetes.as_str(), format!("{kubernetes}, podCidr: 10.200.0.0/16")),
            (&kubernetes, format!("{kubernetes}, serviceCidr: 10.112.0.0/16")),
            (&kubernetes, format!("{kubernetes}, dnsDomain: other.local")),
            (&kubernetes, format!("{kubernetes}, cni: none")),
            (&kubernetes, format!("{kubernetes}, kubeProxy: false")),
            (disk, format!("{disk}\n    encryptDisk: true")),
            (disk, format!("{disk}\n    secureBoot: true")),
            (disk, format!("{disk}\n    arch: arm64")),
            (disk, format!("{disk}\n    clusterName: other")),
            (disk, format!("{disk}\n    clusterName: other\n  naming: 'lab-{{role}}-{{n}}'")),
            ("idBase: 800", "idBase: 900".to_owned()),
            (&count, "controlPlane: {count: 2".to_owned()),
            (&talos, format!("version: {}", TALOS[older])),
        ];
        let (from, to) = self.dice.one_of(&impossible);
        self.tell(&format!("\n  {to:?} in the place of {from:?}"));
        self.lab.repo.edit(FILE, from, &to);
        // A pair of versions that does not go together is told before anything is looked at.
        self.assert_refused(&[&["plan"], &APPLY], &[1, 3]);
        self.write_source();
        self.lab.assert_settled(&self.told);
        Next::Nothing
    }

    /// `cp -r clusters/lab clusters/lab2`, with addresses and VMIDs of its own and the keys of the first one.
    pub(super) fn copies_the_folder(&mut self) -> Next {
        self.tell("\n  the folder is copied");
        let text = self.lab.repo.read(FILE);
        let text = text.replace("name: lab", "name: lab2").replace("192.0.2.4", "192.0.2.14");
        let text = text.replace("192.0.2.5", "192.0.2.15").replace("192.0.2.6", "192.0.2.16");
        self.lab.repo.write("clusters/lab2/cluster.yaml", &text.replace("idBase: 800", "idBase: 850"));
        self.lab.repo.write("clusters/lab2/talos.sops.yaml", &self.lab.repo.read(BUNDLE));
        self.assert_refused(&[&["validate"], &["plan"], &APPLY, &["apply", "lab2", "--yes"]], &[1, 3]);
        std::fs::remove_dir_all(self.lab.repo.file("clusters/lab2")).unwrap();
        self.lab.assert_settled(&self.told);
        Next::Nothing
    }

    pub(super) fn loses_the_keys(&mut self) -> Next {
        self.tell("\n  the keys are not there");
        let bundle = self.lab.repo.read(BUNDLE);
        self.lab.repo.remove(BUNDLE);
        self.assert_refused(&[&["plan"], &APPLY, &["apply", "--yes", "--new-cluster"]], &[3]);
        assert!(!self.lab.repo.file(BUNDLE).exists(), "{}\nnew keys were made", self.told);
        self.lab.repo.write(BUNDLE, &bundle);
        self.lab.assert_settled(&self.told);
        Next::Nothing
    }
}
