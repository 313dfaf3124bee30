//! Another environment of the same cluster: keys, machines and an etcd of its own, whatever happens to the first one.

use super::invariants::SIBLING;
use super::{APPLY, History, Next};

/// One control plane, at other addresses.
const OVERLAY: &str = r"
clusters:
  lab:
    cluster:
      talos: {clusterName: lab-prod}
      network: {vip: 192.0.2.140}
      topology:
        controlPlane: {count: 1, addresses: 192.0.2.141-192.0.2.149}
        workers: {count: 0, addresses: 192.0.2.151-192.0.2.159}
    proxmox: {vm: {idBase: 850}}
";
const ENVIRONMENT: [&str; 2] = ["-e", "prod"];

fn in_sibling<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&ENVIRONMENT[..], arguments].concat()
}

impl History {
    /// It is begun, or it ends.
    pub(super) fn has_another_environment(&mut self) -> Next {
        self.lab.repo.write("environments/prod.yaml", OVERLAY);
        if self.sibling {
            self.tell("\n  the other environment ends");
            let output = self.lab.run(&in_sibling(&["destroy", "--yes"]));
            assert_eq!(output.code, 0, "{}\n{}", self.told, output.all());
            (self.sibling, self.sibling_begins) = (false, false);
        } else {
            self.tell("\n  another environment begins");
            self.siblings_begun += 1;
            // A run that is to be killed may come to its end.
            self.sibling_begins = true;
            self.killed(&in_sibling(&APPLY));
            let output = self.lab.run(&in_sibling(&APPLY));
            assert_eq!(output.code, 0, "{}\n{}", self.told, output.all());
            self.lab.run(&in_sibling(&["plan", "--detailed-exitcode"])).ok();
            self.write_down(SIBLING, "sibling");
            self.sibling = true;
            self.takes_foreign_snapshot();
        }
        self.assert_invariants();
        self.lab.assert_settled(&self.told);
        Next::Nothing
    }

    /// A snapshot of the other environment is one of another cluster.
    fn takes_foreign_snapshot(&mut self) {
        let taken = self.lab.run(&in_sibling(&["talos", "snapshot", "lab"]));
        assert_eq!(taken.code, 0, "{}\n{}", self.told, taken.all());
        let known = self.snapshots();
        let folder = std::fs::read_dir(self.lab.repo.file(".strata/snapshots")).unwrap();
        let mut taken: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
        taken.sort_by_key(|path| path.metadata().and_then(|one| one.modified()).ok());
        let newest = taken.pop().unwrap();
        let foreign = self.lab.repo.file("foreign.age");
        std::fs::rename(&newest, &foreign).unwrap();
        assert!(known.len() <= taken.len() + 1, "{}", self.told);
        self.foreign = Some(foreign.display().to_string());
    }
}
