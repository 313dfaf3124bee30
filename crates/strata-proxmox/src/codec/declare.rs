//! `keys!` and `property!`: how a spec is written on the wire, declared in one table.

/// Declares the keys of a configuration: what each is called on the wire, where in a spec its value is, and how that is written.
///
/// From one table come the keys of a new guest, the edits of a live one, and the spec that is read back; what the table does not have is
/// left as it is. It reads as `record!` and `kind!` do: a name in quotes, a field, what it takes, and options in brackets.
///
/// # A complete table
///
/// ```
/// use std::collections::BTreeMap;
/// use strata_proxmox::codec::{Property, Table, read, write};
/// use strata_proxmox::{keys, property};
/// use strata_resource::{Kind, Spec};
///
/// static SHELF: Table = Table {
///     kind: Kind::named("shelf"),
///     keys: keys! {
///         "width" size.width: Value(Int) [needs("Shelf.Resize")];
///         "wood" wood: Value(Text) [needs("Shelf.Build"), at_creation];
///         "lightN" lights: Parts(&LIGHT) [needs("Shelf.Wire")];
///     },
/// };
///
/// static LIGHT: Property = property! {
///     unnamed: "model";
///     "model" model: Text;
///     "lm" lumen: Int;
///     "switch" on: OnOff [also(&["state"])];
/// };
///
/// let spec: Spec = serde_json::from_str(r#"{"size": {"width": 90}, "wood": "oak", "lights": {"light0": {"model": "led", "lumen": 400}}}"#)?;
/// let keys = write(&SHELF, &spec)?;
/// let pair = |key: &str, text: &str| (key.to_owned(), text.to_owned());
/// assert_eq!(keys, BTreeMap::from([pair("light0", "led,lm=400"), pair("width", "90"), pair("wood", "oak")]));
/// assert_eq!(read(&SHELF, &keys), spec);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # How to read a line
///
/// `"width" size.width: Value(Int) [needs("Shelf.Resize")];` says: on the wire the key is `width`; in a spec it is the field `size.width`; it
/// is one whole number; a change of it needs the privilege `Shelf.Resize`.
///
/// - A key that ends in `N` (`"lightN"`) stands for `light0`, `light1`, …: the field is the map of the slots.
/// - What the text is made of is one of [`Content`](crate::codec::Content): `Value` with a [`Form`](crate::codec::Form), `Parts` with a
///   [`property!`](crate::property), or one of the forms that only Proxmox VE has.
/// - Options stand in brackets: `needs("…")`, `at_creation` ([`KeyRule`](crate::codec::KeyRule)).
/// - A key without a field is made of several fields, or of what no field says.
#[macro_export]
macro_rules! keys {
    ($(
        $key:literal $($field:ident).* : $content:ident $(( $($argument:expr),* ))?
            $([ $($option:ident $(( $value:expr ))?),* $(,)? ])?;
    )*) => {{
        #[allow(unused_imports, reason = "a table need not have every content and form")]
        use $crate::codec::{Content::*, Form::*};
        &[$(
            $crate::codec::KeyRule::new(
                $crate::codec::Key::of($key),
                &[$(stringify!($field)),*],
                $content $(( $($argument),* ))?,
            )$($(.$option($($value)?))*)?
        ),*]
    }};
}

/// Declares the parts of a property string, such as `led,lm=400`: the name of each, its field, and its form. `unnamed` is the part that may
/// stand first without its name. Complete in [`keys!`].
#[macro_export]
macro_rules! property {
    (
        $(unnamed: $unnamed:literal;)?
        $($key:literal $field:ident : $form:ident $(( $argument:expr ))? $([ $($option:ident ( $value:expr )),* ])?;)*
    ) => {{
        #[allow(unused_imports, reason = "parts need not have every form")]
        use $crate::codec::Form::*;
        $crate::codec::Property {
            default_key: concat!($($unnamed)?),
            parts: &[$(
                $crate::codec::Part::new($key, stringify!($field), $form $(( $argument ))?)
                    $($(.$option($value))*)?
            ),*],
        }
    }};
}
