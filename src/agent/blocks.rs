//! The shapes inside a line of a stream, read leniently: a field of another type than expected counts as absent, and
//! what is not needed (the output of tools, above all) is passed over without being built. Texts are borrowed from the
//! line where it holds them as they are.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::event::Usage;

/// Scalars that give the default of the visitor's value.
macro_rules! otherwise {
    ($default:expr; $($visit:ident($ty:ty)),*) => {
        $(fn $visit<E>(self, _: $ty) -> Result<Self::Value, E> { Ok($default) })*
        fn visit_unit<E>(self) -> Result<Self::Value, E> { Ok($default) }
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str("JSON") }
    };
}

fn drain_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn drain_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

/// A scalar of any type.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) enum Scalar<'a> {
    /// Null, absent, an array or an object.
    #[default]
    None,
    Bool(bool),
    Whole(u64),
    /// A number that is negative or has a fraction.
    Float(f64),
    Text(Cow<'a, str>),
}

impl Scalar<'_> {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Scalar::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn into_text(self) -> Option<String> {
        match self {
            Scalar::Text(text) => Some(text.into_owned()),
            _ => None,
        }
    }

    pub(super) fn count(&self) -> Option<u64> {
        match self {
            Scalar::Whole(n) => Some(*n),
            _ => None,
        }
    }

    pub(super) fn float(&self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "an amount of money")]
            Scalar::Whole(n) => Some(*n as f64),
            Scalar::Float(f) => Some(*f),
            _ => None,
        }
    }

    pub(super) fn whole(&self) -> u64 {
        self.count().unwrap_or(0)
    }

    pub(super) fn is_true(&self) -> bool {
        *self == Scalar::Bool(true)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Scalar<'de>;
            otherwise!(Scalar::None;);

            fn visit_bool<E>(self, v: bool) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Bool(v))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Whole(v))
            }
            #[expect(clippy::cast_precision_loss, reason = "no negative number is of interest")]
            fn visit_i64<E>(self, v: i64) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Float(v as f64))
            }
            fn visit_f64<E>(self, v: f64) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Float(v))
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Text(Cow::Borrowed(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Text(Cow::Owned(v.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Scalar<'de>, A::Error> {
                drain_seq(seq).map(|()| Scalar::None)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Scalar<'de>, A::Error> {
                drain_map(map).map(|()| Scalar::None)
            }
        }
        d.deserialize_any(V)
    }
}

/// An object; anything else counts as absent.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for V<T> {
            type Value = Object<T>;
            otherwise!(Object(None); visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64), visit_str(&str));

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Object<T>, A::Error> {
                drain_seq(seq).map(|()| Object(None))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|t| Object(Some(t)))
            }
        }
        d.deserialize_any(V(PhantomData))
    }
}

/// A list; anything else counts as an empty one.
#[derive(Debug)]
pub(super) struct List<T>(pub(super) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for V<T> {
            type Value = List<T>;
            otherwise!(List::default(); visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64), visit_str(&str));

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(List(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<List<T>, A::Error> {
                drain_map(map).map(|()| List::default())
            }
        }
        d.deserialize_any(V(PhantomData))
    }
}

/// The content of a message: a list of blocks, or one text.
#[derive(Debug, Default)]
pub(super) struct Blocks<'a>(pub(super) Vec<Block<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Blocks<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Blocks<'de>;
            otherwise!(Blocks::default(); visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64));

            fn visit_str<E>(self, v: &str) -> Result<Blocks<'de>, E> {
                let kind = Scalar::Text(Cow::Borrowed("text"));
                let text = Scalar::Text(Cow::Owned(v.to_owned()));
                Ok(Blocks(vec![Block { kind, text, ..Block::default() }]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Blocks<'de>, A::Error> {
                let mut blocks = Vec::new();
                while let Some(Object(block)) = seq.next_element()? {
                    blocks.extend(block);
                }
                Ok(Blocks(blocks))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Blocks<'de>, A::Error> {
                drain_map(map).map(|()| Blocks::default())
            }
        }
        d.deserialize_any(V)
    }
}

/// One content block of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Scalar<'a>,
    #[serde(borrow)]
    pub(super) text: Scalar<'a>,
    #[serde(borrow)]
    pub(super) thinking: Scalar<'a>,
    #[serde(borrow)]
    pub(super) id: Scalar<'a>,
    #[serde(borrow)]
    pub(super) name: Scalar<'a>,
    #[serde(borrow)]
    pub(super) input: Object<Input<'a>>,
    #[serde(borrow)]
    pub(super) tool_use_id: Scalar<'a>,
    #[serde(borrow)]
    pub(super) is_error: Scalar<'a>,
}

impl Block<'_> {
    /// Whether the model uses a tool here.
    pub(super) fn is_tool_use(&self) -> bool {
        matches!(self.kind.text(), Some("tool_use" | "server_tool_use" | "mcp_tool_use"))
    }
}

