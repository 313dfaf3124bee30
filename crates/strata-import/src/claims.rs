//! What only one may have: endpoints, VMIDs, names and addresses. The second that wants one is told.

use crate::output::Put as _;
use crate::output::only;
use crate::records::{Hardware, Nic, ProxmoxTarget, Target, Tls};
use serde_json::{Value as Json, json};

use super::output::Object;
use super::tree::SourceLine;
use super::{Import, NO_TOKEN, base, name};

/// The first VMID that stands in for one that only Proxmox knows.
const FIRST_STAND_IN: i64 = 900_001;

impl Import<'_> {
    /// The target at an endpoint; made if there is none yet.
    pub(super) fn target(&mut self, endpoint: &str, insecure: bool, token: Option<&str>) -> String {
        let endpoint = base(endpoint);
        let mut second = false;
        for (name, target) in &mut self.model.targets {
            let proxmox = &mut target[Target::proxmox.name()];
            if proxmox[ProxmoxTarget::endpoint.name()].as_str() != Some(endpoint.as_str()) {
                continue;
            }
            if insecure {
                proxmox[ProxmoxTarget::tls.name()] = only(Tls::insecure, true);
            }
            // Another part of the repository may know the token.
            let secret = proxmox[ProxmoxTarget::token.name()]["secret"].as_str().unwrap_or_default();
            if let (Some(token), Some(known)) = (token, self.imported.secrets.get_mut(secret)) {
                if known == NO_TOKEN {
                    token.clone_into(known);
                }
                second = known != token;
            }
            let name = name.clone();
            if second {
                let message = format!(
                    "`{endpoint}` has more than one API token in the files that were read: the first of them is used"
                );
                self.note(None, message);
            }
            return name;
        }
        let mut name = "pve".to_owned();
        let mut number = 2;
        while self.model.targets.contains_key(&name) {
            name = format!("pve{number}");
            number += 1;
        }
        let secret = match name.strip_prefix("pve") {
            Some("") | None => "proxmox_api_token".to_owned(),
            Some(number) => format!("proxmox_api_token_{number}"),
        };
        let token = self.secret(&secret, token.unwrap_or(NO_TOKEN));
        let mut proxmox = Object::new();
        proxmox.set(ProxmoxTarget::endpoint, json!(endpoint));
        proxmox.set(ProxmoxTarget::token, token);
        if insecure {
            proxmox.set(ProxmoxTarget::tls, only(Tls::insecure, true));
        }
        self.model.targets.insert(name.clone(), only(Target::proxmox, Json::Object(proxmox)));
        name
    }

    /// A target whose endpoint nobody wrote down: the only one there is, or a place for it.
    pub(super) fn some_target(&mut self, place: &SourceLine, what: &str) -> (String, String) {
        let mut known = self.model.targets.iter();
        if let (Some((name, target)), None) = (known.next(), known.next()) {
            let endpoint = target[Target::proxmox.name()][ProxmoxTarget::endpoint.name()]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            return (name.clone(), endpoint);
        }
        self.note(
            Some(place),
            format!("{what} is in no file that could be read: set the endpoint of the target in strata.yaml"),
        );
        let endpoint = "https://proxmox.invalid:8006".to_owned();
        self.model.stood_in.insert(endpoint.clone());
        (self.target(&endpoint, false, None), endpoint)
    }

    /// Whether a VMID is still free; if not, that is reported.
    pub(super) fn claim(&mut self, endpoint: &str, vm_id: i64, what: &str, place: &SourceLine) -> bool {
        if !(100..=999_999_999).contains(&vm_id) {
            let message =
                format!("`{what}` has the VMID {vm_id}, which Proxmox does not take: it was left out");
            self.note(Some(place), message);
            return false;
        }
        let key = (base(endpoint), vm_id);
        if let Some(other) = self.taken.get(&key) {
            let message =
                format!("`{what}` has the VMID {vm_id}, which `{other}` has already: it was left out");
            self.note(Some(place), message);
            return false;
        }
        self.taken.insert(key, what.to_owned());
        true
    }

    /// A VMID for a machine that Proxmox numbers itself: one that nobody takes for the real one.
    pub(super) fn number(&mut self, endpoint: &str, what: &str, key: &str, place: &SourceLine) -> i64 {
        let free = |number: &i64| !self.taken.contains_key(&(base(endpoint), *number));
        let number = (FIRST_STAND_IN..).find(free).unwrap_or(FIRST_STAND_IN);
        self.taken.insert((base(endpoint), number), what.to_owned());
        self.model.stood_in.insert(number.to_string());
        self.note(
            Some(place),
            format!("`{what}` has no `{key}`, so Proxmox chose one: a VMID from {FIRST_STAND_IN} on stands in for it, write the real one if the machine exists"),
        );
        number
    }

    /// What a container begins with, where no file says it.
    pub(super) fn some_image(&mut self, own: &str, place: &SourceLine) -> String {
        let image = "local:vztmpl/template.tar.zst".to_owned();
        self.model.stood_in.insert(image.clone());
        self.note(
            Some(place),
            format!("which template the container `{own}` begins with is in no file that was read: `{image}` stands in for it"),
        );
        image
    }

    /// A name for a machine that no other on the same Proxmox has.
    pub(super) fn unique(&mut self, endpoint: &str, wanted: &str, stack: &str, place: &SourceLine) -> String {
        // A domain is no part of the name that a machine goes by.
        let is_address = super::output::is_address(wanted);
        let short = wanted.split('.').next().filter(|short| !short.is_empty() && !is_address);
        let own = name(short.unwrap_or(wanted));
        // A name that differs in nothing but its letters' size is kept beside the key.
        if !own.eq_ignore_ascii_case(wanted) {
            self.note(Some(place), format!("`{wanted}` is no name for a machine: it becomes `{own}`"));
        }
        let mut unique = own.clone();
        let mut number = 2;
        while !self.names.insert((base(endpoint), unique.clone())) {
            unique = if number == 2 { format!("{own}-{stack}") } else { format!("{own}-{stack}-{number}") };
            number += 1;
        }
        if unique != own {
            let message = format!("another machine is called `{own}` too: this one becomes `{unique}`");
            self.note(Some(place), message);
        }
        unique
    }

    /// A name for a stack that no other has.
    pub(super) fn stack_name(&mut self, wanted: &str, place: &SourceLine) -> String {
        let own = name(wanted);
        let mut unique = own.clone();
        let mut number = 2;
        while !self.stacks.insert(unique.clone()) {
            unique = format!("{own}-{number}");
            number += 1;
        }
        if unique != own {
            self.note(
                Some(place),
                format!("another stack is called `{own}` too: this one becomes `{unique}`"),
            );
        }
        unique
    }

    /// Takes fixed addresses that another machine has away again.
    pub(super) fn drop_taken_addresses(
        &mut self,
        endpoint: &str,
        guest: &mut Object,
        what: &str,
        place: &SourceLine,
    ) {
        let Some(nics) = guest.get_mut(Hardware::network.name()).and_then(Json::as_array_mut) else { return };
        let mut clashes = Vec::new();
        for nic in nics.iter_mut().filter_map(Json::as_object_mut) {
            for (ip, gateway) in
                [(Nic::ip.name(), Nic::gateway.name()), (Nic::ip6.name(), Nic::gateway6.name())]
            {
                let Some(address) = nic.get(ip).and_then(Json::as_str).and_then(|text| text.split_once('/'))
                else {
                    continue;
                };
                let key = (base(endpoint), address.0.to_owned());
                match self.addresses.get(&key) {
                    Some(other) if other != what => {
                        clashes.push(format!(
                            "`{what}` has the address {}, which `{other}` has already: it was left without one",
                            address.0
                        ));
                        nic.remove(ip);
                        nic.remove(gateway);
                    }
                    _ => {
                        self.addresses.insert(key, what.to_owned());
                    }
                }
            }
        }
        for message in clashes {
            self.note(Some(place), message);
        }
    }

    /// Names the tokens that nobody wrote down.
    pub(super) fn tokens(&mut self) {
        self.theirs();
        for target in self.model.targets.clone().values() {
            let secret = target[Target::proxmox.name()][ProxmoxTarget::token.name()]["secret"]
                .as_str()
                .unwrap_or_default();
            if self.imported.secrets.get(secret).is_some_and(|token| token == NO_TOKEN) {
                let endpoint = target[Target::proxmox.name()][ProxmoxTarget::endpoint.name()]
                    .as_str()
                    .unwrap_or_default();
                self.note(None, format!("the API token of `{endpoint}` is not known: set `{secret}` with `strata secrets edit {}`", self.imported.secrets_file));
            }
        }
    }
}
