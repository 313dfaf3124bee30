//! Things by slot: `scsi0`, `net3`; a list fills the slots from 0.

use std::fmt::Debug;
use std::marker::PhantomData;

use strata_diagnostics::{Diagnostic, nearest};
use strata_yaml::{Context, Decode, Node, Shape, Spanned, TextShape};

/// The slots of one kind of device.
pub trait SlotNames: Debug + Clone + PartialEq + 'static {
    /// Prefixes and how many slots each has.
    const BUSES: &'static [(&'static str, u32)];
    const SHAPE: TextShape;

    /// The bus whose slots a list fills; without one only a mapping will do.
    const LIST: Option<&'static str>;
}

/// The values by slot, in the order they were written.
#[derive(Debug, Clone, PartialEq)]
pub struct Slots<T, N> {
    entries: Vec<(Spanned<String>, T)>,
    names: PhantomData<N>,
}

impl<T, N> Slots<T, N> {
    pub fn iter(&self) -> impl Iterator<Item = (&Spanned<String>, &T)> {
        self.entries.iter().map(|(slot, value)| (slot, value))
    }

    pub fn get(&self, slot: &str) -> Option<&T> {
        self.entries.iter().find(|(name, _)| name.value == slot).map(|(_, value)| value)
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

impl<T, N> Default for Slots<T, N> {
    fn default() -> Self {
        Self { entries: Vec::new(), names: PhantomData }
    }
}

/// Whether the slot exists: a known prefix and a number in its range, without leading zeros.
fn exists<N: SlotNames>(slot: &str) -> bool {
    N::BUSES.iter().any(|(bus, count)| {
        slot.strip_prefix(bus)
            .and_then(|number| number.parse::<u32>().ok().filter(|index| index.to_string() == number))
            .is_some_and(|index| index < *count)
    })
}

/// Whether a machine can boot from the slot.
pub fn is_bootable(slot: &str) -> bool {
    exists::<DiskSlots>(slot) || exists::<NetSlots>(slot)
}

fn check<N: SlotNames>(slot: &Spanned<String>, cx: &mut Context<'_>) -> bool {
    if exists::<N>(slot) {
        return true;
    }
    let all: Vec<String> = N::BUSES
        .iter()
        .flat_map(|(bus, count)| (0..*count).map(move |index| format!("{bus}{index}")))
        .collect();
    let ranges: Vec<String> = N::BUSES
        .iter()
        .map(
            |(bus, count)| {
                if *count == 1 { format!("{bus}0") } else { format!("{bus}0 to {bus}{}", count - 1) }
            },
        )
        .collect();
    let meant = nearest(slot, all.iter().map(String::as_str)).map(|meant| format!("did you mean `{meant}`?"));
    let problem = Diagnostic::error("unknown-slot", format!("there is no slot `{slot}`")).at(slot.span);
    cx.push(problem.note(format!("the slots are {}", ranges.join(", "))).maybe_hint(meant));
    false
}

impl<T: Decode, N: SlotNames> Decode for Slots<T, N> {
    fn shape() -> Shape {
        let map = Shape::Map(N::SHAPE, Box::new(T::shape()));
        match N::LIST {
            Some(_) => Shape::AnyOf(vec![Shape::List(Box::new(T::shape())), map]),
            None => map,
        }
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        if node.is_null() {
            return Some(Self::default());
        }
        let named: Vec<(Spanned<String>, &Node)> = match (node.as_mapping(), node.as_list(), N::LIST) {
            (Some(mapping), _, _) => {
                mapping.entries.iter().map(|entry| (entry.key.clone(), &entry.value)).collect()
            }
            (_, Some(items), Some(bus)) => items
                .iter()
                .enumerate()
                .map(|(index, item)| (Spanned::new(format!("{bus}{index}"), item.span), item))
                .collect(),
            _ => {
                cx.wrong_type(node, &Self::shape());
                return None;
            }
        };
        let mut slots = Self::default();
        for (slot, value) in named {
            let known = check::<N>(&slot, cx);
            if cx.is_partial() && value.is_null() {
                continue;
            }
            if let Some(value) = cx.named(&slot, |cx| T::decode(value, cx)).filter(|_| known) {
                slots.entries.push((slot, value));
            }
        }
        Some(slots)
    }

    fn absent() -> Option<Self> {
        Some(Self::default())
    }
}

macro_rules! slots {
    ($($(#[doc = $doc:literal])* $name:ident: $buses:expr, $pattern:literal, $list:expr;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name;

        impl SlotNames for $name {
            const BUSES: &'static [(&'static str, u32)] = $buses;
            const SHAPE: TextShape = TextShape { what: "a slot", pattern: Some($pattern) };
            const LIST: Option<&'static str> = $list;
        }
    )*};
}

slots! {
    /// Disks and CD drives of a VM.
    DiskSlots: &[("scsi", 31), ("virtio", 16), ("sata", 6), ("ide", 4)],
        "^(scsi([0-9]|[12][0-9]|30)|virtio([0-9]|1[0-5])|sata[0-5]|ide[0-3])$", None;
    /// Network devices of a VM or container.
    NetSlots: &[("net", 32)], "^net([0-9]|[12][0-9]|3[01])$", Some("net");
    /// PCI devices handed to a VM.
    PciSlots: &[("hostpci", 16)], "^hostpci([0-9]|1[0-5])$", Some("hostpci");
    /// USB devices handed to a VM.
    UsbSlots: &[("usb", 14)], "^usb([0-9]|1[0-3])$", Some("usb");
    /// Serial ports of a VM.
    SerialSlots: &[("serial", 4)], "^serial[0-3]$", Some("serial");
    /// Volumes of a container besides its root.
    MountSlots: &[("mp", 256)], "^mp([0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])$", None;
}
