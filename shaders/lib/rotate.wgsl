// Piece of the kernels that rotate heads of qkv and store them in the cache: they declare qkv, angles, norms, k_cache and
// v_cache, and QK_NORM, ROPE_DIM, NEOX and KV_F16.

// Dimension i of the head that begins at `base`, normalised.
fn normed(base: u32, norm: u32, scale: f32, i: u32) -> f32 {
    if (QK_NORM) {
        return qkv[base + i] * scale * norms[norm + i];
    }
    return qkv[base + i];
}

// Dimension i of the head, normalised and rotated.
fn rotated(base: u32, norm: u32, scale: f32, position: u32, i: u32) -> f32 {
    let value = normed(base, norm, scale, i);
    if (i >= ROPE_DIM) {
        return value;
    }
    let half = ROPE_DIM / 2u;
    let is_first = select(i % 2u == 0u, i < half, NEOX);
    let partner = select(i ^ 1u, select(i - half, i + half, i < half), NEOX);
    let angle = angles[position * half + select(i / 2u, i % half, NEOX)];
    let turned = normed(base, norm, scale, partner) * angle.y;
    return value * angle.x + select(turned, -turned, is_first);
}

const HALF_NAN: u32 = 0x7e00u;

// Two values as f16. Beyond f16's range packing is undefined; the largest finite value is the nearest one. What is not
// finite becomes NaN: a clamp may turn it into a number, and the answer would go on as if nothing had happened. Its bits
// tell, because compilers may assume that there are no NaNs.
fn half_pair(pair: vec2<f32>) -> u32 {
    let word = pack2x16float(clamp(pair, vec2<f32>(-65504.0), vec2<f32>(65504.0)));
    let exponents = bitcast<vec2<u32>>(pair) & vec2<u32>(0x7f800000u);
    let low = select(word & 0xffffu, HALF_NAN, exponents.x == 0x7f800000u);
    let high = select(word >> 16u, HALF_NAN, exponents.y == 0x7f800000u);
    return low | (high << 16u);
}

// Writes dimensions `at` and `at` + 1 of a cache.
fn store(is_value: bool, at: u32, pair: vec2<f32>) {
    if (KV_F16) {
        let word = half_pair(pair);
        if (is_value) {
            v_cache[at / 2u] = word;
        } else {
            k_cache[at / 2u] = word;
        }
    } else {
        if (is_value) {
            v_cache[at] = bitcast<u32>(pair.x);
            v_cache[at + 1u] = bitcast<u32>(pair.y);
        } else {
            k_cache[at] = bitcast<u32>(pair.x);
            k_cache[at + 1u] = bitcast<u32>(pair.y);
        }
    }
}