/// The fields of a tool's input that are shown.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    pub(super) command: Scalar<'a>,
    #[serde(borrow)]
    pub(super) file_path: Scalar<'a>,
    /// The same in OpenCode's words. No alias: an input that has both would be none.
    #[serde(borrow, rename = "filePath")]
    pub(super) opencode_path: Scalar<'a>,
    #[serde(borrow)]
    pub(super) notebook_path: Scalar<'a>,
    #[serde(borrow)]
    pub(super) prompt: Scalar<'a>,
    #[serde(borrow)]
    pub(super) pattern: Scalar<'a>,
    #[serde(borrow)]
    pub(super) skill: Scalar<'a>,
    #[serde(borrow)]
    pub(super) name: Scalar<'a>,
    #[serde(borrow)]
    pub(super) url: Scalar<'a>,
    #[serde(borrow)]
    pub(super) query: Scalar<'a>,
}

/// A message of the Messages API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) id: Scalar<'a>,
    #[serde(borrow)]
    pub(super) model: Scalar<'a>,
    #[serde(borrow)]
    pub(super) content: Blocks<'a>,
    #[serde(borrow)]
    pub(super) usage: Object<RawUsage<'a>>,
}

/// Token counts as the API names them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawUsage<'a> {
    #[serde(borrow, rename = "input_tokens")]
    input: Scalar<'a>,
    #[serde(borrow, rename = "output_tokens")]
    output: Scalar<'a>,
    #[serde(borrow, rename = "cache_creation_input_tokens")]
    cache_creation: Scalar<'a>,
    #[serde(borrow, rename = "cache_read_input_tokens")]
    cache_read: Scalar<'a>,
}

impl From<RawUsage<'_>> for Usage {
    fn from(raw: RawUsage<'_>) -> Self {
        Self {
            input: raw.input.whole(),
            output: raw.output.whole(),
            cache_creation: raw.cache_creation.whole(),
            cache_read: raw.cache_read.whole(),
        }
    }
}

/// A line of type `assistant` or `user`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageLine<'a> {
    #[serde(borrow)]
    pub(super) message: Object<Message<'a>>,
    /// Some versions put the content beside the message.
    #[serde(borrow)]
    pub(super) content: Blocks<'a>,
    #[serde(borrow)]
    pub(super) parent_tool_use_id: Scalar<'a>,
    #[serde(borrow)]
    pub(super) error: Scalar<'a>,
    #[serde(borrow)]
    pub(super) is_api_error_message: Scalar<'a>,
}

/// A line of type `stream_event`: a raw event of the streaming API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamLine<'a> {
    #[serde(borrow)]
    pub(super) event: Object<ApiEvent<'a>>,
    #[serde(borrow)]
    pub(super) parent_tool_use_id: Scalar<'a>,
}

/// An event of the streaming API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiEvent<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Scalar<'a>,
    #[serde(borrow)]
    pub(super) message: Object<Message<'a>>,
    #[serde(borrow)]
    pub(super) content_block: Object<Block<'a>>,
    #[serde(borrow)]
    pub(super) delta: Object<Delta<'a>>,
    #[serde(borrow)]
    pub(super) usage: Object<RawUsage<'a>>,
    #[serde(borrow)]
    pub(super) error: Object<ApiError<'a>>,
}

/// A piece of a content block.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) text: Scalar<'a>,
    #[serde(borrow)]
    pub(super) thinking: Scalar<'a>,
    #[serde(borrow)]
    pub(super) partial_json: Scalar<'a>,
}

/// An error of the API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiError<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Scalar<'a>,
    #[serde(borrow)]
    pub(super) message: Scalar<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_types_count_as_absent() {
        let line = r#"{"message":"text","content":{"a":[1]},"parent_tool_use_id":[{}],"error":5}"#;
        let parsed: MessageLine = serde_json::from_str(line).unwrap();
        assert!(parsed.message.0.is_none() && parsed.content.0.is_empty() && parsed.error.text().is_none());

        let line = r#"{"message":{"content":[null,1,"x",[2],{"type":"text","text":"ok"},{"type":7}],"usage":{"input_tokens":null,"output_tokens":-1}}}"#;
        let message = serde_json::from_str::<MessageLine>(line).unwrap().message.0.unwrap();
        assert_eq!(message.content.0.len(), 2);
        assert_eq!(message.content.0[0].text.text(), Some("ok"));
        assert!(Usage::from(message.usage.0.unwrap()).is_zero());
    }

    #[test]
    fn a_text_is_one_block() {
        let parsed: MessageLine = serde_json::from_str(r#"{"content":"hello"}"#).unwrap();
        assert_eq!(parsed.content.0[0].text.text(), Some("hello"));
    }
}
