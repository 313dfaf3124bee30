//! Rules over plans, written in CEL. Each is asked for every step; where its expression is true the rule is broken.

use std::collections::HashMap;

use cel::{Context, Program, Value as Cel};
use serde_json::{Value as Json, json};
use strata_engine::{PlannedStack, Step, StepAction, Summary};
use strata_resource::{Spec, Value};
use strata_source::settings::review::{PlanRule, RuleSeverity};

use crate::effects::Effects;
use crate::finding::{Finding, Severity};
use crate::reviewed::Reviewed;

/// What the rules find. A rule that cannot be read or decided is broken: nobody can say that it holds.
pub fn check(rules: &[PlanRule], reviewed: &Reviewed) -> Vec<Finding> {
    if rules.is_empty() {
        return Vec::new();
    }
    check_document(rules, &document(reviewed))
}

/// The same over a document, as [`document`] makes it.
pub fn check_document(rules: &[PlanRule], plan: &Json) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut context = Context::default();
    context.add_variable_from_value("plan", to_cel(plan));
    for rule in rules {
        let severity = match rule.severity {
            Some(RuleSeverity::Warning) => Severity::Warning,
            Some(RuleSeverity::Error) | None => Severity::Error,
        };
        let finding = |about: &str, message: String| Finding {
            severity,
            rule: rule.name.value.clone(),
            about: about.to_owned(),
            message,
        };
        let program = match Program::compile(&rule.when.value) {
            Ok(program) => program,
            Err(error) => {
                found.push(finding("", format!("its expression cannot be read: {error}")));
                continue;
            }
        };
        for stack in plan["stacks"].as_array().into_iter().flatten() {
            let mut of_stack = context.new_inner_scope();
            of_stack.add_variable_from_value("stack", to_cel(stack));
            for step in stack["steps"].as_array().into_iter().flatten() {
                let mut of_step = of_stack.new_inner_scope();
                of_step.add_variable_from_value("step", to_cel(step));
                let about = step["address"].as_str().unwrap_or_default();
                match program.execute(&of_step) {
                    Ok(Cel::Bool(false)) => {}
                    Ok(Cel::Bool(true)) => found.push(finding(about, rule.message.clone())),
                    Ok(other) => found
                        .push(finding(about, format!("it gives {:?}, not true or false", other.type_of()))),
                    Err(error) => found.push(finding(about, format!("it cannot be decided: {error}"))),
                }
            }
        }
    }
    found
}

/// The plans as rules see them, which is also what other programs that check documents are given. A secret is the word `(secret)`.
pub fn document(reviewed: &Reviewed) -> Json {
    let effects = Effects::of(reviewed);
    let mut summary = numbers(&effects.summary);
    summary["reboot"] = effects.reboots.into();
    summary["quorum"] = effects.quorum.into();
    let mut stacks = Vec::new();
    for file in &reviewed.plans {
        stacks.extend(file.stacks.iter().map(|stack| of_stack(stack, reviewed)));
        for driven in &file.driven {
            let (environment, stack) = split(&driven.key);
            stacks.push(json!({
                "environment": environment,
                "stack": stack,
                "change": change(&driven.key, reviewed),
                "summary": numbers(&driven.summary),
                "steps": driven.changes["resources"],
            }));
        }
    }
    json!({
        "commit": reviewed.commit,
        "paths": reviewed.paths,
        "summary": summary,
        "stacks": stacks,
    })
}

fn of_stack(stack: &PlannedStack, reviewed: &Reviewed) -> Json {
    let key = &stack.plan.key;
    let (environment, name) = split(key);
    // The delete of a replacement stands with its create.
    let is_shown =
        |step: &&Step| step.action.is_remote() && !(step.replacement && step.action != StepAction::Create);
    json!({
        "environment": environment,
        "stack": name,
        "change": change(key, reviewed),
        "summary": numbers(&stack.plan.summary()),
        "steps": stack.plan.steps.iter().filter(is_shown).map(of_step).collect::<Vec<_>>(),
    })
}

fn of_step(step: &Step) -> Json {
    let action = match step.action {
        StepAction::Create if step.replacement => "replace",
        StepAction::Create => "create",
        StepAction::Update => "update",
        StepAction::Delete | StepAction::DeleteFormer => "delete",
        StepAction::Record | StepAction::Forget => "record",
    };
    let changes = step.changes.iter().map(|change| {
        json!({
            "path": change.path.to_string(),
            "before": change.before.as_ref().map(plain),
            "after": change.after.as_ref().map(plain),
            "drift": change.drift,
        })
    });
    json!({
        "address": step.address.to_string(),
        "kind": step.address.kind().to_string(),
        "name": step.address.name(),
        "target": step.target,
        "action": action,
        "restart": step.restart,
        "changes": changes.collect::<Vec<_>>(),
        "spec": plain_spec(&step.spec),
    })
}

fn split(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("", key))
}

fn change(key: &str, reviewed: &Reviewed) -> String {
    let own = reviewed.stacks.iter().find(|stack| stack.key().state_key() == key);
    own.map(|stack| stack.change.clone()).unwrap_or_default()
}

fn numbers(summary: &Summary) -> Json {
    json!({
        "create": summary.create,
        "update": summary.update,
        "replace": summary.replace,
        "destroy": summary.delete,
        "restart": summary.restart,
        "move": summary.moved,
    })
}

fn plain_spec(spec: &Spec) -> Json {
    spec.iter().map(|(key, value)| (key.clone(), plain(value))).collect::<serde_json::Map<_, _>>().into()
}

fn plain(value: &Value) -> Json {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Text(value) => value.clone().into(),
        Value::List(list) => list.iter().map(plain).collect::<Vec<_>>().into(),
        Value::Map(map) => plain_spec(map),
        Value::Secret(_) => "(secret)".into(),
        Value::Input { .. } | Value::Unknown => Json::Null,
    }
}

/// Whole numbers are ints: as CEL's own literals are.
fn to_cel(value: &Json) -> Cel {
    match value {
        Json::Null => Cel::Null,
        Json::Bool(value) => Cel::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(int) => Cel::Int(int),
            None => Cel::Float(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Cel::from(text.as_str()),
        Json::Array(list) => Cel::from(list.iter().map(to_cel).collect::<Vec<_>>()),
        Json::Object(map) => {
            Cel::from(map.iter().map(|(key, value)| (key.clone(), to_cel(value))).collect::<HashMap<_, _>>())
        }
    }
}

/// Rules whose expressions cannot be read, with the reason, for whoever writes them.
pub fn unreadable(rules: &[PlanRule]) -> Vec<Finding> {
    let broken = rules.iter().filter_map(|rule| {
        let error = Program::compile(&rule.when.value).err()?;
        Some(Finding::error(rule.name.value.clone(), "", format!("its expression cannot be read: {error}")))
    });
    broken.collect()
}
