//! What every pipeline has to be.

use serde_json::Value as Json;
use strata_diagnostics::{Diagnostics, SourceMap};
use strata_pipelines::{Forge, PipelineFile, Settings, files};
use strata_yaml::{parse, plain};

fn settings() -> Settings {
    Settings {
        sha256: "5f".repeat(32),
        variables: ["PVE_TOKEN".to_owned()].into(),
        branch: "trunk".to_owned(),
        ..Settings::default()
    }
}

/// With the program installed, and with the program downloaded.
fn both() -> [Settings; 2] {
    let url = Some("https://files.example.org/strata".to_owned());
    [settings(), Settings { program: url, ..settings() }]
}

fn every(look: impl Fn(Forge, &Settings, &PipelineFile)) {
    for settings in both() {
        for forge in Forge::ALL {
            files(forge, &settings).iter().for_each(|file| look(forge, &settings, file));
        }
    }
}

fn tree(file: &PipelineFile) -> Json {
    let (mut sources, mut found) = (SourceMap::new(), Diagnostics::new());
    let id = sources.add(&file.path, file.text.as_str());
    let tree = parse(&sources, id, &mut found).required(id, "a pipeline", &mut found);
    assert_eq!(found.iter().count(), 0, "{}:\n{}", file.path, file.text);
    plain::of_node(&tree.unwrap()).unwrap()
}

#[test]
fn each_is_valid_yaml_without_anything_to_fill_in() {
    every(|_, _, file| {
        tree(file);
        for left in [
            "@include",
            "@BRANCH@",
            "@RUNNER@",
            "@TOKEN@",
            "@VARIABLES@",
            "[github",
            "[gitea",
            "[download",
            "[installed",
        ] {
            assert!(!file.text.contains(left), "{}: {left}\n{}", file.path, file.text);
        }
        assert!(!file.text.lines().any(|line| line.ends_with(' ')), "{}", file.path);
    });
}

#[test]
fn nothing_of_others_is_run() {
    every(|_, settings, file| {
        assert!(
            !file.text.lines().any(|line| line.trim_start().trim_start_matches("- ").starts_with("uses:")),
            "{}",
            file.path
        );
        assert!(!file.text.contains("curl") || settings.program.is_some(), "{}", file.path);
        assert!(file.shared.is_some() || file.text.contains(&settings.sha256), "{}", file.path);
    });
}

/// A text that somebody else writes, such as the name of a branch, is never a part of a script.
#[test]
fn scripts_have_no_expressions_of_the_forge() {
    for forge in [Forge::GitHub, Forge::Gitea, Forge::Forgejo] {
        for file in files(forge, &settings()) {
            for job in tree(&file)["jobs"].as_object().unwrap().values() {
                for step in job["steps"].as_array().unwrap() {
                    let script = step["run"].as_str().unwrap();
                    assert!(!script.contains("${{"), "{}: {script}", file.path);
                }
            }
        }
    }
}

#[test]
fn a_request_from_a_fork_gets_no_key_and_no_secret_of_the_source() {
    for forge in [Forge::GitHub, Forge::Gitea, Forge::Forgejo] {
        let text = &files(forge, &settings())[0].text;
        let (own, fork) = text.split_once("\n  fork:\n").unwrap();
        assert!(
            own.contains("STRATA_REVIEW_KEY") && own.contains("PVE_TOKEN") && own.contains("SOPS_AGE_KEY")
        );
        for secret in ["STRATA_REVIEW_KEY", "PVE_TOKEN", "SOPS_AGE_KEY", "environment:"] {
            assert!(!fork.contains(secret), "{forge:?}: {secret}");
        }
        assert!(text.contains("pull_request_target:"), "the pipeline is that of the base");
    }
    let gitlab = &files(Forge::GitLab, &settings())[0].text;
    let fork = gitlab.split("\nstrata-fork:\n").nth(1).unwrap().split("\nstrata-apply:\n").next().unwrap();
    assert!(!fork.contains("environment:") && !fork.contains("review plan"), "{fork}");
}

#[test]
fn only_a_plan_has_the_key_that_signs() {
    every(|_, _, file| {
        let has = file.text.contains("STRATA_REVIEW_KEY:");
        assert_eq!(
            has,
            file.path.ends_with("-plan.yml") || file.path.ends_with("-plan.yaml"),
            "{}",
            file.path
        );
    });
}

#[test]
fn github_jobs_have_the_permissions_that_their_commands_need() {
    let of = |place: usize| {
        let text = files(Forge::GitHub, &settings()).swap_remove(place).text;
        let given = text.lines().skip_while(|line| *line != "    permissions:").skip(1);
        let given: Vec<&str> = given.take_while(|line| line.starts_with("      ")).map(str::trim).collect();
        assert!(text.contains("\npermissions: {}\n"), "{text}");
        given.join(", ")
    };
    assert_eq!(of(0), "contents: read, pull-requests: write, statuses: write");
    assert_eq!(of(1), "contents: read, pull-requests: write, statuses: write");
    assert_eq!(of(2), "contents: read, issues: write");
    assert_eq!(of(3), "contents: write");
}

#[test]
fn an_apply_is_never_cancelled_by_the_next() {
    for forge in [Forge::GitHub, Forge::Forgejo] {
        assert!(files(forge, &settings())[1].text.contains("cancel-in-progress: false"), "{forge:?}");
    }
    assert!(files(Forge::GitHub, &settings())[1].text.contains("queue: max"));
    assert!(!files(Forge::Gitea, &settings())[1].text.contains("\nconcurrency:"));
    let gitlab = &files(Forge::GitLab, &settings())[0].text;
    let apply = gitlab.split("\nstrata-apply:\n").nth(1).unwrap().split("\n# A schedule").next().unwrap();
    assert!(apply.contains("resource_group: strata-apply") && !apply.contains("interruptible"), "{apply}");
    assert!(gitlab.contains("on_new_commit: interruptible"));
}

/// docs/review.md has a whole file.
#[test]
fn the_manual_has_the_file_as_it_is_written() {
    let manual = include_str!("../../../../docs/review.md");
    let settings = Settings { branch: "main".to_owned(), ..settings() };
    let plan = &files(Forge::Gitea, &settings)[0].text;
    assert!(manual.contains(&format!("```yaml\n{plan}```\n")), "docs/review.md is to have:\n{plan}");
}
