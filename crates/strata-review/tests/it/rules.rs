//! Rules in CEL over the document of a plan.

use serde_json::json;
use strata_review::finding::Severity;
use strata_review::rules::{check_document, unreadable};
use strata_source::Repository;
use strata_source::settings::review::PlanRule;
use strata_source::world::Memory;

fn rules(text: &str) -> Vec<PlanRule> {
    let settings = format!("repository: demo1\nreview:\n  rules:\n{text}");
    let (repository, diagnostics) = Repository::load(&Memory::new().file("strata.yaml", settings));
    assert!(
        !diagnostics.has_errors(),
        "{:?}",
        diagnostics.iter().map(|one| &one.message).collect::<Vec<_>>()
    );
    repository.settings.review.unwrap().rules
}

#[test]
fn a_rule_is_asked_for_every_step_and_fails_closed() {
    let plan = json!({
        "summary": {"destroy": 2},
        "stacks": [{
            "environment": "prod",
            "stack": "db",
            "steps": [
                {"address": "db/vm/a", "kind": "vm", "action": "delete", "restart": false, "spec": {"memory": {"size": 4096}}},
                {"address": "db/vm/b", "kind": "vm", "action": "update", "restart": true, "spec": {}},
            ],
        }],
    });
    let found = check_document(
        &rules(
            "
    - {name: keep, when: \"step.action == 'delete' && stack.environment == 'prod'\", message: never in prod}
    - {name: calm, when: 'step.restart && plan.summary.destroy > 1', message: too much at once, severity: warning}
    - {name: size, when: 'step.spec.memory.size > 2048', message: large}
    - {name: number, when: 'size(step.address)', message: no answer}
    - {name: broken, when: 'step.', message: no expression}
    - {name: holds, when: \"step.address.startsWith('web/') || step.address.matches('^x')\", message: other stacks}
",
        ),
        &plan,
    );
    let told: Vec<(&str, &str, bool)> = found
        .iter()
        .map(|one| (one.rule.as_str(), one.about.as_str(), one.severity == Severity::Error))
        .collect();
    let expected = [
        ("keep", "db/vm/a", true),
        ("calm", "db/vm/b", false),
        ("size", "db/vm/a", true),
        // It has no memory in its spec: nobody can say that the rule holds.
        ("size", "db/vm/b", true),
        ("number", "db/vm/a", true),
        ("number", "db/vm/b", true),
        ("broken", "", true),
    ];
    assert_eq!(told, expected, "{found:?}");
    assert!(found[3].message.starts_with("it cannot be decided"), "{found:?}");
    let broken = unreadable(&rules(
        "    - {name: broken, when: 'a ||', message: m}\n    - {name: good, when: 'true', message: m}\n",
    ));
    assert_eq!(broken.len(), 1);
}
