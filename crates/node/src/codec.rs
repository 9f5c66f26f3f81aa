//! Requests and answers as bytes: every type says how it is written and read.
//!
//! Numbers are varints, lists and strings have their length in front, variants a number of their
//! own (`docs/formats/node_messages.md`). Reading never panics, and takes no more memory than a
//! small multiple of the bytes that are there; `None` means that these are no such value.

use std::time::Duration;

use braid_consensus::codec::{Reader, put_bytes, put_number};
use bytes::Bytes;

/// What can be sent to another node.
pub(crate) trait Coded: Sized {
    /// Appends its bytes.
    fn put(&self, out: &mut Vec<u8>);
    /// Takes it from the front of the input.
    fn take(reader: &mut Reader<'_>) -> Option<Self>;
}

/// All bytes are that value.
pub(crate) fn decode<T: Coded>(bytes: &[u8]) -> Option<T> {
    let mut reader = Reader::new(bytes);
    let value = T::take(&mut reader)?;
    reader.is_empty().then_some(value)
}

macro_rules! numbers {
    ($($name:ty),*) => {$(
        impl Coded for $name {
            fn put(&self, out: &mut Vec<u8>) {
                put_number(out, *self as u64);
            }
            fn take(reader: &mut Reader<'_>) -> Option<Self> {
                <$name>::try_from(reader.number()?).ok()
            }
        }
    )*};
}

numbers!(u8, u32, u64, usize);

impl Coded for u128 {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, (*self >> 64) as u64);
        put_number(out, *self as u64);
    }
    fn take(reader: &mut Reader<'_>) -> Option<Self> {
        Some(u128::from(reader.number()?) << 64 | u128::from(reader.number()?))
    }
}

impl Coded for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn take(reader: &mut Reader<'_>) -> Option<Self> {
        match reader.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Coded for Bytes {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(out, self);
    }
    fn take(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Bytes::copy_from_slice(reader.bytes()?))
    }
}

impl Coded for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.as_bytes());
    }
    fn take(reader: &mut Reader<'_>) -> Option<Self> {
        String::from_utf8(reader.bytes()?.to_vec()).ok()
    }
}

impl Coded for Duration {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, u64::try_from(self.as_micros()).unwrap_or(u64::MAX));
    }
    fn take(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Duration::from_micros(reader.number()?))
    }
}

impl<T: Coded> Coded for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|value| value.put(out));
    }
    fn take(reader: &mut Reader<'_>) -> Option<Self> {
        Some(match bool::take(reader)? {
            true => Some(T::take(reader)?),
            false => None,
        })
    }
}

impl<T: Coded> Coded for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        self.iter().for_each(|value| value.put(out));
    }
    fn take(reader: &mut Reader<'_>) -> Option<Self> {
        let mut list = Vec::new();
        // Every element has a byte at least: a wrong length ends at the end of the input.
        for _ in 0..reader.number()? {
            list.push(T::take(reader)?);
        }
        Some(list)
    }
}

impl<T: Coded> Coded for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }
    fn take(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Box::new(T::take(reader)?))
    }
}

impl<A: Coded, B: Coded> Coded for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(reader: &mut Reader<'_>) -> Option<Self> {
        Some((A::take(reader)?, B::take(reader)?))
    }
}

impl<A: Coded, B: Coded, C: Coded> Coded for (A, B, C) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
        self.2.put(out);
    }
    fn take(reader: &mut Reader<'_>) -> Option<Self> {
        Some((A::take(reader)?, B::take(reader)?, C::take(reader)?))
    }
}

/// Types that wrap one value: `Name(inner)`.
macro_rules! wrappers {
    ($($name:ident),* $(,)?) => {$(
        impl Coded for $name {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }
            fn take(reader: &mut Reader<'_>) -> Option<Self> {
                Some($name(Coded::take(reader)?))
            }
        }
    )*};
}

/// Structs, field after field. A field that is forgotten here does not compile.
macro_rules! structs {
    ($($name:ident { $($field:ident),* $(,)? })*) => {$(
        impl Coded for $name {
            fn put(&self, out: &mut Vec<u8>) {
                let $name { $($field),* } = self;
                $($field.put(out);)*
            }
            fn take(reader: &mut Reader<'_>) -> Option<Self> {
                $(let $field = Coded::take(reader)?;)*
                Some($name { $($field),* })
            }
        }
    )*};
}

/// Enums: a number for each variant, then its fields. Numbers are never used for something else.
macro_rules! enums {
    ($($name:ident { $($number:literal $variant:ident
        $(( $($part:ident),* ))? $({ $($field:ident),* })? ,)* })*) => {$(
        impl Coded for $name {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$variant $(( $($part),* ))? $({ $($field),* })? => {
                        out.push($number);
                        $($($part.put(out);)*)?
                        $($($field.put(out);)*)?
                    })*
                }
            }
            fn take(reader: &mut Reader<'_>) -> Option<Self> {
                Some(match reader.byte()? {
                    $($number => {
                        $($(let $part = Coded::take(reader)?;)*)?
                        $($(let $field = Coded::take(reader)?;)*)?
                        $name::$variant $(( $($part),* ))? $({ $($field),* })?
                    })*
                    _ => return None,
                })
            }
        }
    )*};
}

pub(crate) use {enums, structs, wrappers};
