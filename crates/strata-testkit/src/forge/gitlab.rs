//! GitLab's REST API, version 4.

use serde_json::{Value, json};

use super::world::{Call, Pull, Reply, World, time};

pub(super) fn answer(world: &mut World, call: &Call) -> Reply {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    let method = call.method.as_str();
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    let rest = match (method, &path[..]) {
        ("GET", ["api", "v4", "user"]) => return Reply::ok(user(world, &call.who)),
        ("GET", ["api", "v4", "users", id]) => {
            let found = world.users.iter().find(|user| user.id == number(id));
            return found.map_or_else(Reply::missing, |found| {
                Reply::ok(json!({"id": found.id, "username": found.name, "bot": found.is_bot}))
            });
        }
        (_, ["api", "v4", "projects", "ops/infra", rest @ ..]) => rest,
        _ => return Reply::missing(),
    };
    match (method, rest) {
        ("GET", ["members", "all", id]) => {
            let level = |may_write: bool| if may_write { 30 } else { 20 };
            let found = world.users.iter().find(|user| user.id == number(id));
            found.map_or_else(Reply::missing, |found| {
                Reply::ok(
                    json!({"id": found.id, "username": found.name, "access_level": level(found.may_write)}),
                )
            })
        }
        ("GET", ["merge_requests", of]) => match world.pulls.iter().find(|pull| pull.number == number(of)) {
            Some(found) => Reply::ok(merge_request(world, found)),
            None => Reply::missing(),
        },
        ("GET", ["repository", "commits", sha, "merge_requests"]) => Reply::ok(
            world.pulls.iter().filter(|one| one.has(sha)).map(|one| merge_request(world, one)).collect(),
        ),
        ("GET", ["merge_requests", of, "notes"]) => {
            let found = world.pulls.iter().find(|pull| pull.number == number(of)).unwrap();
            let row = |one: &super::world::Comment| {
                json!({"id": one.id, "author": user(world, &one.by), "body": one.text, "system": one.is_system,
                    "created_at": time(one.at)})
            };
            Reply::ok(found.comments.iter().map(row).collect())
        }
        ("POST", ["merge_requests", of, "notes"]) => {
            let id = world.comment(number(of), &call.who, &call.text("body"));
            Reply::made(json!({"id": id}))
        }
        ("PUT", ["merge_requests", _, "notes", id]) => {
            match world.edit_comment(number(id), &call.text("body")) {
                true => Reply::ok(json!({"id": number(id)})),
                false => Reply::missing(),
            }
        }
        ("POST", ["statuses", sha]) => status(world, call, sha),
        ("GET", ["repository", "commits", sha, "statuses"]) => {
            let own = world.statuses.iter().filter(|status| status.commit == *sha);
            Reply::ok(
                own.map(|one| {
                    json!({"id": one.id, "status": one.state, "name": one.context, "description": one.description,
                        "created_at": time(one.at), "finished_at": one.finished.map(time), "author": user(world, &one.by)})
                })
                .collect(),
            )
        }
        ("GET", ["merge_requests", of, "approvals"]) => {
            let found = world.pulls.iter().find(|pull| pull.number == number(of)).unwrap();
            // A push leaves them, unless the project has that reset; nobody objects in this API.
            let given = found.reviews.iter().filter(|review| review.approves && !review.is_withdrawn);
            // Of some it does not say when, as a GitLab of before does not of anybody.
            let row = |review: &super::world::Review| match review.by.len() % 2 {
                0 => json!({"user": user(world, &review.by), "approved_at": time(review.at)}),
                _ => json!({"user": user(world, &review.by)}),
            };
            Reply::ok(json!({"approved_by": given.map(row).collect::<Vec<_>>()}))
        }
        ("GET", ["merge_requests", of, "versions"]) => {
            let found = world.pulls.iter().find(|pull| pull.number == number(of)).unwrap();
            let row = |(head, at): &(String, i64)| json!({"head_commit_sha": head, "created_at": time(*at)});
            Reply::ok(found.versions.iter().rev().map(row).collect())
        }
        ("GET", ["issues"]) => {
            let own = world.issues.iter().filter(|one| one.is_open && one.by == call.who);
            let row = |one: &super::world::Issue| json!({"iid": one.number, "author": user(world, &one.by), "title": one.title, "description": one.text});
            Reply::ok(own.map(row).collect())
        }
        ("POST", ["issues"]) => {
            let number = world.open_issue(&call.who, &call.text("title"), &call.text("description"));
            Reply::made(json!({"iid": number}))
        }
        ("PUT", ["issues", of]) => {
            let close = call.text("state_event") == "close";
            match world.edit_issue(number(of), &call.text("title"), &call.text("description"), close) {
                true => Reply::ok(json!({"iid": number(of)})),
                false => Reply::missing(),
            }
        }
        _ => Reply::missing(),
    }
}

/// One that is pending is changed, and keeps the time at which it was made; it cannot become pending again.
fn status(world: &mut World, call: &Call, sha: &str) -> Reply {
    let (name, state, description) = (call.text("name"), call.text("state"), call.text("description"));
    let now = world.tick();
    let open = world.statuses.iter_mut().find(|one| {
        one.commit == sha
            && one.context == name
            && one.by == call.who
            && matches!(one.state.as_str(), "pending" | "running")
    });
    match open {
        Some(one) if one.state == state => Reply::error(
            400,
            "Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition)",
        ),
        Some(one) => {
            one.finished = (state != "running").then_some(now);
            (one.state, one.description) = (state, description);
            Reply::made(json!({"name": name}))
        }
        None => {
            world.post_status(sha, &call.who, &name, &state, &description);
            Reply::made(json!({"name": name}))
        }
    }
}

fn user(world: &World, name: &str) -> Value {
    let user = world.named(name);
    json!({"id": user.id, "username": user.name})
}

fn merge_request(world: &World, pull: &Pull) -> Value {
    json!({
        "iid": pull.number,
        "author": user(world, &pull.author),
        "state": match (pull.is_open, &pull.merge_commit) {
            (true, _) => "opened",
            (false, Some(_)) => "merged",
            (false, None) => "closed",
        },
        "sha": pull.head(),
        "target_branch": "main",
        "merge_commit_sha": pull.merge_commit,
        "squash_commit_sha": null,
        "source_project_id": if pull.is_fork { 77 } else { 7 },
        "target_project_id": 7,
    })
}
