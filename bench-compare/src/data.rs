//! Keys, values and random numbers, the same in every engine (the Go driver has the twin of this
//! file), so that all of them do the same work in the same order.

/// SplitMix64: small, good enough, and easy to write twice.
#[derive(Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn seeded(seed: u64) -> Rng {
        Rng(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// 16 bytes: the number big-endian, then zeros, as RocksDB's db_bench makes them.
pub fn key(n: u64) -> [u8; 16] {
    let mut key = *b"0000000000000000";
    key[..8].copy_from_slice(&n.to_be_bytes());
    key
}

/// Values that compress to about a half: random bytes, then the same again.
pub struct Values {
    pool: Vec<u8>,
    len: usize,
}

impl Values {
    pub fn new(len: usize) -> Values {
        let mut rng = Rng::seeded(99);
        let half = len.div_ceil(2);
        let mut pool = Vec::new();
        while pool.len() < 1 << 20 {
            let start = pool.len();
            for _ in 0..half {
                pool.push(rng.next() as u8);
            }
            let again = pool[start..start + half].to_vec();
            pool.extend_from_slice(&again);
        }
        Values { pool, len }
    }

    /// The value that belongs to a number.
    pub fn get(&self, n: u64) -> &[u8] {
        let step = 2 * self.len.div_ceil(2);
        let slots = (self.pool.len() - self.len) / step;
        let at = (n as usize % slots) * step;
        &self.pool[at..at + self.len]
    }
}

/// Zipfian ranks over `n` items with exponent 0.99 (Gray et al., "Quickly Generating
/// Billion-Record Synthetic Databases", 1994), scattered over the key space by a hash.
pub struct Zipf {
    n: f64,
    alpha: f64,
    zetan: f64,
    eta: f64,
    items: u64,
}

impl Zipf {
    pub fn new(items: u64) -> Zipf {
        const THETA: f64 = 0.99;
        let zeta = |n: u64| (1..=n).map(|i| 1.0 / (i as f64).powf(THETA)).sum::<f64>();
        let (zetan, zeta2) = (zeta(items), zeta(2));
        let n = items as f64;
        let eta = (1.0 - (2.0 / n).powf(1.0 - THETA)) / (1.0 - zeta2 / zetan);
        Zipf { n, alpha: 1.0 / (1.0 - THETA), zetan, eta, items }
    }

    pub fn next(&self, rng: &mut Rng) -> u64 {
        let u = (rng.next() >> 11) as f64 / (1u64 << 53) as f64;
        let uz = u * self.zetan;
        let rank = if uz < 1.0 {
            0
        } else if uz < 1.0 + 0.5f64.powf(0.99) {
            1
        } else {
            (self.n * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as u64
        };
        Rng::seeded(rank).next() % self.items
    }
}
