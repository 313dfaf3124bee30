//! Words out of a fixed set, as an enum.

use strata_diagnostics::{Diagnostic, nearest};

use crate::scalar::ScalarKind;
use crate::shape::words_list;
use crate::{Context, Node, Shape};

/// An enum each of whose variants is one word; `choice!` writes the implementation.
pub trait Choice: Copy + PartialEq + 'static {
    const WORDS: &'static [&'static str];
    const ALL: &'static [Self];
    /// Former words that are still read; no schema and no message names them.
    const ALIASES: &'static [(&'static str, Self)];

    fn as_str(self) -> &'static str;

    /// The choice that a word, or a former one, stands for.
    fn of_word(word: &str) -> Option<Self> {
        let known = Self::ALL.iter().find(|choice| choice.as_str() == word).copied();
        known.or_else(|| Self::ALIASES.iter().find(|(alias, _)| *alias == word).map(|(_, choice)| *choice))
    }
}

/// Reads one of the words.
pub fn decode_choice<T: Choice>(node: &Node, cx: &mut Context<'_>) -> Option<T> {
    let shape = Shape::Choice(T::WORDS);
    let scalar = cx.scalar(node, &shape)?;
    if let Some(found) = T::of_word(&scalar.text) {
        return Some(found);
    }
    if !matches!(scalar.kind(), ScalarKind::Text) {
        cx.wrong_type(node, &shape);
        return None;
    }
    let message = format!("expected {}, found {}", words_list(T::WORDS), scalar.describe());
    let meant = nearest(&scalar.text, T::WORDS.iter().copied()).map(|word| format!("did you mean `{word}`?"));
    cx.push(Diagnostic::error("unknown-value", message).at(node.span).maybe_hint(meant));
    None
}

/// Declares an enum of words. `Variant = "word" | "former"` still reads a former word.
#[macro_export]
macro_rules! choice {
    (
        $(#[doc = $doc:literal])*
        pub enum $name:ident { $( $(#[doc = $variant_doc:literal])* $variant:ident = $word:literal $(| $alias:literal)* ),+ $(,)? }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $( $(#[doc = $variant_doc])* $variant ),+ }

        impl $crate::Choice for $name {
            const WORDS: &'static [&'static str] = &[$($word),+];
            const ALL: &'static [Self] = &[$(Self::$variant),+];
            const ALIASES: &'static [(&'static str, Self)] = &[$( $( ($alias, Self::$variant), )* )+];

            fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word ),+ }
            }
        }

        impl $name {
            /// The word, as it is written in the source.
            pub fn as_str(self) -> &'static str {
                $crate::Choice::as_str(self)
            }

            /// What a word, or a former one, stands for.
            pub fn of_word(word: &str) -> ::std::option::Option<Self> {
                <Self as $crate::Choice>::of_word(word)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::Decode for $name {
            fn shape() -> $crate::Shape {
                $crate::Shape::Choice(<Self as $crate::Choice>::WORDS)
            }

            fn decode(node: &$crate::Node, cx: &mut $crate::Context<'_>) -> ::std::option::Option<Self> {
                $crate::decode_choice(node, cx)
            }
        }
    };
}
