//! XXH64, the checksum: fast, known, and good at noticing accidents. It keeps no secret and stops no forger.

const PRIMES: [u64; 5] =
    [0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9, 0x85EB_CA77_C2B2_AE63, 0x27D4_EB2F_1656_67C5];

/// Bytes that are taken in at a time: eight for each lane.
const STRIPE: usize = 32;

/// Hashes bytes that come in pieces; where they are cut makes no difference.
#[derive(Debug, Clone)]
pub struct Xxh64 {
    seed: u64,
    lanes: [u64; 4],
    /// What does not fill a stripe yet.
    rest: Vec<u8>,
    num_bytes: u64,
}

impl Xxh64 {
    /// Nothing hashed yet.
    pub fn new(seed: u64) -> Self {
        let lanes = [seed.wrapping_add(PRIMES[0]).wrapping_add(PRIMES[1]), seed.wrapping_add(PRIMES[1]), seed, {
            seed.wrapping_sub(PRIMES[0])
        }];
        Self { seed, lanes, rest: Vec::with_capacity(STRIPE), num_bytes: 0 }
    }

    /// The hash of `bytes` alone.
    pub fn of(seed: u64, bytes: &[u8]) -> u64 {
        let mut hash = Self::new(seed);
        hash.update(bytes);
        hash.finish()
    }

    /// Goes on with `bytes`.
    pub fn update(&mut self, mut bytes: &[u8]) {
        self.num_bytes = self.num_bytes.wrapping_add(bytes.len() as u64);
        if !self.rest.is_empty() {
            let (head, tail) = bytes.split_at(bytes.len().min(STRIPE - self.rest.len()));
            self.rest.extend(head);
            bytes = tail;
            if self.rest.len() < STRIPE {
                return;
            }
            let stripe = std::mem::take(&mut self.rest);
            self.stripes(&stripe);
        }
        let (whole, rest) = bytes.split_at(bytes.len() / STRIPE * STRIPE);
        self.stripes(whole);
        self.rest.extend(rest);
    }

    fn stripes(&mut self, bytes: &[u8]) {
        let mut lanes = self.lanes;
        for stripe in bytes.chunks_exact(STRIPE) {
            for (lane, word) in lanes.iter_mut().zip(stripe.chunks_exact(8)) {
                *lane = round(*lane, number(word));
            }
        }
        self.lanes = lanes;
    }

    /// The hash of all bytes so far.
    pub fn finish(&self) -> u64 {
        let [a, b, c, d] = self.lanes;
        let mut hash = self.seed.wrapping_add(PRIMES[4]);
        if self.num_bytes >= STRIPE as u64 {
            let turned = [a.rotate_left(1), b.rotate_left(7), c.rotate_left(12), d.rotate_left(18)];
            hash = turned.into_iter().fold(0, u64::wrapping_add);
            for lane in self.lanes {
                hash = (hash ^ round(0, lane)).wrapping_mul(PRIMES[0]).wrapping_add(PRIMES[3]);
            }
        }
        hash = hash.wrapping_add(self.num_bytes);
        let (words, rest) = self.rest.split_at(self.rest.len() / 8 * 8);
        for word in words.chunks_exact(8) {
            hash = (hash ^ round(0, number(word))).rotate_left(27).wrapping_mul(PRIMES[0]).wrapping_add(PRIMES[3]);
        }
        let (halves, bytes) = rest.split_at(rest.len() / 4 * 4);
        if !halves.is_empty() {
            hash ^= number(halves).wrapping_mul(PRIMES[0]);
            hash = hash.rotate_left(23).wrapping_mul(PRIMES[1]).wrapping_add(PRIMES[2]);
        }
        for &byte in bytes {
            hash = (hash ^ u64::from(byte).wrapping_mul(PRIMES[4])).rotate_left(11).wrapping_mul(PRIMES[0]);
        }
        hash = (hash ^ (hash >> 33)).wrapping_mul(PRIMES[1]);
        hash = (hash ^ (hash >> 29)).wrapping_mul(PRIMES[2]);
        hash ^ (hash >> 32)
    }
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIMES[1])).rotate_left(31).wrapping_mul(PRIMES[0])
}

/// Up to eight bytes as a little-endian number.
fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}
