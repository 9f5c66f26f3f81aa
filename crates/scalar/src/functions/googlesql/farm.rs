//! FarmHash's `Fingerprint64`, by its published definition: the number of a text, which never
//! changes.

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

fn word(s: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&s[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn half(s: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&s[at..at + 4]);
    u32::from_le_bytes(bytes).into()
}

fn mix(value: u64) -> u64 {
    value ^ value >> 47
}

fn both(u: u64, v: u64, factor: u64) -> u64 {
    let a = mix((u ^ v).wrapping_mul(factor));
    mix((v ^ a).wrapping_mul(factor)).wrapping_mul(factor)
}

fn short(s: &[u8]) -> u64 {
    let length = s.len() as u64;
    let factor = K2.wrapping_add(length.wrapping_mul(2));
    match s.len() {
        8.. => {
            let a = word(s, 0).wrapping_add(K2);
            let b = word(s, s.len() - 8);
            let c = b.rotate_right(37).wrapping_mul(factor).wrapping_add(a);
            let d = a.rotate_right(25).wrapping_add(b).wrapping_mul(factor);
            both(c, d, factor)
        }
        4.. => both(length.wrapping_add(half(s, 0) << 3), half(s, s.len() - 4), factor),
        1.. => {
            let (a, b, c) = (s[0], s[s.len() / 2], s[s.len() - 1]);
            let y = u64::from(a) + (u64::from(b) << 8);
            let z = length + (u64::from(c) << 2);
            mix(y.wrapping_mul(K2) ^ z.wrapping_mul(K0)).wrapping_mul(K2)
        }
        0 => K2,
    }
}

fn to_32(s: &[u8]) -> u64 {
    let factor = K2.wrapping_add(s.len() as u64 * 2);
    let a = word(s, 0).wrapping_mul(K1);
    let b = word(s, 8);
    let c = word(s, s.len() - 8).wrapping_mul(factor);
    let d = word(s, s.len() - 16).wrapping_mul(K2);
    let u = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    let v = a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c);
    both(u, v, factor)
}

fn to_64(s: &[u8]) -> u64 {
    let factor = K2.wrapping_add(s.len() as u64 * 2);
    let n = s.len();
    let a = word(s, 0).wrapping_mul(K2);
    let b = word(s, 8);
    let c = word(s, n - 8).wrapping_mul(factor);
    let d = word(s, n - 16).wrapping_mul(K2);
    let y = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    let z = both(y, a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c), factor);
    let e = word(s, 16).wrapping_mul(factor);
    let f = word(s, 24);
    let g = y.wrapping_add(word(s, n - 32)).wrapping_mul(factor);
    let h = z.wrapping_add(word(s, n - 24)).wrapping_mul(factor);
    let u = e.wrapping_add(f).rotate_right(43).wrapping_add(g.rotate_right(30)).wrapping_add(h);
    let v = e.wrapping_add(f.wrapping_add(a).rotate_right(18)).wrapping_add(g);
    both(u, v, factor)
}

/// 32 bytes into two numbers, from two others.
fn weak(s: &[u8], at: usize, a: u64, b: u64) -> (u64, u64) {
    let (w, x, y, z) = (word(s, at), word(s, at + 8), word(s, at + 16), word(s, at + 24));
    let a = a.wrapping_add(w);
    let b = b.wrapping_add(a).wrapping_add(z).rotate_right(21);
    let c = a;
    let a = a.wrapping_add(x).wrapping_add(y);
    let b = b.wrapping_add(a.rotate_right(44));
    (a.wrapping_add(z), b.wrapping_add(c))
}

/// What is kept from one 64 bytes to the next.
struct State {
    x: u64,
    y: u64,
    z: u64,
    v: (u64, u64),
    w: (u64, u64),
}

impl State {
    /// Takes 64 bytes. The last ones are taken in another way.
    fn take(&mut self, s: &[u8], at: usize, factor: u64, last: bool) {
        let nine = if last { 9 } else { 1 };
        let (v, w) = (self.v, self.w);
        let sum = self.x.wrapping_add(self.y).wrapping_add(v.0).wrapping_add(word(s, at + 8));
        self.x = sum.rotate_right(37).wrapping_mul(factor);
        let sum = self.y.wrapping_add(v.1).wrapping_add(word(s, at + 48));
        self.y = sum.rotate_right(42).wrapping_mul(factor);
        self.x ^= w.1.wrapping_mul(nine);
        let sum = if last { v.0.wrapping_mul(9) } else { v.0 };
        self.y = self.y.wrapping_add(sum).wrapping_add(word(s, at + 40));
        self.z = self.z.wrapping_add(w.0).rotate_right(33).wrapping_mul(factor);
        self.v = weak(s, at, v.1.wrapping_mul(factor), self.x.wrapping_add(w.0));
        let second = self.y.wrapping_add(word(s, at + 16));
        self.w = weak(s, at + 32, self.z.wrapping_add(w.1), second);
        std::mem::swap(&mut self.z, &mut self.x);
    }
}

fn long(s: &[u8]) -> u64 {
    const SEED: u64 = 81;
    let y = SEED.wrapping_mul(K1).wrapping_add(113);
    let mut state = State {
        x: SEED.wrapping_mul(K2).wrapping_add(word(s, 0)),
        y,
        z: mix(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2),
        v: (0, 0),
        w: (0, 0),
    };
    let end = (s.len() - 1) / 64 * 64;
    for at in (0..end).step_by(64) {
        state.take(s, at, K1, false);
    }
    let factor = K1.wrapping_add((state.z & 0xff) << 1);
    let rest = (s.len() as u64 - 1) & 63;
    state.w.0 = state.w.0.wrapping_add(rest);
    state.v.0 = state.v.0.wrapping_add(state.w.0);
    state.w.0 = state.w.0.wrapping_add(state.v.0);
    state.take(s, s.len() - 64, factor, true);
    let first = both(state.v.0, state.w.0, factor)
        .wrapping_add(mix(state.y).wrapping_mul(K0))
        .wrapping_add(state.z);
    let second = both(state.v.1, state.w.1, factor).wrapping_add(state.x);
    both(first, second, factor)
}

/// The number of some bytes.
pub(super) fn fingerprint(s: &[u8]) -> u64 {
    match s.len() {
        0..=16 => short(s),
        17..=32 => to_32(s),
        33..=64 => to_64(s),
        _ => long(s),
    }
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn as_published() {
        // The first three stand in GoogleSQL's documentation, the others are those of FarmHash.
        for (text, want) in [
            ("1footrue", -1_541_654_101_129_638_711),
            ("2applefalse", 2_794_438_866_806_483_259),
            ("3true", -4_880_158_226_897_771_312),
        ] {
            assert_eq!(fingerprint(text.as_bytes()) as i64, want, "{text}");
        }
        let text = "abcdefghijklmnopqrstuvwxyz0123456789".repeat(12);
        for (length, want) in [
            (0, 11_160_318_154_034_397_263),
            (1, 12_917_804_110_809_363_939),
            (4, 1_897_425_971_756_105_985),
            (16, 6_080_716_761_534_418_621),
            (17, 11_394_395_984_755_135_400),
            (32, 934_449_955_909_727_258),
            (33, 17_626_719_820_827_885_067),
            (64, 3_646_545_258_579_766_308),
            (65, 13_112_763_581_500_850_699),
            (128, 2_056_131_915_184_924_913),
            (129, 13_911_000_258_917_250_518),
            (300, 17_618_123_504_118_165_430),
        ] {
            assert_eq!(fingerprint(&text.as_bytes()[..length]), want, "{length}");
        }
    }
}
