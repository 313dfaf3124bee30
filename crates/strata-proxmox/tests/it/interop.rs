//! Our ISO in the eyes of programs that we did not write, as far as they are installed.

use std::collections::BTreeMap;
use std::process::Command;

/// What a program says; none if it is not installed.
fn says(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn other_programs_read_our_iso() {
    let files: BTreeMap<String, Vec<u8>> = [
        ("user-data", "#cloud-config\nhostname: web-1\n".to_owned()),
        ("meta-data", "instance-id: web-1\n".to_owned()),
        ("network-config", "x".repeat(5000)),
    ]
    .into_iter()
    .map(|(name, text)| (name.to_owned(), text.into_bytes()))
    .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cidata.iso");
    std::fs::write(&path, strata_proxmox::cidata::build(&files)).unwrap();
    let path = path.to_str().unwrap();

    if let Some(probe) = says("blkid", &["-p", "-o", "export", path]) {
        assert!(probe.contains("LABEL=cidata") && probe.contains("TYPE=iso9660"), "{probe}");
    }
    if let Some(listing) = says("isoinfo", &["-J", "-f", "-i", path]) {
        let mut names: Vec<&str> = listing.split_whitespace().collect();
        names.sort_unstable();
        assert_eq!(names, ["/meta-data", "/network-config", "/user-data"]);
    }
    let script = "import sys, pycdlib, io
iso = pycdlib.PyCdlib(); iso.open(sys.argv[1])
for child in iso.list_children(joliet_path='/'):
    name = child.file_identifier().decode('utf-16_be')
    if child.is_file():
        out = io.BytesIO(); iso.get_file_from_iso_fp(out, joliet_path='/' + name)
        print(name, len(out.getvalue()))";
    if let Some(listing) = says("python3", &["-c", script, path]) {
        assert_eq!(listing, "meta-data;1 19\nnetwork-config;1 5000\nuser-data;1 30\n");
    }
}
