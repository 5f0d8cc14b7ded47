//! Names of calls.

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const NUM_LETTERS: usize = 24;

/// Mixes a value into a hash (the finaliser of SplitMix64).
fn mix(hash: u64, value: u64) -> u64 {
    let mut z = (hash ^ value).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// What an answer's ids are made of: equal seeds give equal ids for the same prompt, and no other prompt's, so that the
/// calls of a conversation never share one.
pub fn call_ids_key(seed: u64, prompt: &[u32], choice: usize) -> u64 {
    prompt.iter().fold(mix(seed, choice as u64), |hash, &id| mix(hash, u64::from(id)))
}

/// The id of an answer's `index`-th call.
pub(super) fn call_id(key: u64, index: usize) -> String {
    let mut id = "call_".to_owned();
    let mut state = mix(key, index as u64);
    for _ in 0..NUM_LETTERS {
        state = mix(state, 1);
        id.push(char::from(LETTERS[usize::try_from(state % 62).unwrap_or(0)]));
    }
    id
}

/// An id of nine letters that stands for another: some templates take no other ids.
pub(super) fn short_id(id: &str) -> String {
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    call_id(id.bytes().fold(0, |hash, byte| mix(hash, u64::from(byte))), 0)[5..14].to_owned()
}
