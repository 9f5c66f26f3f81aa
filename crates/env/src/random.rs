//! Randomness that a seed reproduces.
//!
//! [`Random`] is a small xoshiro256** generator: fast, good enough for tests, jitter and
//! skiplist heights, and not for secrets. Code that needs unguessable bytes uses [`entropy`].

/// A seeded generator of pseudo-random numbers.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The generator of this seed: same seed, same numbers, on every machine.
    pub fn seeded(seed: u64) -> Random {
        let mut next = split_mix(seed);
        Random { state: [next(), next(), next(), next()] }
    }

    /// A generator seeded by the operating system.
    pub fn from_entropy() -> Random {
        let mut bytes = [0u8; 8];
        entropy(&mut bytes);
        Random::seeded(u64::from_le_bytes(bytes))
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `0..bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below((high - low).saturating_add(1))
    }

    /// True with probability `numerator / denominator`.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// A number in `[0, 1)`.
    pub fn fraction(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Fills `buffer` with random bytes.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let bytes = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }

    /// One element of a slice that is not empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// Brings the elements into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// A xoroshiro128** generator, seeded with a fraction as `setseed` of PostgreSQL 15 does it: who
/// has a seed gets the numbers there and here.
#[derive(Debug, Clone)]
pub struct Fractions {
    state: [u64; 2],
}

impl Fractions {
    /// The generator of a seed between -1 and 1.
    pub fn seeded(seed: f64) -> Fractions {
        let mut next = split_mix((((1u64 << 52) - 1) as f64 * seed) as i64 as u64);
        Fractions { state: [next(), next()] }
    }

    /// The next number in `[0, 1)`.
    pub fn next_fraction(&mut self) -> f64 {
        let [first, second] = self.state;
        let mixed = second ^ first;
        let bits = first.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.state = [first.rotate_left(24) ^ mixed ^ (mixed << 16), mixed.rotate_left(37)];
        (bits >> 12) as f64 / (1u64 << 52) as f64
    }
}

/// The numbers of splitmix64, with which both generators fill their state.
fn split_mix(seed: u64) -> impl FnMut() -> u64 {
    let mut x = seed;
    move || {
        x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = x;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// Fills `buffer` with bytes nobody can guess, from the operating system.
pub(crate) fn entropy(buffer: &mut [u8]) {
    let mut filled = 0;
    while filled < buffer.len() {
        // An interrupted call is the only failure there is for a valid buffer; it is tried again.
        if let Ok(n) =
            rustix::rand::getrandom(&mut buffer[filled..], rustix::rand::GetRandomFlags::empty())
        {
            filled += n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_bounds_hold() {
        let mut a = Random::seeded(7);
        let mut b = Random::seeded(7);
        for _ in 0..1_000 {
            assert_eq!(a.next_u64(), b.next_u64());
            assert!(a.below(10) < 10);
            b.below(10);
            assert!((5..=9).contains(&a.between(5, 9)));
            b.between(5, 9);
        }
        assert_ne!(Random::seeded(1).next_u64(), Random::seeded(2).next_u64());
    }
}
