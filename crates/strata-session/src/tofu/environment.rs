//! What OpenTofu is told by its environment: secrets, where the state is, and how it is encrypted.

use std::collections::BTreeMap;
use std::path::Path;

use strata_secret::SecretString;
use strata_source::settings::state::Backend;
use strata_source::{EffectiveStack, Model, Reference};
use strata_tofu::hcl::{Body, Expr};
use strata_tofu::{HttpAddresses, Overview, TOKEN_USER, state_name};

use super::session::Inputs;
use crate::error::SessionError;
use crate::workspace::Workspace;

pub(super) type Variables = BTreeMap<String, SecretString>;

/// Everything for one stack, and whether secrets in it end up in a file in the clear: OpenTofu keeps what it was given in its state,
/// which may be a file beside the code.
pub(super) async fn variables(
    workspace: &Workspace,
    stack: &EffectiveStack,
    folder: &Path,
    is_tofu: bool,
    inputs: Inputs<'_>,
) -> Result<(Variables, bool), SessionError> {
    let overview = Overview::read(folder);
    let mut has_secrets = false;
    let mut variables = Variables::new();
    let mut set = |name: &str, value: &str| {
        variables.insert(name.to_owned(), SecretString::new(value.to_owned()));
    };
    set("TF_IN_AUTOMATION", "1");
    set("TF_INPUT", "0");
    // R2 and others refuse the checksums that newer clients send.
    set("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required");
    set("AWS_RESPONSE_CHECKSUM_VALIDATION", "when_required");
    if matches!(stack.model, Model::Tofu(_)) {
        // A stack written by hand gets the secrets that it declares variables for, and what its stack.yaml says.
        for name in &overview.variables {
            if let Some(secret) = workspace.secret_if_any(name)? {
                has_secrets = true;
                variables.insert(format!("TF_VAR_{name}"), secret);
            }
        }
        let given = stack.tofu().into_iter().flat_map(|given| given.variables.iter());
        has_secrets |= given.filter_map(|(_, value)| value.reference()).any(Reference::is_secret);
        for (name, value) in workspace.tofu_inputs(stack, inputs).await? {
            variables.insert(format!("TF_VAR_{name}"), value);
        }
    } else {
        for (name, secret) in workspace.tofu_variables(stack)? {
            variables.insert(format!("TF_VAR_{name}"), secret);
        }
    }
    match overview.backend.as_deref() {
        Some("http") => http(workspace, stack, &overview, &mut variables)?,
        Some("s3") => s3(workspace, &mut variables)?,
        Some("pg") => postgres(workspace, &mut variables)?,
        _ => {}
    }
    let mut encrypted = is_tofu && overview.is_encrypted;
    if is_tofu && !overview.is_encrypted {
        let (passphrase, whole) = match workspace.state_passphrase()? {
            Some(passphrase) => (passphrase, true),
            None => (workspace.plan_passphrase()?, false),
        };
        encrypted = whole;
        let settings = workspace.state_settings().and_then(|state| state.encryption.as_ref());
        let plain = settings.is_some_and(|settings| settings.previous.iter().any(|key| key.plain));
        variables.insert("TF_ENCRYPTION".to_owned(), encryption(&passphrase, whole, whole && plain));
    }
    let is_file = matches!(overview.backend.as_deref(), None | Some("local"));
    Ok((variables, has_secrets && is_file && !encrypted))
}

fn http(
    workspace: &Workspace,
    stack: &EffectiveStack,
    overview: &Overview,
    variables: &mut Variables,
) -> Result<(), SessionError> {
    let state = workspace.state_settings();
    let is_ours = state.is_some_and(|state| state.backend == Some(Backend::Http));
    if let Some(state) = state.filter(|_| is_ours) {
        // The file says the address of the default environment; a block without one leaves it to us.
        if !stack.is_default_environment || !overview.backend_has_address {
            let name = state_name(&stack.environment, &stack.name);
            for (name, value) in HttpAddresses::of(state, &name).iter().flat_map(HttpAddresses::variables) {
                variables.insert(name.to_owned(), SecretString::new(value));
            }
        }
        let (user, password) = match (&state.token, &state.username, &state.password) {
            (Some(token), _, _) => {
                (Some(SecretString::new(TOKEN_USER.to_owned())), Some(workspace.value(token)?))
            }
            (None, user, password) => (
                user.as_ref().map(|user| workspace.value(user)).transpose()?,
                password.as_ref().map(|password| workspace.value(password)).transpose()?,
            ),
        };
        variables.extend(user.map(|user| ("TF_HTTP_USERNAME".to_owned(), user)));
        variables.extend(password.map(|password| ("TF_HTTP_PASSWORD".to_owned(), password)));
    }
    // The cluster-template family keeps both in its encrypted file.
    for (variable, secret) in
        [("TF_HTTP_USERNAME", "tfstate_username"), ("TF_HTTP_PASSWORD", "tfstate_password")]
    {
        let given = variables.contains_key(variable) || workspace.surroundings().variable(variable).is_some();
        if !given && let Some(secret) = workspace.secret_if_any(secret)? {
            variables.insert(variable.to_owned(), secret);
        }
    }
    Ok(())
}

fn s3(workspace: &Workspace, variables: &mut Variables) -> Result<(), SessionError> {
    let Some(state) = workspace.state_settings() else { return Ok(()) };
    for (variable, value) in
        [("AWS_ACCESS_KEY_ID", &state.access_key_id), ("AWS_SECRET_ACCESS_KEY", &state.secret_access_key)]
    {
        if let Some(value) = value {
            variables.insert(variable.to_owned(), workspace.value(value)?);
        }
    }
    Ok(())
}

fn postgres(workspace: &Workspace, variables: &mut Variables) -> Result<(), SessionError> {
    let Some(state) = workspace.state_settings() else { return Ok(()) };
    if let Some(connection) = &state.connection {
        variables.insert("PG_CONN_STR".to_owned(), workspace.value(connection)?);
    }
    if let Some(password) = &state.password {
        variables.insert("PGPASSWORD".to_owned(), workspace.value(password)?);
    }
    Ok(())
}

/// State and plan, or the saved plan alone. What was never encrypted is read only where the settings say that there may be such.
fn encryption(passphrase: &SecretString, whole: bool, takes_plain: bool) -> SecretString {
    let mut body = Body::new();
    body.block("key_provider", &["pbkdf2", "strata"], |body| {
        body.attribute("passphrase", passphrase.expose());
    });
    body.block("method", &["aes_gcm", "strata"], |body| {
        body.attribute("keys", Expr::raw("key_provider.pbkdf2.strata"));
    });
    if takes_plain {
        body.block("method", &["unencrypted", "none"], |_| {});
    }
    for part in ["plan", "state"].into_iter().filter(|part| whole || *part == "plan") {
        body.block(part, &[], |body| {
            body.attribute("method", Expr::raw("method.aes_gcm.strata"));
            if takes_plain {
                body.block("fallback", &[], |body| {
                    body.attribute("method", Expr::raw("method.unencrypted.none"));
                });
            }
        });
    }
    SecretString::new(body.render())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_always_encrypted() {
        let passphrase = SecretString::new("a \"quoted\" ${one}".to_owned());
        let plan = encryption(&passphrase, false, false);
        assert!(plan.expose().contains(r#"passphrase = "a \"quoted\" $${one}""#), "{}", plan.expose());
        assert!(plan.expose().contains("plan {") && !plan.expose().contains("state {"));
        let both = encryption(&passphrase, true, true);
        assert!(both.expose().contains("state {") && both.expose().contains("method.unencrypted.none"));
    }
}
