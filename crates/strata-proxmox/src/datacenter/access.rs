//! Pools, roles, groups and users.

use http::Method;
use strata_engine::ProviderError;
use strata_resource::Value;

use super::family::{NextCall, Row, row_text, spec_text};
use super::simple::{Apart, Field, Shape, Simple, Unset};
use crate::api::Params;
use crate::client::Rights;
use crate::execute::{Call, Work};

fn nothing(_: &Row) -> Option<&'static str> {
    None
}

pub(super) static POOL: Simple = Simple {
    word: "pool",
    id: ("pool", "poolid"),
    list: "/pools",
    list_query: &[],
    // A pool within another has a slash in its name.
    id_in_path: false,
    comment: Some("comment"),
    fields: &[],
    unset: Unset::Empty,
    replaces: false,
    takes_digest: false,
    rest: None,
    reserved: nothing,
    apart: None,
};

pub(super) static ROLE: Simple = Simple {
    word: "role",
    id: ("role", "roleid"),
    list: "/access/roles",
    list_query: &[],
    id_in_path: true,
    comment: None,
    fields: &[Field::new("privileges", "privs", Shape::List)],
    unset: Unset::Empty,
    replaces: false,
    takes_digest: false,
    rest: None,
    reserved: |row| (row_text(row, "special").as_deref() == Some("1")).then_some("it is built into Proxmox"),
    apart: None,
};

pub(super) static GROUP: Simple = Simple {
    word: "group",
    id: ("group", "groupid"),
    list: "/access/groups",
    list_query: &[],
    id_in_path: true,
    comment: Some("comment"),
    fields: &[],
    unset: Unset::Empty,
    replaces: false,
    takes_digest: false,
    rest: None,
    reserved: nothing,
    apart: None,
};

pub(super) static USER: Simple = Simple {
    word: "user",
    id: ("user", "userid"),
    list: "/access/users",
    // With the groups that they are in.
    list_query: &[("full", "1")],
    id_in_path: true,
    comment: Some("comment"),
    fields: &[
        Field::new("groups", "groups", Shape::List),
        Field::new("enabled", "enable", Shape::Flag),
        Field::new("expire", "expire", Shape::Int),
        Field::new("email", "email", Shape::Text),
        Field::new("first_name", "firstname", Shape::Text),
        Field::new("last_name", "lastname", Shape::Text),
        Field::new("password", "password", Shape::Secret),
    ],
    unset: Unset::Empty,
    replaces: false,
    takes_digest: false,
    rest: None,
    reserved: |row| {
        (row_text(row, "userid").as_deref() == Some("root@pam")).then_some("root@pam is nobody's to manage")
    },
    apart: Some(Apart { field: "password", call: change_password }),
};

/// Taken only with a ticket: API tokens are refused, whatever they may do otherwise.
fn change_password(work: &Work<'_>) -> Result<NextCall, ProviderError> {
    let user = spec_text(&work.operation.spec, "user");
    let Some(Value::Secret(secret)) = work.operation.spec.get("password") else {
        return Err(work.internal("there is no password to set"));
    };
    let Some(plain) = secret.plain() else {
        return Err(work.internal("the password itself is not at hand, only its digest"));
    };
    let mut params = Params::new().with("userid", user);
    params.set_secret("password", plain.expose());
    if let Some(own) = work.client.confirmation() {
        params.set_secret("confirmation-password", own.expose());
    }
    let doing = format!("set the password of `{user}`");
    let call = work.call(Method::PUT, "/access/password".to_owned(), params, doing);
    Ok(NextCall { call: Call { rights: Rights::Root, ..call }, sends: vec!["password"] })
}
