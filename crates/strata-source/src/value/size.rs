//! Sizes of disks and memory: a number in the usual unit, or text with a unit.

use std::fmt;

use strata_yaml::{Context, Decode, Node, ScalarKind, Shape, TextShape, decode_text};

const MIB_PER_GIB: u64 = 1024;

/// The size of a disk, exact to the MiB. A bare number counts GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskSize {
    mib: u64,
}

/// An amount of memory in MiB, which a bare number counts too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemorySize {
    mib: u64,
}

impl DiskSize {
    pub const fn from_gib(gib: u64) -> Self {
        Self { mib: gib * MIB_PER_GIB }
    }

    pub const fn from_mib(mib: u64) -> Self {
        Self { mib }
    }

    pub fn mib(self) -> u64 {
        self.mib
    }

    pub fn bytes(self) -> u64 {
        self.mib << 20
    }

    /// In GiB, if that is a whole number.
    pub fn whole_gib(self) -> Option<u64> {
        self.mib.is_multiple_of(MIB_PER_GIB).then_some(self.mib / MIB_PER_GIB)
    }
}

impl MemorySize {
    pub const fn from_mib(mib: u64) -> Self {
        Self { mib }
    }

    pub fn mib(self) -> u64 {
        self.mib
    }
}

impl fmt::Display for DiskSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whole_gib() {
            Some(gib) => write!(f, "{gib}G"),
            None => write!(f, "{}M", self.mib),
        }
    }
}

impl fmt::Display for MemorySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}M", self.mib)
    }
}

const PATTERN: &str = "^[0-9]+(\\.[0-9]+)? ?([MGT](iB)?)$";
const DISK: TextShape = TextShape {
    what: "a number of GiB, or a size with its unit such as `20G` or `1TiB`",
    pattern: Some(PATTERN),
};
const MEMORY: TextShape = TextShape {
    what: "a number of MiB, or a size with its unit such as `512M` or `4GiB`",
    pattern: Some(PATTERN),
};

/// The most that a number may be: 4 EiB, far more than any disk and safe to multiply.
const MOST_MIB: u64 = 1 << 42;

/// A size with its unit, in MiB.
fn parse(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is not a size");
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit.trim_start() {
        "M" | "MiB" => 1,
        "G" | "GiB" => MIB_PER_GIB,
        "T" | "TiB" => MIB_PER_GIB * 1024,
        "MB" | "GB" | "TB" => {
            let prefix = &unit.trim_start()[..1];
            return Err(format!("`{text}` is ambiguous: write `{number}{prefix}iB` for powers of 1024"));
        }
        "" => return Err(format!("`{text}` has no unit: write the number without quotes, or `{text}G`")),
        _ => return Err(bad()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().map_err(|_| bad())?;
    if fraction.len() > 6 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) || number.ends_with('.') {
        return Err(bad());
    }
    let divisor = 10_u64.pow(fraction.len() as u32);
    let part = if fraction.is_empty() { 0 } else { fraction.parse::<u64>().map_err(|_| bad())? * scale };
    if !part.is_multiple_of(divisor) {
        return Err(format!("`{text}` is not a whole number of MiB"));
    }
    let mib = whole.checked_mul(scale).and_then(|mib| mib.checked_add(part / divisor));
    mib.filter(|mib| (1..=MOST_MIB).contains(mib)).ok_or_else(|| format!("`{text}` is out of range"))
}

/// A number in `unit` MiB, or text with a unit.
fn decode(node: &Node, cx: &mut Context<'_>, unit: u64, shape: TextShape) -> Option<u64> {
    let number = node.as_scalar().and_then(|scalar| match scalar.kind() {
        ScalarKind::Integer(value) => Some(value),
        _ => None,
    });
    let Some(number) = number else {
        // What comes from outside has no quotes to tell a number from text.
        return decode_text(node, shape, cx, |text| match text.parse::<u64>() {
            Ok(number) if node.as_scalar().is_none() && number <= MOST_MIB / unit => Ok(number * unit),
            _ => parse(text),
        });
    };
    let fits =
        number.and_then(|number| u64::try_from(number).ok()).filter(|n| (1..=MOST_MIB / unit).contains(n));
    if fits.is_none() {
        cx.invalid(node, format!("{} is out of range: it takes {}", cx.what(), shape.what), None);
    }
    fits.map(|number| number * unit)
}

fn shape(text: TextShape, most: u64) -> Shape {
    Shape::AnyOf(vec![Shape::Integer(1, most as i64), Shape::Text(text)])
}

impl Decode for DiskSize {
    fn shape() -> Shape {
        shape(DISK, MOST_MIB / MIB_PER_GIB)
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        decode(node, cx, MIB_PER_GIB, DISK).map(|mib| Self { mib })
    }
}

impl Decode for MemorySize {
    fn shape() -> Shape {
        shape(MEMORY, MOST_MIB)
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        decode(node, cx, 1, MEMORY).map(|mib| Self { mib })
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn units_are_powers_of_1024() {
        assert_eq!(parse("512M"), Ok(512));
        assert_eq!(parse("4GiB"), Ok(4096));
        assert_eq!(parse("1T"), Ok(1 << 20));
        assert_eq!(parse("1.5 G"), Ok(1536));
        assert_eq!(parse("4GB"), Err("`4GB` is ambiguous: write `4GiB` for powers of 1024".to_owned()));
        assert_eq!(
            parse("40"),
            Err("`40` has no unit: write the number without quotes, or `40G`".to_owned())
        );
        assert!(parse("0.0001G").is_err());
        assert!(
            parse("G").is_err()
                && parse("1.G").is_err()
                && parse("0M").is_err()
                && parse("99999999999T").is_err()
        );
    }
}
