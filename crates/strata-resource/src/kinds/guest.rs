//! Rules that VMs and containers share.

use crate::rules::ChangeEffect::{InPlace, Migrate, Replace, Restart};
use crate::rules::FieldRule;

pub(super) fn rules() -> Vec<FieldRule> {
    vec![
        FieldRule::new("vmid", Replace).because("the VMID is the guest's identity"),
        FieldRule::new("node", Migrate),
        FieldRule::new("mark", InPlace),
        FieldRule::new("tags", InPlace).set(),
        FieldRule::new("notes", InPlace).default_text(""),
        FieldRule::new("onboot", InPlace).off_by_default(),
        FieldRule::new("protection", InPlace).off_by_default(),
        FieldRule::new("startup.*", InPlace),
        FieldRule::new("pool", InPlace),
        FieldRule::new("power", InPlace),
        FieldRule::new("firewall.options.dhcp", InPlace).off_by_default(),
        FieldRule::new("firewall.options.enable", InPlace).off_by_default(),
        FieldRule::new("firewall.options.macfilter", InPlace).on_by_default(),
        FieldRule::new("firewall.options.ipfilter", InPlace).off_by_default(),
        FieldRule::new("firewall.options.ndp", InPlace).on_by_default(),
        FieldRule::new("firewall.options.radv", InPlace).off_by_default(),
        FieldRule::new("firewall.options.policy_in", InPlace).default_text("DROP"),
        FieldRule::new("firewall.options.policy_out", InPlace).default_text("ACCEPT"),
        FieldRule::new("firewall.options.log_level_in", InPlace).default_text("nolog"),
        FieldRule::new("firewall.options.log_level_out", InPlace).default_text("nolog"),
        FieldRule::new("firewall.rules", InPlace),
        FieldRule::new("options.*", Restart),
    ]
}
