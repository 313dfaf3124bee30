//! Logging in: API tokens, tickets and the token against cross-site requests.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use percent_encoding::percent_decode_str;
use strata_sim_core::Verb;

use crate::api::Caller;
use crate::world::World;

/// A ticket is good for two hours.
const TICKET_SECONDS: i64 = 2 * 3600;

/// What the request brought along.
#[derive(Debug, Default)]
pub struct Credentials {
    pub cookie: Option<String>,
    pub authorization: Option<String>,
    pub csrf: Option<String>,
}

/// `name=value` inside a header, up to a semicolon, decoded.
fn value_of(header: Option<&str>, name: &str) -> Option<String> {
    let header = header?;
    let start = header.match_indices(name).find_map(|(at, _)| {
        let before = header[..at].chars().next_back();
        let after = header[at + name.len()..].starts_with('=');
        (after && before.is_none_or(char::is_whitespace)).then_some(at + name.len() + 1)
    })?;
    let raw = header[start..].split(';').next().unwrap_or_default();
    let value = percent_decode_str(raw).decode_utf8_lossy().into_owned();
    (!value.is_empty()).then_some(value)
}

/// Calls that need no login.
fn is_open(verb: Verb, path: &str) -> bool {
    matches!(
        (verb, path),
        (Verb::Get, "/access/domains")
            | (Verb::Get | Verb::Post, "/access/ticket")
            | (Verb::Post, "/access/vncticket" | "/access/openid/login" | "/access/openid/auth-url")
    )
}

/// Who calls, or the reason phrase of the 401.
pub fn identify(world: &World, verb: Verb, path: &str, with: &Credentials) -> Result<Caller, String> {
    if is_open(verb, path) {
        return Ok(Caller::default());
    }
    let ticket = value_of(with.cookie.as_deref(), "PVEAuthCookie")
        .or_else(|| value_of(with.authorization.as_deref(), "PVEAuthCookie"));
    let Some(ticket) = ticket else {
        let Some(token) = value_of(with.authorization.as_deref(), "PVEAPIToken") else {
            return Err("No ticket".to_owned());
        };
        let id = verify_token(world, &token).ok_or("Authentication failed!")?;
        return Ok(Caller { id: Some(id), is_token: true });
    };
    let user = verify_ticket(world, &ticket).ok_or("Authentication failed!")?;
    let is_upload = verb == Verb::Post && path.starts_with("/nodes/") && path.ends_with("/upload");
    if verb != Verb::Get && !is_upload && !verify_csrf(world, &user, with.csrf.as_deref()) {
        return Err("Permission denied - invalid csrf token".to_owned());
    }
    Ok(Caller { id: Some(user), is_token: false })
}

fn is_enabled(world: &World, user: &str) -> bool {
    let now = world.now();
    world.access.users.get(user).is_some_and(|u| u.enable && (u.expire == 0 || u.expire > now))
}

fn verify_token(world: &World, token: &str) -> Option<String> {
    let (id, secret) = token.rsplit_once('=')?;
    let (user, name) = id.split_once('!')?;
    let token = world.access.token(user, name)?;
    let fresh = token.expire == 0 || token.expire > world.now();
    (is_enabled(world, user) && fresh && token.secret == secret).then(|| id.to_owned())
}

fn signature(world: &World, plain: &str) -> String {
    let mut bytes = Vec::new();
    for part in ["1", "2", "3", "4"] {
        bytes.extend_from_slice(&world.derive(&["ticket", part, plain]));
    }
    STANDARD.encode(bytes)
}

/// A ticket for this user, made now.
pub fn make_ticket(world: &World, user: &str) -> String {
    let plain = format!("PVE:{user}:{:08X}", world.now());
    format!("{plain}::{}", signature(world, &plain))
}

/// The user of a valid ticket.
pub fn verify_ticket(world: &World, ticket: &str) -> Option<String> {
    let (plain, given) = ticket.split_once("::")?;
    let rest = plain.strip_prefix("PVE:")?;
    let (user, time) = rest.rsplit_once(':')?;
    let age = world.now() - i64::from_str_radix(time, 16).ok()?;
    let genuine = signature(world, plain) == given && (-300..TICKET_SECONDS).contains(&age);
    (genuine && is_enabled(world, user)).then(|| user.to_owned())
}

/// The token that a browser must send along with a ticket.
pub fn make_csrf(world: &World, user: &str) -> String {
    csrf_at(world, user, world.now())
}

fn csrf_at(world: &World, user: &str, time: i64) -> String {
    let stamp = format!("{time:08X}");
    format!("{stamp}:{}", STANDARD_NO_PAD.encode(world.derive(&["csrf", user, &stamp])))
}

fn verify_csrf(world: &World, user: &str, token: Option<&str>) -> bool {
    let Some(token) = token else { return false };
    let Some(time) = token.split(':').next().and_then(|t| i64::from_str_radix(t, 16).ok()) else {
        return false;
    };
    let age = world.now() - time;
    (-300..TICKET_SECONDS).contains(&age) && csrf_at(world, user, time) == token
}

/// Whether this is the user's password, or a ticket of theirs.
pub fn verify_password(world: &World, user: &str, password: &str) -> bool {
    if !is_enabled(world, user) {
        return false;
    }
    if password.starts_with("PVE:") {
        return verify_ticket(world, password).as_deref() == Some(user);
    }
    world.access.users.get(user).and_then(|u| u.password.as_deref()) == Some(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_in_a_header() {
        let header = Some("a=1; PVEAuthCookie=PVE%3Aroot%40pam; b=2");
        assert_eq!(value_of(header, "PVEAuthCookie").as_deref(), Some("PVE:root@pam"));
        assert_eq!(value_of(Some("PVEAPIToken=u@pve!t=x"), "PVEAPIToken").as_deref(), Some("u@pve!t=x"));
        assert_eq!(value_of(Some("Bearer abc"), "PVEAPIToken"), None);
        assert_eq!(value_of(Some("XPVEAuthCookie=1"), "PVEAuthCookie"), None);
    }
}
