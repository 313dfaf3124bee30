//! Values that are one text in the source.

/// Decodes types from a text: each with its shape, and what reads it.
macro_rules! text_value {
    ($($type:ty = $shape:expr, $parse:expr;)*) => {$(
        impl ::strata_yaml::Decode for $type {
            fn shape() -> ::strata_yaml::Shape {
                ::strata_yaml::Shape::Text($shape)
            }

            fn decode(node: &::strata_yaml::Node, cx: &mut ::strata_yaml::Context<'_>) -> Option<Self> {
                ::strata_yaml::decode_text(node, $shape, cx, $parse)
            }
        }
    )*};
}

pub(crate) use text_value;
