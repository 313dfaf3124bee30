//! Protocol buffers written and read by hand, so that a wrong number in the client cannot hide behind the same in the test.

pub(crate) fn number(tag: u64, value: u64) -> Vec<u8> {
    [varint(tag << 3), varint(value)].concat()
}

pub(crate) fn bytes(tag: u64, value: &[u8]) -> Vec<u8> {
    [varint(tag << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

pub(crate) fn text(tag: u64, value: &str) -> Vec<u8> {
    bytes(tag, value.as_bytes())
}

/// A message in a field.
pub(crate) fn nested(tag: u64, fields: &[Vec<u8>]) -> Vec<u8> {
    bytes(tag, &fields.concat())
}

/// The usual answer: a list of one.
pub(crate) fn answer(fields: &[Vec<u8>]) -> Vec<u8> {
    nested(1, fields)
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// The fields of a message as `tag=value`, texts in quotes, messages of printable bytes as texts.
pub(crate) fn fields(mut message: &[u8]) -> Vec<(u64, Field)> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = take_varint(&mut message);
        let field = match key & 7 {
            0 => Field::Number(take_varint(&mut message)),
            2 => {
                let length = take_varint(&mut message) as usize;
                let (value, rest) = message.split_at(length);
                message = rest;
                Field::Bytes(value.to_vec())
            }
            kind => panic!("a field of wire type {kind}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Field {
    pub(crate) fn text(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

fn take_varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first().expect("a varint");
        *bytes = rest;
        value |= u64::from(first & 127) << shift;
        shift += 7;
        if first & 128 == 0 {
            return value;
        }
    }
}
