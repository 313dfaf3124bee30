//! Who we are to the API: a token, a ticket, or a token with a ticket for what only root may do.

use std::time::Duration;

use http::Method;
use http::header::{AUTHORIZATION, COOKIE, HeaderName, HeaderValue};
use strata_net::{Body, Clock, HttpClient, Request};
use strata_secret::{Redactor, SecretString};
use tokio::sync::Mutex;

use super::error::{CallError, ConnectError};
use super::{BASE, FORM, Rights};
use crate::Login;
use crate::api::{ApiError, Envelope, Params, Ticket, encode_path_part};

/// A ticket is good for two hours.
const TICKET_LIFE: Duration = Duration::from_secs(110 * 60);
const CSRF: HeaderName = HeaderName::from_static("csrfpreventiontoken");

type Headers = Vec<(HeaderName, HeaderValue)>;

pub(super) struct Auth {
    token: Option<Token>,
    login: Option<Login>,
    ticket: Mutex<Option<HeldTicket>>,
    redactor: Redactor,
}

struct Token {
    /// `user@realm!name`
    id: String,
    header: HeaderValue,
}

#[derive(Clone)]
struct HeldTicket {
    cookie: HeaderValue,
    csrf: HeaderValue,
    until: Duration,
}

impl Auth {
    pub(super) fn new(
        token: Option<SecretString>,
        login: Option<Login>,
        redactor: &Redactor,
    ) -> Result<Self, ConnectError> {
        let token = token.map(|token| Token::new(&token, redactor)).transpose()?;
        if let Some(login) = &login {
            if !login.user.contains('@') {
                return Err(ConnectError::User(login.user.clone()));
            }
            redactor.add(&login.password);
        }
        if token.is_none() && login.is_none() {
            return Err(ConnectError::NoCredentials);
        }
        Ok(Self { token, login, ticket: Mutex::new(None), redactor: redactor.clone() })
    }

    pub(super) fn identity(&self) -> &str {
        match (&self.token, &self.login) {
            (Some(token), _) => &token.id,
            (None, Some(login)) => &login.user,
            (None, None) => "",
        }
    }

    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    pub(super) fn has_root_login(&self) -> bool {
        self.login.as_ref().is_some_and(|login| login.user == "root@pam")
    }

    pub(super) fn login_user(&self) -> Option<&str> {
        self.login.as_ref().map(|login| login.user.as_str())
    }

    pub(super) fn login_password(&self) -> Option<&SecretString> {
        self.login.as_ref().map(|login| &login.password)
    }

    fn uses_ticket(&self, rights: Rights) -> bool {
        self.token.is_none() || (rights == Rights::Root && self.login.is_some())
    }

    /// The headers that let a request in; gets a ticket first where one is needed.
    pub(super) async fn headers(
        &self,
        http: &HttpClient,
        method: &Method,
        rights: Rights,
        clock: &dyn Clock,
    ) -> Result<Headers, CallError> {
        if let (Some(token), false) = (&self.token, self.uses_ticket(rights)) {
            return Ok(vec![(AUTHORIZATION, token.header.clone())]);
        }
        let Some(login) = &self.login else { return Ok(Vec::new()) };
        let mut held = self.ticket.lock().await;
        let now = clock.monotonic();
        let ticket = match held.as_ref().filter(|ticket| ticket.until > now) {
            Some(ticket) => ticket.clone(),
            None => held.insert(log_in(http, login, &self.redactor, now).await?).clone(),
        };
        let mut headers = vec![(COOKIE, ticket.cookie)];
        if method != Method::GET {
            headers.push((CSRF, ticket.csrf));
        }
        Ok(headers)
    }

    /// Drops the ticket that was just refused; false if it was a token.
    pub(super) async fn forget_ticket(&self, rights: Rights) -> bool {
        self.uses_ticket(rights) && self.ticket.lock().await.take().is_some()
    }
}

