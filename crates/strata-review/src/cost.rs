//! What plans ask of the hypervisors: cores, memory and disk of guests, before and after.

use std::collections::BTreeMap;

use strata_engine::{Step, StepAction};
use strata_resource::{Spec, Value};
use strata_session::{Capacity, Measure};

use crate::reviewed::Reviewed;

/// The size of some guests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    pub cores: i64,
    /// In MiB.
    pub memory: i64,
    /// In bytes.
    pub disk: i64,
}

/// The guests that plans touch, before and after them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    pub before: Size,
    pub after: Size,
    /// What the hypervisors have before the plan, where they say it.
    pub capacity: Option<Capacity>,
}

/// All hypervisors together; none without any.
pub fn sum(capacity: &BTreeMap<String, Capacity>) -> Option<Capacity> {
    let add = |one: Measure, other: Measure| Measure {
        total: one.total + other.total,
        taken: one.taken + other.taken,
    };
    capacity.values().copied().reduce(|one, other| Capacity {
        cores: add(one.cores, other.cores),
        memory: add(one.memory, other.memory),
        disk: add(one.disk, other.disk),
    })
}

impl Cost {
    pub fn of(reviewed: &Reviewed) -> Self {
        let mut cost = Self::default();
        let steps = reviewed.plans.iter().flat_map(|file| &file.stacks).flat_map(|stack| &stack.plan.steps);
        for step in steps.filter(|step| is_guest(step)) {
            let recorded =
                step.recorded.as_ref().map(|recorded| Size::of(&recorded.spec)).unwrap_or_default();
            match step.action {
                StepAction::Create => cost.after += Size::of(&step.spec),
                StepAction::Update => {
                    cost.before += recorded;
                    cost.after += Size::of(&step.spec);
                }
                StepAction::Delete | StepAction::DeleteFormer => cost.before += Size::of(&step.spec),
                StepAction::Record | StepAction::Forget => {}
            }
        }
        cost
    }

    pub fn is_none(&self) -> bool {
        self.before == Size::default() && self.after == Size::default()
    }

    /// Name, before, after, difference; then what all guests have after it, of what the hypervisors have.
    pub fn rows(&self) -> Vec<[String; 5]> {
        const MIB: i64 = 1 << 20;
        let gib = |bytes: i64| bytes as f64 / 1_073_741_824.0;
        let all = self.all();
        let row = |name: &str, size: [f64; 2], share: Option<[f64; 2]>, unit: &str| {
            let [before, after] = size;
            let (value, sign) =
                (|value: f64| format!("{}{unit}", short(value)), if after > before { "+" } else { "" });
            let share = share.map(|[taken, total]| format!("{} of {}", value(taken), value(total)));
            [
                name.to_owned(),
                value(before),
                value(after),
                format!("{sign}{}", value(after - before)),
                share.unwrap_or_default(),
            ]
        };
        let share = |of: fn(&Capacity) -> Measure, unit: fn(i64) -> f64| {
            all.as_ref().map(of).map(|own| [unit(own.taken), unit(own.total)])
        };
        let sizes =
            |of: fn(&Size) -> i64, unit: fn(i64) -> f64| [unit(of(&self.before)), unit(of(&self.after))];
        let plain = |count: i64| count as f64;
        vec![
            row("cores", sizes(|size| size.cores, plain), share(|all| all.cores, plain), ""),
            row("memory", sizes(|size| size.memory * MIB, gib), share(|all| all.memory, gib), " GiB"),
            row("disk", sizes(|size| size.disk, gib), share(|all| all.disk, gib), " GiB"),
        ]
    }

    /// What there is with the plan carried out. A hypervisor says nothing of zero.
    fn all(&self) -> Option<Capacity> {
        const MIB: i64 = 1 << 20;
        let own = self.capacity.filter(|own| own.cores.total > 0 && own.memory.total > 0)?;
        let more = |measure: Measure, difference: i64| Measure {
            total: measure.total,
            taken: (measure.taken + difference).max(0),
        };
        Some(Capacity {
            cores: more(own.cores, self.after.cores - self.before.cores),
            memory: more(own.memory, (self.after.memory - self.before.memory) * MIB),
            disk: more(own.disk, self.after.disk - self.before.disk),
        })
    }

    /// What the plan asks more of than there is. Cores are shared, and more of them than there are is usual.
    pub fn short_of(&self) -> Option<&'static str> {
        let all = self.all()?;
        let is_short = |own: Measure, grows: bool| grows && own.taken > own.total;
        match () {
            () if is_short(all.memory, self.after.memory > self.before.memory) => Some("memory"),
            () if is_short(all.disk, self.after.disk > self.before.disk) => Some("disk"),
            () => None,
        }
    }
}

fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// What has memory of its own.
fn is_guest(step: &Step) -> bool {
    step.spec.get("memory").and_then(Value::as_map).is_some()
}

impl Size {
    fn of(spec: &Spec) -> Self {
        let int = |group: &str, field: &str| {
            spec.get(group).and_then(Value::as_map).and_then(|map| map.get(field)).and_then(Value::as_int)
        };
        let disk = ["disks", "mounts"].into_iter().filter_map(|group| spec.get(group)?.as_map());
        let disk =
            disk.flat_map(|slots| slots.values()).filter_map(|slot| slot.as_map()?.get("size")?.as_int());
        Self {
            cores: int("cpu", "cores").unwrap_or(1) * int("cpu", "sockets").unwrap_or(1),
            memory: int("memory", "size").unwrap_or(512),
            disk: disk.sum::<i64>() + int("rootfs", "size").unwrap_or_default(),
        }
    }
}

impl std::ops::AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.cores += other.cores;
        self.memory += other.memory;
        self.disk += other.disk;
    }
}
