//! API tokens of users.

use serde_json::{Value, json};

use super::{MODIFY, own_or, userid};
use crate::api::param::usual;
use crate::api::{Call, Param, Refusal, Reply, Route, delete, flag, get, int, no, post, put, text, wrong};
use crate::world::access::Token;

const TOKEN: &str = "/access/users/{userid}/token/{tokenid}";

pub fn routes() -> Vec<Route> {
    let own = || own_or(MODIFY);
    vec![
        get("/access/users/{userid}/token", own(), vec![userid()], list),
        get(TOKEN, own(), params([]), |call| Ok(view(find(call)?).into())),
        post(TOKEN, own(), params(settings()), create),
        put(TOKEN, own(), params(settings().into_iter().chain([usual::delete()])), update),
        delete(TOKEN, own(), params([]), remove),
    ]
}

fn params(more: impl IntoIterator<Item = Param>) -> Vec<Param> {
    let mut params = vec![userid(), text("tokenid").pattern(r"[A-Za-z][A-Za-z0-9.\-_]+")];
    params.extend(more);
    params
}

fn settings() -> [Param; 3] {
    [text("comment").opt(), int("expire").min(0.0).opt(), flag("privsep").opt()]
}

pub fn view(token: &Token) -> Value {
    let mut row = json!({ "privsep": u8::from(token.privsep), "expire": token.expire });
    if let Some(comment) = &token.comment {
        row["comment"] = json!(comment);
    }
    row
}

fn find<'c>(call: &'c Call<'_>) -> Result<&'c Token, Refusal> {
    let (user, name) = (call.args.must("userid"), call.args.must("tokenid"));
    if !call.world.access.users.contains_key(user) {
        return Err(no(format!("no such user ('{user}')")));
    }
    let token = call.world.access.token(user, name);
    token.ok_or_else(|| no(format!("no such token '{name}' for user '{user}'")))
}

fn list(call: &mut Call<'_>) -> Reply {
    let user = call.world.access.users.get(call.args.must("userid"));
    let rows: Vec<Value> = user
        .into_iter()
        .flat_map(|user| &user.tokens)
        .map(|(name, token)| {
            let mut row = view(token);
            row["tokenid"] = json!(name);
            row
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn create(call: &mut Call<'_>) -> Reply {
    let (user, name) = (call.args.must("userid").to_owned(), call.args.must("tokenid").to_owned());
    if call.world.access.token(&user, &name).is_some() {
        return Err(wrong("tokenid", "Token already exists."));
    }
    let id = format!("{user}!{name}");
    let made = call.world.access.made_tokens.entry(id.clone()).or_default();
    *made += 1;
    let made = made.to_string();
    let secret = call.world.uuid(&if made == "1" { vec!["token", &id] } else { vec!["token", &id, &made] });
    // What was given is answered as it came, which is text.
    let mut info = json!({ "privsep": call.args.text("privsep").map_or(json!(1), |p| json!(p)) });
    if let Some(expire) = call.args.text("expire") {
        info["expire"] = json!(expire);
    }
    if let Some(comment) = call.args.filled("comment") {
        info["comment"] = json!(comment);
    }
    let token = Token {
        secret: secret.clone(),
        privsep: call.args.flag("privsep").unwrap_or(true),
        expire: call.args.int("expire").unwrap_or_default(),
        comment: call.args.filled("comment").map(str::to_owned),
    };
    if let Some(user) = call.world.access.users.get_mut(&user) {
        user.tokens.insert(name, token);
    }
    Ok(json!({ "info": info, "value": secret, "full-tokenid": id }).into())
}

fn update(call: &mut Call<'_>) -> Reply {
    let mut token = find(call)?.clone();
    if let Some(unknown) = call.args.list("delete").iter().find(|key| *key != "comment") {
        return Err(wrong("delete", format!("unknown option '{unknown}'")));
    }
    token.privsep = call.args.flag("privsep").unwrap_or(token.privsep);
    token.expire = call.args.int("expire").unwrap_or(token.expire);
    if let Some(comment) = call.args.text("comment") {
        token.comment = Some(comment.to_owned()).filter(|c| !c.is_empty());
    }
    if call.args.list("delete").iter().any(|key| key == "comment") {
        token.comment = None;
    }
    let mut data = view(&token);
    for key in ["privsep", "expire"] {
        if let Some(given) = call.args.text(key) {
            data[key] = json!(given);
        }
    }
    let (user, name) = (call.args.must("userid").to_owned(), call.args.must("tokenid").to_owned());
    if let Some(user) = call.world.access.users.get_mut(&user) {
        user.tokens.insert(name, token);
    }
    Ok(data.into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    find(call)?;
    let (user, name) = (call.args.must("userid").to_owned(), call.args.must("tokenid").to_owned());
    let id = format!("{user}!{name}");
    if let Some(user) = call.world.access.users.get_mut(&user) {
        user.tokens.remove(&name);
    }
    call.world.access.forget(|acl| drop(acl.tokens.remove(&id)));
    Ok(().into())
}
