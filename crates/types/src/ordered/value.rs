//! [`Ordered`]: a value as bytes that sort as SQL sorts the values of its type.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::{bits, citext, inet, lsn, macaddr, money, tid, timetz, xid8};
use crate::{SqlResult, SqlType, Style};

/// Which of the types a value is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderedKind {
    /// `inet`.
    Inet,
    /// `cidr`.
    Cidr,
    /// `macaddr`.
    Macaddr,
    /// `macaddr8`.
    Macaddr8,
    /// `bit(n)`.
    Bit,
    /// `bit varying(n)`.
    Varbit,
    /// `money`.
    Money,
    /// `time with time zone`.
    TimeTz,
    /// `xid8`.
    Xid8,
    /// `tid`.
    Tid,
    /// `pg_lsn`.
    PgLsn,
    /// `citext`.
    Citext,
}

/// A value of one of these types. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Ordered {
    kind: OrderedKind,
    bytes: Arc<[u8]>,
}

impl Ordered {
    /// Only for the files of the types, which know what the bytes must be.
    pub(super) fn new(kind: OrderedKind, bytes: &[u8]) -> Ordered {
        Ordered { kind, bytes: bytes.into() }
    }

    /// The value that stored bytes are; `None` if they are no value of this kind.
    pub fn from_bytes(kind: OrderedKind, bytes: &[u8]) -> Option<Ordered> {
        let sound = match kind {
            OrderedKind::Inet | OrderedKind::Cidr => inet::is_sound(bytes),
            OrderedKind::Macaddr | OrderedKind::Tid => bytes.len() == 6,
            OrderedKind::Macaddr8 | OrderedKind::Money | OrderedKind::Xid8 | OrderedKind::PgLsn => {
                bytes.len() == 8
            }
            OrderedKind::Bit | OrderedKind::Varbit => bits::is_sound(bytes),
            OrderedKind::TimeTz => timetz::is_sound(bytes),
            OrderedKind::Citext => citext::is_sound(bytes),
        };
        sound.then(|| Ordered::new(kind, bytes))
    }

    /// Reads a text form.
    pub(crate) fn parse(kind: OrderedKind, text: &str, style: &Style) -> SqlResult<Ordered> {
        match kind {
            OrderedKind::Inet | OrderedKind::Cidr => inet::parse(text, kind),
            OrderedKind::Macaddr => macaddr::parse(text),
            OrderedKind::Macaddr8 => macaddr::parse8(text),
            OrderedKind::Bit | OrderedKind::Varbit => bits::parse(text, kind),
            OrderedKind::Money => money::parse(text),
            OrderedKind::TimeTz => timetz::parse(text, style),
            OrderedKind::Xid8 => Ok(xid8::parse(text)),
            OrderedKind::Tid => tid::parse(text),
            OrderedKind::PgLsn => lsn::parse(text),
            OrderedKind::Citext => Ok(citext::of(text)),
        }
    }

    /// The text form.
    pub(crate) fn text(&self) -> String {
        match self.kind {
            OrderedKind::Inet | OrderedKind::Cidr => inet::text(self),
            OrderedKind::Macaddr | OrderedKind::Macaddr8 => macaddr::text(self),
            OrderedKind::Bit | OrderedKind::Varbit => bits::text(self),
            OrderedKind::Money => money::text(self),
            OrderedKind::TimeTz => timetz::text(self),
            OrderedKind::Xid8 => xid8::number(self).to_string(),
            OrderedKind::Tid => tid::text(self),
            OrderedKind::PgLsn => lsn::text(self),
            OrderedKind::Citext => citext::text(self).to_string(),
        }
    }

    /// The binary form of the wire protocol.
    pub(crate) fn to_wire(&self, out: &mut Vec<u8>) {
        match self.kind {
            OrderedKind::Inet | OrderedKind::Cidr => inet::to_wire(self, out),
            OrderedKind::Macaddr
            | OrderedKind::Macaddr8
            | OrderedKind::Xid8
            | OrderedKind::PgLsn
            | OrderedKind::Citext
            | OrderedKind::Tid => out.extend(&*self.bytes),
            OrderedKind::Bit | OrderedKind::Varbit => bits::to_wire(self, out),
            OrderedKind::Money => out.extend(money::cents(self).to_be_bytes()),
            OrderedKind::TimeTz => timetz::to_wire(self, out),
        }
    }

