//! What plans ask of the hypervisors: cores, memory and disk of guests, before and after.

use strata_engine::{Step, StepAction};
use strata_resource::{Spec, Value};

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

    /// Name, before, after, difference.
    pub fn rows(&self) -> Vec<[String; 4]> {
        const GIB: f64 = 1_073_741_824.0;
        let gib = |bytes: i64| bytes as f64 / GIB;
        let row = |name: &str, before: f64, after: f64, unit: &str| {
            let (value, sign) =
                (|value: f64| format!("{}{unit}", short(value)), if after > before { "+" } else { "" });
            [name.to_owned(), value(before), value(after), format!("{sign}{}", value(after - before))]
        };
        vec![
            row("cores", self.before.cores as f64, self.after.cores as f64, ""),
            row("memory", self.before.memory as f64 / 1024.0, self.after.memory as f64 / 1024.0, " GiB"),
            row("disk", gib(self.before.disk), gib(self.after.disk), " GiB"),
        ]
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
