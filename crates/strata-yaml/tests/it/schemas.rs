//! The schema accepts what the decoder accepts, and refuses what it refuses.

use insta::assert_snapshot;
use serde_json::Value as Json;
use strata_yaml::{Kind, Node, ScalarKind, schema};

use crate::decoding::Machines;
use crate::{read, tree};

/// The tree as a JSON validator sees it.
fn json(node: &Node) -> Json {
    match &node.kind {
        Kind::List(items) => items.iter().map(json).collect(),
        Kind::Mapping(mapping) => Json::Object(
            mapping.entries.iter().map(|entry| (entry.key.value.clone(), json(&entry.value))).collect(),
        ),
        Kind::Scalar(scalar) => match scalar.kind() {
            ScalarKind::Null => Json::Null,
            ScalarKind::Bool(value) => value.into(),
            ScalarKind::Integer(Some(value)) => value.into(),
            ScalarKind::Float => scalar.text.parse::<f64>().expect("a number").into(),
            _ => scalar.text.clone().into(),
        },
    }
}

#[test]
fn decoder_and_schema_agree() {
    let schema = schema::<Machines>("machines");
    let validator = jsonschema::validator_for(&schema).unwrap();
    let cases = [
        ("{}", true),
        ("vms:", true),
        ("vms: {web: {vmId: 100}}", true),
        ("vms: {web: {vmId: 100, cores: {env: CORES}, iso: {file: motd}}}", true),
        ("vms: {web: {vmId: 100, password: {secret: a}}}", true),
        ("vms: {web: {vmId: 100, disks: {scsi0: 5, scsi1: {size: 5}}, tags:}}", true),
        ("vms: {web: {vmId: 100, ram: 512, options: {a: 1, b: x, c: true}}}", true),
        ("x-mine: {a: [1]}", true),
        ("y-mine: {a: [1]}", false),
        ("vms: {web: {}}", false),
        ("vms: {web: }", false),
        ("vms: [web]", false),
        ("vms: {web: {vmId: 99}}", false),
        ("vms: {web: {vmId: '100'}}", false),
        ("vms: {web: {vmId: 100, cores: {secret: a}}}", false),
        ("vms: {web: {vmId: 100, cores: 129}}", false),
        ("vms: {web: {vmId: 100, limit: 129.5}}", false),
        ("vms: {web: {vmId: 100, ram: 512, memory: 512}}", false),
        ("vms: {web: {vmId: 100, iso: a, template: b}}", false),
        ("vms: {web: {vmId: 100, bios: uefi}}", false),
        ("vms: {web: {vmId: 100, tags: a}}", false),
        ("vms: {web: {vmId: 100, tags: [1]}}", false),
        ("vms: {web: {vmId: 100, disks: {scsi0: {}}}}", false),
        ("vms: {web: {vmId: 100, disks: {scsi0: {size: 1, ssd: yes}}}}", false),
        ("vms: {web: {vmId: 100, options: {a: [1]}}}", false),
        ("vms: {web: {vmId: 100, options: {a: }}}", false),
        ("vms: {web: {vmId: 100, cor: 1}}", false),
        ("- a", false),
    ];
    for (text, fits) in cases {
        let mistakes = read::<Machines>(text).1;
        assert_eq!(mistakes.is_empty(), fits, "decoder: {text}\n{mistakes}");
        let document = json(&tree(text).0.unwrap());
        assert_eq!(validator.is_valid(&document), fits, "schema: {text}");
    }
}

#[test]
fn a_field_carries_its_description() {
    let schema = schema::<Machines>("machines");
    assert_snapshot!(serde_json::to_string_pretty(&schema["definitions"]["Disk"]).unwrap(), @r##"
    {
      "type": "object",
      "description": "A disk.",
      "properties": {
        "size": {
          "anyOf": [
            {
              "type": "integer",
              "minimum": 0,
              "maximum": 4294967295
            },
            {
              "$ref": "#/definitions/outside"
            }
          ],
          "description": "in GiB"
        },
        "ssd": {
          "anyOf": [
            {
              "type": "boolean"
            },
            {
              "$ref": "#/definitions/outside"
            }
          ],
          "default": false
        }
      },
      "required": [
        "size"
      ],
      "additionalProperties": false
    }
    "##);
    assert_snapshot!(schema["definitions"]["Machine"]["properties"]["vmId"], @r##"{"anyOf":[{"type":"integer","minimum":100,"maximum":999999999},{"$ref":"#/definitions/outside"}],"description":"its number in the cluster"}"##);
}

strata_yaml::record! {
    /// Changes to machines.
    pub struct Changes {
        "machines" machines: Option<strata_yaml::Partial<Machines>>;
    }
}

#[test]
fn an_overlay_may_lack_anything_and_takes_keys_away() {
    let schema = schema::<Changes>("changes");
    let validator = jsonschema::validator_for(&schema).unwrap();
    let cases = [
        ("machines: {vms: {web: {cores: 4}}}", true),
        ("machines: {vms: {web: {vmId: null, disks: {scsi0: null}}, db: null}}", true),
        ("machines:", true),
        ("machines: {vms: {web: {disks: {scsi0: {ssd: true}}}}}", true),
        ("machines: {vms: {web: {cor: 4}}}", false),
        ("machines: {vms: {web: {cores: x}}}", false),
        ("machines: {vms: {web: {iso: a, template: b}}}", false),
        ("machines: {vms: {web: {tags: [null]}}}", false),
    ];
    for (text, fits) in cases {
        let mistakes = read::<Changes>(text).1;
        assert_eq!(mistakes.is_empty(), fits, "decoder: {text}\n{mistakes}");
        let document = json(&tree(text).0.unwrap());
        assert_eq!(validator.is_valid(&document), fits, "schema: {text}");
    }
}