    /// Reads the binary form; `None` if it is malformed.
    pub(crate) fn from_wire(kind: OrderedKind, bytes: &[u8]) -> Option<Ordered> {
        match kind {
            OrderedKind::Inet | OrderedKind::Cidr => inet::from_wire(bytes, kind),
            OrderedKind::Macaddr
            | OrderedKind::Macaddr8
            | OrderedKind::Xid8
            | OrderedKind::PgLsn
            | OrderedKind::Citext
            | OrderedKind::Tid => Ordered::from_bytes(kind, bytes),
            OrderedKind::Bit | OrderedKind::Varbit => bits::from_wire(bytes, kind),
            OrderedKind::Money => Some(money::of(i64::from_be_bytes(bytes.try_into().ok()?))),
            OrderedKind::TimeTz => timetz::from_wire(bytes),
        }
    }

    /// The same value of a type that shares its form: `inet` and `cidr`, `bit` and `bit varying`.
    pub(crate) fn with_kind(&self, kind: OrderedKind) -> Ordered {
        Ordered { kind, bytes: self.bytes.clone() }
    }

    /// Which of the types it is of.
    pub fn kind(&self) -> OrderedKind {
        self.kind
    }

    /// The bytes that are stored.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes that are compared, which are nearly always those that are stored.
    pub fn key(&self) -> Cow<'_, [u8]> {
        match self.kind {
            OrderedKind::Citext => Cow::Owned(citext::folded(self).into_bytes()),
            _ => Cow::Borrowed(&self.bytes),
        }
    }
}

impl OrderedKind {
    /// The type, without modifiers.
    pub fn sql_type(self) -> SqlType {
        match self {
            OrderedKind::Inet => SqlType::Inet,
            OrderedKind::Cidr => SqlType::Cidr,
            OrderedKind::Macaddr => SqlType::Macaddr,
            OrderedKind::Macaddr8 => SqlType::Macaddr8,
            OrderedKind::Bit => SqlType::Bit(0),
            OrderedKind::Varbit => SqlType::Varbit(None),
            OrderedKind::Money => SqlType::Money,
            OrderedKind::TimeTz => SqlType::TimeTz,
            OrderedKind::Xid8 => SqlType::Xid8,
            OrderedKind::Tid => SqlType::Tid,
            OrderedKind::PgLsn => SqlType::PgLsn,
            OrderedKind::Citext => SqlType::Citext,
        }
    }

    /// The kind of values of a type.
    pub fn of(ty: &SqlType) -> Option<OrderedKind> {
        Some(match ty {
            SqlType::Inet => OrderedKind::Inet,
            SqlType::Cidr => OrderedKind::Cidr,
            SqlType::Macaddr => OrderedKind::Macaddr,
            SqlType::Macaddr8 => OrderedKind::Macaddr8,
            SqlType::Bit(_) => OrderedKind::Bit,
            SqlType::Varbit(_) => OrderedKind::Varbit,
            SqlType::Money => OrderedKind::Money,
            SqlType::TimeTz => OrderedKind::TimeTz,
            SqlType::Xid8 => OrderedKind::Xid8,
            SqlType::Tid => OrderedKind::Tid,
            SqlType::PgLsn => OrderedKind::PgLsn,
            SqlType::Citext => OrderedKind::Citext,
            _ => return None,
        })
    }
}

/// Whether it is the same value, and not only an equal one.
impl PartialEq for Ordered {
    fn eq(&self, other: &Ordered) -> bool {
        self.bytes == other.bytes
    }
}

impl Ordered {
    /// The order of SQL.
    pub(crate) fn compare(&self, other: &Ordered) -> Ordering {
        match self.kind {
            OrderedKind::Citext => self.key().cmp(&other.key()),
            _ => self.bytes.cmp(&other.bytes),
        }
    }

    /// Equal values are hashed alike.
    pub(crate) fn hash_key<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}
