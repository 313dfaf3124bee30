//! Where notifications go, and which.

use strata_resource::{Secret, Spec, Value};
use strata_source::hypervisor::Hypervisor;
use strata_source::hypervisor::services::{
    EndpointType, NotificationEndpoint, NotificationMatcher, WebhookMethod,
};
use strata_yaml::Spanned;

use super::Part;
use crate::fields::{Fields, int, list};
use crate::kinds;
use crate::site::Draft;

impl Draft<'_> {
    pub(super) fn notifications(&mut self, hypervisor: &Hypervisor) {
        let Some(notifications) = &hypervisor.services.notifications else { return };
        for (name, endpoint) in notifications.endpoints.iter() {
            self.endpoint(name, endpoint);
        }
        for (name, matcher) in notifications.matchers.iter() {
            self.matcher(name, matcher);
        }
    }

    fn matcher(&mut self, name: &Spanned<String>, matcher: &NotificationMatcher) {
        let kind = kinds::NOTIFICATION_MATCHER;
        let mut part = Part::new(kind, name, name.span).flags(matcher.adopt, matcher.protect);
        if self.known(kinds::NOTIFICATION, Some(name)).len() == 1 {
            let message = format!("an endpoint and a matcher are both called `{name}`");
            self.refuse("twice", message, name.span);
        }
        let spec = &mut part.spec;
        spec.put("matcher", name.as_str());
        spec.put_full("targets", list(matcher.targets.iter().map(|target| &target.value)));
        let severities: Vec<String> = matcher.severities.iter().map(ToString::to_string).collect();
        spec.put_full("severities", list(Some(severities.join(",")).filter(|all| !all.is_empty())));
        spec.put_full("match_fields", list(&matcher.fields));
        spec.put_full("calendar", list(&matcher.calendar));
        spec.put_some("mode", matcher.mode.map(|mode| mode.to_string()));
        spec.put_some("invert", matcher.invert);
        spec.put("enabled", matcher.enabled);
        self.comment(spec, kind, name, matcher.comment.as_ref());
        for target in &matcher.targets {
            part.needs.extend(self.known(kinds::NOTIFICATION, Some(target)));
        }
        self.part(part);
    }

    fn endpoint(&mut self, name: &Spanned<String>, endpoint: &NotificationEndpoint) {
        let mut part =
            Part::new(kinds::NOTIFICATION, name, name.span).flags(endpoint.adopt, endpoint.protect);
        let kind = endpoint.kind;
        for (key, given, belongs, needed) in keys(endpoint) {
            if given && !belongs.contains(&kind) {
                let message = format!("the endpoint `{name}` is of type `{kind}`, which has no `{key}`");
                self.refuse("no-such-field", message, name.span);
            } else if !given && needed.contains(&kind) && !(endpoint.adopt && key == "token") {
                // What is secret of an endpoint that was there before is not known to whoever adopted it.
                let message = format!("the endpoint `{name}` is of type `{kind}`, and has no `{key}`");
                self.refuse("missing-field", message, name.span);
            }
        }
        let mails = matches!(kind, EndpointType::Sendmail | EndpointType::Smtp);
        if mails && endpoint.to.is_empty() && endpoint.users.is_empty() {
            let message = format!("mail of the endpoint `{name}` goes to nobody: set `to` or `users`");
            self.refuse("no-recipient", message, name.span);
        }
        let spec = &mut part.spec;
        spec.put("notification", name.as_str());
        spec.put("type", kind.to_string());
        spec.put_some("server", endpoint.server.clone());
        spec.put_some("port", endpoint.port.map(int));
        spec.put_some("mode", endpoint.mode.map(|mode| mode.to_string()));
        spec.put_some("from", endpoint.from.clone());
        spec.put_some("author", endpoint.author.clone());
        spec.put_full("to", list(&endpoint.to));
        spec.put_full("users", list(&endpoint.users));
        spec.put_some("url", endpoint.url.clone());
        if kind == EndpointType::Webhook {
            spec.put("http_method", endpoint.method.unwrap_or(WebhookMethod::Post).to_string());
        }
        let headers =
            endpoint.headers.iter().map(|(key, value)| (key.value.clone(), Value::text(value.as_str())));
        spec.put_full("headers", Value::Map(headers.collect()));
        spec.put_some("body", endpoint.body.clone());
        spec.put("enabled", endpoint.enabled);
        self.comment(spec, kinds::NOTIFICATION, name, endpoint.comment.as_ref());
        let username = endpoint.username.as_ref().and_then(|username| self.text(username));
        let password = endpoint.password.as_ref().and_then(|password| self.secret(password));
        let token = endpoint.token.as_ref().and_then(|token| self.secret(token));
        let mut secrets = Spec::new();
        for (key, written) in endpoint.secrets.iter() {
            let resolved = self.resolve_written(written);
            secrets.put_some(key, resolved.map(|plain| Value::Secret(Secret::new(plain.into_secret()))));
        }
        part.spec.put_some("username", username);
        part.spec.put_some("password", password);
        part.spec.put_some("token", token);
        part.spec.put_full("secrets", Value::Map(secrets));
        self.part(part);
    }
}

type Key = (&'static str, bool, &'static [EndpointType], &'static [EndpointType]);

/// The keys that not every type has: whether one is given, the types that have it, and those that need it.
fn keys(endpoint: &NotificationEndpoint) -> [Key; 14] {
    use EndpointType::{Gotify, Sendmail, Smtp, Webhook};
    const MAIL: &[EndpointType] = &[Sendmail, Smtp];
    [
        ("server", endpoint.server.is_some(), &[Smtp, Gotify], &[Smtp, Gotify]),
        ("port", endpoint.port.is_some(), &[Smtp], &[]),
        ("mode", endpoint.mode.is_some(), &[Smtp], &[]),
        ("username", endpoint.username.is_some(), &[Smtp], &[]),
        ("password", endpoint.password.is_some(), &[Smtp], &[]),
        ("from", endpoint.from.is_some(), MAIL, &[Smtp]),
        ("author", endpoint.author.is_some(), MAIL, &[]),
        ("to", !endpoint.to.is_empty(), MAIL, &[]),
        ("users", !endpoint.users.is_empty(), MAIL, &[]),
        ("token", endpoint.token.is_some(), &[Gotify], &[Gotify]),
        ("url", endpoint.url.is_some(), &[Webhook], &[Webhook]),
        ("method", endpoint.method.is_some(), &[Webhook], &[]),
        ("body", endpoint.body.is_some(), &[Webhook], &[]),
        ("headers", !(endpoint.headers.is_empty() && endpoint.secrets.is_empty()), &[Webhook], &[]),
    ]
}
