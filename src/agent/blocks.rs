//! The shapes inside a stream-json line, read leniently: a field of another type than expected counts as
//! absent, and what is not needed (the output of tools, above all) is passed over without being built.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

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
pub(super) enum Scalar {
    /// Null, absent, an array or an object.
    #[default]
    None,
    Bool(bool),
    Whole(u64),
    Text(String),
}

impl Scalar {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Scalar::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn into_text(self) -> Option<String> {
        match self {
            Scalar::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn whole(&self) -> u64 {
        match self {
            Scalar::Whole(n) => *n,
            _ => 0,
        }
    }

    pub(super) fn is_true(&self) -> bool {
        *self == Scalar::Bool(true)
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Scalar;
            otherwise!(Scalar::None; visit_i64(i64), visit_f64(f64));

            fn visit_bool<E>(self, v: bool) -> Result<Scalar, E> {
                Ok(Scalar::Bool(v))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Scalar, E> {
                Ok(Scalar::Whole(v))
            }
            fn visit_str<E>(self, v: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(v.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Scalar, A::Error> {
                drain_seq(seq).map(|()| Scalar::None)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Scalar, A::Error> {
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

/// The content of a message: a list of blocks, or one text.
#[derive(Debug, Default)]
pub(super) struct Blocks(pub(super) Vec<Block>);

impl<'de> Deserialize<'de> for Blocks {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Blocks;
            otherwise!(Blocks::default(); visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64));

            fn visit_str<E>(self, v: &str) -> Result<Blocks, E> {
                let text = |s: &str| Scalar::Text(s.to_owned());
                Ok(Blocks(vec![Block { kind: text("text"), text: text(v), ..Block::default() }]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Blocks, A::Error> {
                let mut blocks = Vec::new();
                while let Some(Object(block)) = seq.next_element()? {
                    blocks.extend(block);
                }
                Ok(Blocks(blocks))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Blocks, A::Error> {
                drain_map(map).map(|()| Blocks::default())
            }
        }
        d.deserialize_any(V)
    }
}

/// One content block of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block {
    #[serde(rename = "type")]
    pub(super) kind: Scalar,
    pub(super) text: Scalar,
    pub(super) thinking: Scalar,
    pub(super) id: Scalar,
    pub(super) name: Scalar,
    pub(super) input: Value,
    pub(super) tool_use_id: Scalar,
    pub(super) is_error: Scalar,
}

impl Block {
    /// Whether the model uses a tool here.
    pub(super) fn is_tool_use(&self) -> bool {
        matches!(self.kind.text(), Some("tool_use" | "server_tool_use" | "mcp_tool_use"))
    }
}

/// A message of the Messages API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) id: Scalar,
    pub(super) model: Scalar,
    pub(super) content: Blocks,
    pub(super) usage: Object<RawUsage>,
}

/// Token counts as the API names them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawUsage {
    #[serde(rename = "input_tokens")]
    input: Scalar,
    #[serde(rename = "output_tokens")]
    output: Scalar,
    #[serde(rename = "cache_creation_input_tokens")]
    cache_creation: Scalar,
    #[serde(rename = "cache_read_input_tokens")]
    cache_read: Scalar,
}

impl From<RawUsage> for Usage {
    fn from(raw: RawUsage) -> Self {
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
pub(super) struct MessageLine {
    pub(super) message: Object<Message>,
    /// Some versions put the content beside the message.
    pub(super) content: Blocks,
    pub(super) parent_tool_use_id: Scalar,
    pub(super) error: Scalar,
    pub(super) is_api_error_message: Scalar,
}

/// A line of type `stream_event`: a raw event of the streaming API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamLine {
    pub(super) event: Object<ApiEvent>,
    pub(super) parent_tool_use_id: Scalar,
}

/// An event of the streaming API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiEvent {
    #[serde(rename = "type")]
    pub(super) kind: Scalar,
    pub(super) message: Object<Message>,
    pub(super) content_block: Object<Block>,
    pub(super) delta: Object<Delta>,
    pub(super) usage: Object<RawUsage>,
    pub(super) error: Object<ApiError>,
}

/// A piece of a content block.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta {
    pub(super) text: Scalar,
    pub(super) thinking: Scalar,
    pub(super) partial_json: Scalar,
}

/// An error of the API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiError {
    #[serde(rename = "type")]
    pub(super) kind: Scalar,
    pub(super) message: Scalar,
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