impl Token {
    fn new(token: &SecretString, redactor: &Redactor) -> Result<Self, ConnectError> {
        let text = token.expose().trim();
        let (id, secret) = text.split_once('=').ok_or(ConnectError::Token)?;
        let named = id.split_once('!').is_some_and(|(user, name)| user.contains('@') && !name.is_empty());
        if !named || secret.is_empty() {
            return Err(ConnectError::Token);
        }
        redactor.add_text(secret);
        let mut header =
            HeaderValue::try_from(format!("PVEAPIToken={text}")).map_err(|_| ConnectError::Token)?;
        header.set_sensitive(true);
        Ok(Self { id: id.to_owned(), header })
    }
}

async fn log_in(
    http: &HttpClient,
    login: &Login,
    redactor: &Redactor,
    now: Duration,
) -> Result<HeldTicket, CallError> {
    let path = "/access/ticket";
    let mut params = Params::new().with("username", &login.user);
    params.set_secret("password", login.password.expose());
    let mut request = Request::new(Method::POST, format!("{BASE}{path}"));
    request.body = Body::Bytes { content_type: FORM.to_owned(), bytes: params.encode().into() };
    let response = http.send(&request).await?;
    if response.status != 200 {
        let error = ApiError::redacted(redactor, "POST", path, &response);
        return Err(match response.status {
            401 => CallError::Login(format!("`{}` cannot log in: {}", login.user, error.text())),
            _ => CallError::Api(Box::new(error)),
        });
    }
    let answer: Envelope<Ticket> = serde_json::from_slice(&response.body)
        .map_err(|error| CallError::unreadable("POST", path, &error))?;
    if answer.data.needs_second_factor {
        let user = &login.user;
        return Err(CallError::Login(format!("`{user}` needs a second factor to log in; use an API token")));
    }
    let (Some(ticket), Some(csrf)) = (answer.data.ticket, answer.data.csrf) else {
        return Err(CallError::Login(format!("`{}` was let in without a ticket", login.user)));
    };
    redactor.add_text(&ticket);
    redactor.add_text(&csrf);
    let sensitive = |text: String| {
        let mut value = HeaderValue::try_from(text)
            .map_err(|_| CallError::Login("the ticket holds characters that no header can".to_owned()))?;
        value.set_sensitive(true);
        Ok::<_, CallError>(value)
    };
    Ok(HeldTicket {
        cookie: sensitive(format!("PVEAuthCookie={}", encode_path_part(&ticket)))?,
        csrf: sensitive(csrf)?,
        until: now + TICKET_LIFE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auth(token: Option<&str>, user: Option<&str>) -> Result<Auth, ConnectError> {
        let login =
            user.map(|user| Login { user: user.to_owned(), password: SecretString::from("pw-secret") });
        Auth::new(token.map(SecretString::from), login, &Redactor::new())
    }

    #[test]
    fn credentials_are_checked_before_anything_is_sent() {
        for token in ["", "root@pam", "root@pam!test", "root!test=x", "root@pam!=x", "root@pam!test="] {
            assert!(matches!(auth(Some(token), None), Err(ConnectError::Token)), "{token}");
        }
        assert!(matches!(auth(None, Some("root")), Err(ConnectError::User(_))));
        assert!(matches!(auth(None, None), Err(ConnectError::NoCredentials)));
        assert_eq!(auth(Some("a@pve!t=uuid"), None).ok().unwrap().identity(), "a@pve!t");
    }

    #[test]
    fn root_rights_use_the_ticket_where_there_is_a_login() {
        let both = auth(Some("root@pam!t=uuid"), Some("root@pam")).ok().unwrap();
        assert!(both.uses_ticket(Rights::Root) && !both.uses_ticket(Rights::Usual));
        let token = auth(Some("root@pam!t=uuid"), None).ok().unwrap();
        assert!(!token.uses_ticket(Rights::Root));
        let ticket = auth(None, Some("root@pam")).ok().unwrap();
        assert!(ticket.uses_ticket(Rights::Usual));
    }
}
