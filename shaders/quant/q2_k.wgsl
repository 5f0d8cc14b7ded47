// Q2_K: (d * scale) * q - (dmin * minimum), both per 16 weights. Layout: src/quant/q2_k.rs. Block of 8 chunks, 21 words:
// d and dmin; 4 words of scales and minimums, a nibble each; 2 words of pairs per chunk.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let block = row * ROW_WORDS + chunk / 8u * 21u;
    let index = chunk & 7u;
    let nibbles = vec4<u32>(weights[block + 1u + index / 2u] >> (16u * (index & 1u)));
    let factors = vec4<f32>((nibbles >> vec4<u32>(0u, 8u, 4u, 12u)) & vec4<u32>(15u));
    let d = unpack2x16float(weights[block]);
    let s = d.x * factors.xy;
    let m = d.y * factors.zw;
    let at = block + 5u + index * 2u;
    let a = weights[at];
    let b = weights[at + 1u];
    return array<vec4<f32>, 8>(
        s.x * pair_quad(a) - m.x, s.x * pair_quad(a >> 2u) - m.x,
        s.x * pair_quad(a >> 4u) - m.x, s.x * pair_quad(a >> 6u) - m.x,
        s.y * pair_quad(b) - m.y, s.y * pair_quad(b >> 2u) - m.y,
        s.y * pair_quad(b >> 4u) - m.y, s.y * pair_quad(b >> 6u) - m.y);
}

// The same weights for integer products: two vectors of 16 signed bytes, then a scale and a minimum of each as f32 bits:
// scale * byte + minimum.
fn load_packed(row: u32, chunk: u32) -> array<vec4<u32>, 3> {
    let block = row * ROW_WORDS + chunk / 8u * 21u;
    let index = chunk & 7u;
    let nibbles = vec4<u32>(weights[block + 1u + index / 2u] >> (16u * (index & 1u)));
    let factors = vec4<f32>((nibbles >> vec4<u32>(0u, 8u, 4u, 12u)) & vec4<u32>(15u));
    let d = unpack2x16float(weights[block]);
    let at = block + 5u + index * 2u;
    return array<vec4<u32>, 3>(
        (vec4<u32>(weights[at]) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(0x03030303u),
        (vec4<u32>(weights[at + 1u]) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(0x03030303u),
        bitcast<vec4<u32>>(vec4<f32>(d.x * factors.xy, -d.y * factors.zw)));
}

fn pair_quad(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(3u));
}
