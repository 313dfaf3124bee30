//! Gitea's API, version 1, which Forgejo has too.

use serde_json::{Value, json};

use super::world::{Call, Pull, Reply, World, time};

pub(super) fn answer(world: &mut World, call: &Call) -> Reply {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    let method = call.method.as_str();
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    let rest = match (method, &path[..]) {
        ("GET", ["api", "v1", "user"]) => return Reply::ok(user(world, &call.who)),
        (_, ["api", "v1", "repos", "ops", "infra", rest @ ..]) => rest,
        _ => return Reply::missing(),
    };
    match (method, rest) {
        ("GET", ["pulls"]) => {
            let listed = world.pulls.iter().filter(|pull| pull.is_open);
            Reply::ok(listed.map(|one| pull(world, one)).collect())
        }
        ("GET", ["pulls", of]) => match world.pulls.iter().find(|pull| pull.number == number(of)) {
            Some(found) => Reply::ok(pull(world, found)),
            None => Reply::missing(),
        },
        // The merged one alone.
        ("GET", ["commits", sha, "pull"]) => {
            match world.pulls.iter().find(|pull| pull.merge_commit.as_deref() == Some(*sha)) {
                Some(found) => Reply::ok(pull(world, found)),
                None => Reply::missing(),
            }
        }
        ("GET", ["issues", of, "comments"]) => {
            let found = world.pulls.iter().find(|pull| pull.number == number(of)).unwrap();
            let row = |one: &super::world::Comment| json!({"id": one.id, "user": user(world, &one.by), "body": one.text});
            Reply::ok(found.comments.iter().map(row).collect())
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
            world.post_status(
                sha,
                &call.who,
                &call.text("context"),
                &call.text("state"),
                &call.text("description"),
            );
            Reply::made(json!({}))
        }
        ("GET", ["statuses", sha]) => {
            let own = world.statuses.iter().rev().filter(|status| status.commit == *sha);
            Reply::ok(
                own.map(|one| {
                    json!({"id": one.id, "status": one.state, "context": one.context, "description": one.description,
                        "created_at": time(one.at), "creator": user(world, &one.by)})
                })
                .collect(),
            )
        }
        ("GET", ["pulls", of, "reviews"]) => {
            let found = world.pulls.iter().find(|pull| pull.number == number(of)).unwrap();
            let row = |review: &super::world::Review| {
                json!({"user": user(world, &review.by), "state": if review.approves { "APPROVED" } else { "REQUEST_CHANGES" },
                    "commit_id": review.head, "stale": review.head != found.head(), "dismissed": review.is_withdrawn,
                    "official": world.named(&review.by).may_write, "submitted_at": time(review.at)})
            };
            Reply::ok(found.reviews.iter().map(row).collect())
        }
        ("GET", ["issues"]) => {
            let by = call.query.get("created_by");
            let own = world.issues.iter().filter(|one| one.is_open && Some(&one.by) == by);
            let row = |one: &super::world::Issue| json!({"number": one.number, "user": user(world, &one.by), "title": one.title, "body": one.text});
            Reply::ok(own.map(row).collect())
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
                true => Reply::made(json!({"number": number(of)})),
                false => Reply::missing(),
            }
        }
        _ => Reply::missing(),
    }
}

fn user(world: &World, name: &str) -> Value {
    let user = world.named(name);
    // Users of Gitea's own making have negative numbers.
    let id = i64::try_from(user.id).unwrap();
    json!({"login": user.name, "id": if user.is_bot { -id } else { id }})
}

fn pull(world: &World, pull: &Pull) -> Value {
    let owner = if pull.is_fork { pull.author.as_str() } else { "ops" };
    json!({
        "number": pull.number,
        "state": if pull.is_open { "open" } else { "closed" },
        "user": user(world, &pull.author),
        "head": {"sha": pull.head(), "ref": "request", "repo": {"full_name": format!("{owner}/infra")}},
        "base": {"sha": "0", "ref": "main", "repo": {"full_name": "ops/infra"}},
        "merged": pull.merge_commit.is_some(),
        "merge_commit_sha": pull.merge_commit,
    })
}
