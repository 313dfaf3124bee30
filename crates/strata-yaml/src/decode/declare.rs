//! `record!`: a struct, its decoder and its description, declared in one table.

/// Declares a struct, its decoder and its description in one table.
///
/// ```text
/// record! {
///     /// What it is.
///     pub struct Disk [shorthand("size")] {
///         /// What the field means; this text is in the schema and in messages.
///         "size" size: Size;
///         "ssd" ssd: bool = false;
///         "queues" queues: Option<u8> [range(0, 64)];
///         ..hardware: Hardware;
///     }
/// }
/// ```
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
            pub places: $crate::Places,
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
