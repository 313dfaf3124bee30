//! `record!`: a struct, its decoder and its description, declared in one table.

/// Declares one kind of mapping in the files of a repository: its keys, what each takes, and what is said of it.
///
/// From one table come the struct that the rest of Strata works with, the decoder that reads it and reports every mistake with
/// file and line, the JSON Schema that editors complete from, the tables of the reference, and a constant for the name of each key.
/// A key that is not in the table does not exist.
///
/// # A complete record
///
/// A disk of a VM as Proxmox has it: a size in gigabytes, perhaps another storage, `discard` as a switch, and a cache mode out of a few
/// words.
///
/// ```
/// use strata_diagnostics::{Diagnostics, SourceMap};
/// use strata_yaml::{Context, Decode, NoOutside, choice, parse, record, schema};
///
/// choice! {
///     /// How the host caches a disk.
///     pub enum Cache {
///         None = "none",
///         Writeback = "writeback",
///     }
/// }
///
/// record! {
///     /// A disk of a VM.
///     pub struct Disk [shorthand("size")] {
///         /// How large it is, in GiB.
///         "size" size: u32 [range(1, 131072)];
///         /// The storage that it is on; the stack's unless given.
///         "storage" storage: Option<String>;
///         /// Whether freed blocks are given back to the storage.
///         "discard" discard: bool = false;
///         /// How the host caches it.
///         "cacheMode" cache_mode: Cache = Cache::None;
///     }
/// }
///
/// // What a user writes.
/// let mut sources = SourceMap::new();
/// let file = sources.add("disk.yaml", "size: 32\ncacheMode: writeback\n");
/// let mut mistakes = Diagnostics::new();
/// let tree = parse(&sources, file, &mut mistakes).required(file, "a disk", &mut mistakes).unwrap();
/// let disk = Disk::decode(&tree, &mut Context::new(&mut mistakes, &NoOutside)).unwrap();
/// assert_eq!((disk.size, disk.discard, disk.cache_mode), (32, false, Cache::Writeback));
///
/// // What the same table gives besides: the name of a key in files, and the schema.
/// assert_eq!(Disk::cache_mode.name(), "cacheMode");
/// assert!(schema::<Disk>("disk").to_string().contains("freed blocks"));
/// ```
///
/// # How to read a line
///
/// `"cacheMode" cache_mode: Cache = Cache::None;` says: in files the key is `cacheMode`; in code the field is `cache_mode`; it takes one of
/// the words of `Cache`; without the key it is `none`. The comment above it is what a user reads in the reference, in the editor and in the hint of
/// a message.
///
/// - `name: u32` must be given; `Option<u32>` may be left out; `= value` stands for a key that is left out.
/// - `bool`, numbers, `String`, `Vec<T>`, [`Map<T>`](crate::Map) (by name), another record, a [`choice!`](crate::choice), or a type of one's own that
///   implements [`Decode`](crate::Decode). [`Value<T>`](crate::Value) takes a reference (`{secret: name}`) as well.
/// - Rules stand in brackets behind the type: `[range(1, 64)]`, `[aliases(&["old_name"])]`, … ([`Rules`](crate::Rules)).
/// - Options of the whole record stand behind its name: `[shorthand("size")]` lets `disk: 32` stand for `disk: {size: 32}`,
///   … ([`RecordSpec`](crate::RecordSpec)).
/// - `..hardware: Hardware;` takes the keys of another record as its own.
#[macro_export]
macro_rules! record {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident $([ $($option:ident $(( $($argument:expr),* ))?),* ])? {
            $(
                $(#[doc = $field_doc:literal])*
                $($key:literal)? $(..)? $field:ident : $type:ty
                    $([ $($rule:ident $(( $($value:expr),* ))?),* ])? $(= $default:expr)?
            );* $(;)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $( $(#[doc = $field_doc])* pub $field: $type, )*
            /// Where the record and its fields were written.
            pub places: $crate::FieldSpans,
        }

        // Named as the fields are, which are written in lower case.
        #[allow(non_upper_case_globals, dead_code)]
        impl $name {
            $( $crate::record_field!(key ($($key)?) $field); )*
        }

        impl $crate::Record for $name {
            fn spec() -> &'static $crate::RecordSpec {
                static SPEC: ::std::sync::LazyLock<$crate::RecordSpec> = ::std::sync::LazyLock::new(|| {
                    let doc = $crate::join_doc(&[$($doc),*]);
                    let mut spec = $crate::RecordSpec::new(stringify!($name), doc)
                        $($( .$option($( $($argument),* )?) )*)?;
                    <$name as $crate::Record>::fields(&mut spec.fields);
                    spec
                });
                &SPEC
            }

            fn fields(into: &mut ::std::vec::Vec<$crate::FieldSpec>) {
                $(
                    $crate::record_field!(
                        spec into ($($key)?) $type,
                        ($crate::join_doc(&[$($field_doc),*])),
                        ($crate::Rules::default() $($( .$rule($( $($value),* )?) )*)?),
                        ($($default)?)
                    );
                )*
            }

            fn take(fields: &mut $crate::Fields<'_, '_, '_>) -> ::std::option::Option<Self> {
                $(
                    let $field: ::std::option::Option<$type> = $crate::record_field!(
                        take fields ($($key)?) $type,
                        ([$($field_doc),*]),
                        ($crate::Rules::default() $($( .$rule($( $($value),* )?) )*)?),
                        ($($default)?)
                    );
                )*
                ::std::option::Option::Some(Self { $( $field: $field?, )* places: fields.places() })
            }
        }

        impl $crate::Decode for $name {
            fn shape() -> $crate::Shape {
                $crate::Shape::Record(<$name as $crate::Record>::spec)
            }

            fn decode(node: &$crate::Node, cx: &mut $crate::Context<'_>) -> ::std::option::Option<Self> {
                $crate::decode_record(node, cx)
            }
        }
    };
}

/// One field of a record, for [`record!`] only: its description, or its value.
#[doc(hidden)]
#[macro_export]
macro_rules! record_field {
    (key ($key:literal) $field:ident) => {
        #[doc = concat!("The key `", $key, "` in files.")]
        pub const $field: $crate::Key = $crate::Key::new($key);
    };
    (key () $field:ident) => {};
    (spec $into:ident ($key:literal) $type:ty, ($doc:expr), ($rules:expr), ()) => {
        $into.push($crate::FieldSpec {
            key: $key,
            doc: $doc,
            required: <$type as $crate::Decode>::absent().is_none(),
            shape: <$type as $crate::Decode>::shape(),
            rules: $rules,
        })
    };
    (spec $into:ident ($key:literal) $type:ty, ($doc:expr), ($rules:expr), ($default:expr)) => {
        $into.push($crate::FieldSpec {
            key: $key,
            doc: $doc,
            required: false,
            shape: <$type as $crate::Decode>::shape(),
            rules: $rules.unless_given(stringify!($default)),
        })
    };
    (spec $into:ident () $type:ty, ($doc:expr), ($rules:expr), ()) => {
        <$type as $crate::Record>::fields($into)
    };
    (take $fields:ident ($key:literal) $type:ty, ($doc:expr), ($rules:expr), ()) => {
        $fields.field::<$type>($key, $rules, &$doc)
    };
    (take $fields:ident ($key:literal) $type:ty, ($doc:expr), ($rules:expr), ($default:expr)) => {
        $fields.field_or::<$type>($key, $rules, $default)
    };
    (take $fields:ident () $type:ty, ($doc:expr), ($rules:expr), ()) => {
        <$type as $crate::Record>::take($fields)
    };
}
