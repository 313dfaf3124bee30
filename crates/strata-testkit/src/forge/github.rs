//! GitHub's REST API, version 2022-11-28, as GitHub Enterprise Server has it: below `/api/v3`, with GraphQL at `/api/graphql`.

use serde_json::{Value, json};

use super::world::{Call, Pull, Reply, World, time};

pub(super) fn answer(world: &mut World, call: &Call) -> Reply {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    let method = call.method.as_str();
    if let ("POST", ["api", "graphql"]) = (method, &path[..]) {
        return Reply::ok(json!({"data": {"viewer": {"login": call.who}}}));
    }
    let ["api", "v3", "repos", "ops", "infra", rest @ ..] = &path[..] else { return Reply::missing() };
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    match (method, rest) {
        ("GET", ["pulls", of]) => match world.pulls.iter().find(|pull| pull.number == number(of)) {
            Some(found) => Reply::ok(pull(world, found)),
            None => Reply::missing(),
        },
        ("GET", ["commits", sha, "pulls"]) => {
            Reply::ok(world.pulls.iter().filter(|one| one.has(sha)).map(|one| pull(world, one)).collect())
        }
        ("GET", ["issues", of, "comments"]) => {
            let rows = world.pull(number(of)).comments.iter();
            let rows = rows.map(|one| (one.id, one.by.clone(), one.text.clone())).collect::<Vec<_>>();
            Reply::ok(
                rows.iter()
                    .map(|(id, by, text)| json!({"id": id, "user": user(world, by), "body": text}))
                    .collect(),
            )
        }
        ("POST", ["issues", of, "comments"]) => {
            let id = world.comment(number(of), &call.who, &call.text("body"));
            Reply::made(json!({"id": id}))
        }
        ("PATCH", ["issues", "comments", id]) => match world.edit_comment(number(id), &call.text("body")) {
            true => Reply::ok(json!({"id": number(id)})),
            false => Reply::missing(),
        },
        ("POST", ["statuses", sha]) => {
            let description = call.text("description");
            if description.chars().count() > 140 {
                return Reply::error(422, "description is too long (maximum is 140 characters)");
            }
            world.post_status(sha, &call.who, &call.text("context"), &call.text("state"), &description);
            Reply::made(json!({"state": call.text("state")}))
        }
        ("GET", ["commits", sha, "statuses"]) => {
            // In reverse chronological order.
            let own = world.statuses.iter().rev().filter(|status| status.commit == *sha);
            Reply::ok(
                own.map(|one| {
                    json!({"id": one.id, "state": one.state, "context": one.context, "description": one.description,
                        "created_at": time(one.at), "creator": user(world, &one.by)})
                })
                .collect(),
            )
        }
        ("GET", ["pulls", of, "reviews"]) => {
            let found = world.pulls.iter().find(|pull| pull.number == number(of)).unwrap();
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
            let creator = call.query.get("creator");
            let own = world.issues.iter().filter(|one| one.is_open && Some(&one.by) == creator);
            let rows = own.map(|one| json!({"number": one.number, "user": user(world, &one.by), "title": one.title, "body": one.text}));
            // Requests are issues, too.
            let pulls = world.pulls.iter().filter(|one| one.is_open && Some(&one.author) == creator).map(|one| {
                json!({"number": one.number, "user": user(world, &one.author), "title": "a request", "body": null,
                    "pull_request": {"url": "x"}})
            });
            Reply::ok(rows.chain(pulls).collect())
        }
        ("POST", ["issues"]) => {
            let number = world.open_issue(&call.who, &call.text("title"), &call.text("body"));
            Reply::made(json!({"number": number}))
        }
        ("PATCH", ["issues", of]) => {
            match world.edit_issue(
                number(of),
                &call.text("title"),
                &call.text("body"),
                call.text("state") == "closed",
            ) {
                true => Reply::ok(json!({"number": number(of)})),
                false => Reply::missing(),
            }
        }
        _ => Reply::missing(),
    }
}

fn user(world: &World, name: &str) -> Value {
    let user = world.named(name);
    json!({"login": user.name, "id": user.id, "type": if user.is_bot { "Bot" } else { "User" }})
}

fn pull(world: &World, pull: &Pull) -> Value {
    let owner = if pull.is_fork { pull.author.as_str() } else { "ops" };
    let is_merged = pull.merge_commit.is_some();
    json!({
        "number": pull.number,
        "state": if pull.is_open { "open" } else { "closed" },
        "user": user(world, &pull.author),
        "head": {"sha": pull.head(), "ref": "request", "repo": {"full_name": format!("{owner}/infra")}},
        "base": {"sha": "0", "ref": "main", "repo": {"full_name": "ops/infra"}},
        "merged_at": is_merged.then(|| time(1_790_000_000)),
        // Of an open one the trial merge.
        "merge_commit_sha": pull.merge_commit.clone().unwrap_or_else(|| "7e57".repeat(10)),
    })
}
