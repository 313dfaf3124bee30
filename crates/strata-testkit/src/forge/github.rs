//! GitHub's REST API, version 2022-11-28, as GitHub Enterprise Server has it: below `/api/v3`, with GraphQL at `/api/graphql`.

use serde_json::{Value, json};

use super::github_api::{self, Words, statuses};
use super::world::{Call, Pull, Reply, World, time};

const WORDS: Words = Words { user, pull, state: "state", creator: "creator", longest: 140 };

pub(super) fn answer(world: &mut World, call: &Call) -> Reply {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    let method = call.method.as_str();
    if let ("POST", ["api", "graphql"]) = (method, &path[..]) {
        return Reply::ok(json!({"data": {"viewer": {"login": call.who}}}));
    }
    let ["api", "v3", "repos", "ops", "infra", rest @ ..] = &path[..] else { return Reply::missing() };
    match (method, rest) {
        ("GET", ["commits", sha, "pulls"]) => {
            Reply::ok(world.pulls.iter().filter(|one| one.has(sha)).map(|one| pull(world, one)).collect())
        }
        ("GET", ["commits", sha, "statuses"]) => statuses(world, sha, &WORDS),
        ("GET", ["pulls", of, "reviews"]) => {
            let found = world.pulls.iter().find(|pull| pull.number.to_string() == *of).unwrap();
            let row = |review: &super::world::Review| {
                let state = match (review.is_withdrawn, review.approves) {
                    (true, _) => "DISMISSED",
                    (false, true) => "APPROVED",
                    (false, false) => "CHANGES_REQUESTED",
                };
                json!({"user": user(world, &review.by), "state": state, "commit_id": review.head,
                    "submitted_at": time(review.at)})
            };
            Reply::ok(found.reviews.iter().map(row).collect())
        }
        ("GET", ["collaborators", name, "permission"]) => {
            let permission = if world.named(name).may_write { "write" } else { "read" };
            Reply::ok(json!({"permission": permission, "user": user(world, name)}))
        }
        ("GET", ["issues"]) => {
            let mut issues = github_api::answer(world, call, rest, &WORDS);
            let creator = call.query.get("creator");
            // Requests are issues, too.
            let pulls = world.pulls.iter().filter(|one| one.is_open && Some(&one.author) == creator).map(|one| {
                json!({"number": one.number, "user": user(world, &one.author), "title": "a request", "body": null,
                    "pull_request": {"url": "x"}})
            });
            issues.body.as_array_mut().unwrap().extend(pulls);
            issues
        }
        _ => github_api::answer(world, call, rest, &WORDS),
    }
}

fn user(world: &World, name: &str) -> Value {
    let user = world.named(name);
    json!({"login": user.name, "id": user.id, "type": if user.is_bot { "Bot" } else { "User" }})
}

fn pull(world: &World, pull: &Pull) -> Value {
    let mut row = github_api::pull(pull, user(world, &pull.author));
    row["merged_at"] = json!(pull.merge_commit.as_ref().map(|_| time(1_790_000_000)));
    // Of an open one the trial merge.
    row["merge_commit_sha"] = pull.merge_commit.clone().unwrap_or_else(|| "7e57".repeat(10)).into();
    row
}
