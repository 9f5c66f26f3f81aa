//! `inet` and `cidr`: addresses of hosts and networks.
//!
//! ```text
//!   family   network               bits   address
//!   04       the address, with     08     as it was written
//!            its last bits zero
//! ```
//! Networks sort before what lies in them, and hosts of a network by their address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Ordered, OrderedKind};
use crate::text_in::bad_input;
use crate::{SqlError, SqlResult, SqlState};

const V4: u8 = 4;
const V6: u8 = 6;
/// How the wire protocol names the families.
const WIRE_V4: u8 = 2;
const WIRE_V6: u8 = 3;

/// An address, and how many of its bits name the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Address.
    pub address: IpAddr,
    /// Bits of the network.
    pub bits: u8,
}

impl Network {
    /// Bits of an address of this family.
    pub fn width(&self) -> u8 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// The address as a number.
    pub fn number(&self) -> u128 {
        match self.address {
            IpAddr::V4(a) => u128::from(u32::from(a)),
            IpAddr::V6(a) => u128::from(a),
        }
    }

    /// The same family with another address.
    pub fn with_number(&self, number: u128) -> Network {
        let address = match self.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(number as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(number)),
        };
        Network { address, bits: self.bits }
    }

    /// The same address in a network of so many bits.
    pub fn with_bits(&self, bits: u8) -> Network {
        Network { address: self.address, bits }
    }

    /// A number whose ones are where the host's part of addresses is.
    pub fn host_mask(&self) -> u128 {
        let host = u32::from(self.width() - self.bits);
        1u128.checked_shl(host).map_or(u128::MAX, |one| one - 1)
    }

    /// The network: the address without the host's part.
    pub fn network(&self) -> Network {
        self.with_number(self.number() & !self.host_mask())
    }

    /// Whether all addresses of the other network are in this one.
    pub fn contains(&self, other: &Network) -> bool {
        self.width() == other.width()
            && self.bits <= other.bits
            && self.network().number() == other.number() & !self.host_mask()
    }

    /// The value.
    pub fn value(&self, kind: OrderedKind) -> Ordered {
        let mut bytes = vec![if self.address.is_ipv4() { V4 } else { V6 }];
        push(&mut bytes, self.network().address);
        bytes.push(self.bits);
        push(&mut bytes, self.address);
        Ordered::new(kind, &bytes)
    }
}

fn push(bytes: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(a) => bytes.extend(a.octets()),
        IpAddr::V6(a) => bytes.extend(a.octets()),
    }
}

/// The network of a value.
pub fn network_of(value: &Ordered) -> Network {
    read(value.bytes()).expect("an inet value has the bytes of one")
}

fn read(bytes: &[u8]) -> Option<Network> {
    let (width, address) = match (bytes.first()?, bytes.len()) {
        (&V4, 10) => (32, IpAddr::from(<[u8; 4]>::try_from(&bytes[6..]).ok()?)),
        (&V6, 34) => (128, IpAddr::from(<[u8; 16]>::try_from(&bytes[18..]).ok()?)),
        _ => return None,
    };
    let bits = bytes[if width == 32 { 5 } else { 17 }];
    (bits <= width).then_some(Network { address, bits })
}

pub(super) fn is_sound(bytes: &[u8]) -> bool {
    read(bytes).is_some_and(|n| n.value(OrderedKind::Inet).bytes() == bytes)
}

pub(super) fn parse(text: &str, kind: OrderedKind) -> SqlResult<Ordered> {
    let is_cidr = kind == OrderedKind::Cidr;
    let name = if is_cidr { "cidr" } else { "inet" };
    let network = parse_network(text, is_cidr).ok_or_else(|| bad_input(name, text))?;
    if is_cidr && network.network() != network {
        return Err(SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid cidr value: \"{text}\""),
        )
        .with_detail("Value has bits set to right of mask."));
    }
    Ok(network.value(kind))
}

fn parse_network(text: &str, is_cidr: bool) -> Option<Network> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(decimal(bits, 128)?)),
        None => (text, None),
    };
    if address.contains(':') {
        let address: Ipv6Addr = address.parse().ok()?;
        let bits = bits.unwrap_or(128);
        return Some(Network { address: IpAddr::V6(address), bits });
    }
    let octets: Vec<u8> = address.split('.').map(|o| decimal(o, 255)).collect::<Option<_>>()?;
    let given = octets.len();
    if given > 4 || bits.is_some_and(|b| b > 32) {
        return None;
    }
    let mut all = [0; 4];
    all[..given].copy_from_slice(&octets);
    let bits = match bits {
        Some(bits) if !is_cidr && usize::from(bits / 8) > given => return None,
        Some(bits) => bits,
        None if given == 4 => 32,
        None if is_cidr => of_class(all[0]).max(given as u8 * 8),
        None => return None,
    };
    Some(Network { address: IpAddr::V4(all.into()), bits })
}

/// Bits of a network whose number is written without them.
fn of_class(first: u8) -> u8 {
    match first {
        0..=127 => 8,
        128..=191 => 16,
        192..=223 => 24,
        224..=239 => 8,
        240.. => 32,
    }
}

fn decimal(text: &str, max: u8) -> Option<u8> {
    // Zeros in front of a number count for nothing, however many they are.
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| digits && *n <= max)
}

/// The address alone.
pub fn host_text(network: &Network) -> String {
    match network.address {
        IpAddr::V4(a) => a.to_string(),
        IpAddr::V6(a) => match a.segments() {
            // Addresses of IPv4 in IPv6 are shown as such, in their old form too.
            [0, 0, 0, 0, 0, 0, high, low] if high != 0 => {
                let number = u32::from(high) << 16 | u32::from(low);
                format!("::{}", Ipv4Addr::from(number))
            }
            _ => a.to_string(),
        },
    }
}

/// Address and bits, whatever the bits are.
pub fn full_text(network: &Network) -> String {
    format!("{}/{}", host_text(network), network.bits)
}

pub(super) fn text(value: &Ordered) -> String {
    let network = network_of(value);
    if value.kind() == OrderedKind::Inet && network.bits == network.width() {
        return host_text(&network);
    }
    full_text(&network)
}

pub(super) fn to_wire(value: &Ordered, out: &mut Vec<u8>) {
    let network = network_of(value);
    let is_v4 = network.address.is_ipv4();
    out.push(if is_v4 { WIRE_V4 } else { WIRE_V6 });
    out.push(network.bits);
    out.push(u8::from(value.kind() == OrderedKind::Cidr));
    out.push(network.width() / 8);
    push(out, network.address);
}

pub(super) fn from_wire(bytes: &[u8], kind: OrderedKind) -> Option<Ordered> {
    let (head, address) = bytes.split_first_chunk::<4>()?;
    let [family, bits, _, length] = *head;
    let address = match (family, length) {
        (WIRE_V4, 4) => IpAddr::from(<[u8; 4]>::try_from(address).ok()?),
        (WIRE_V6, 16) => IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
        _ => return None,
    };
    let network = Network { address, bits };
    let sound =
        bits <= network.width() && (kind == OrderedKind::Inet || network.network() == network);
    sound.then(|| network.value(kind))
}
