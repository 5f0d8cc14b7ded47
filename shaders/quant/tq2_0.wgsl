// TQ2_0: d * (q - 1). Layout: src/quant/tq2_0.rs. Row: of every block of 8 chunks 16 words (2 of pairs per chunk), then the
// f16 d's.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let start = row * ROW_WORDS;
    let number = chunk / 8u;
    let d = unpack2x16float(weights[start + K / 16u + number / 2u] >> (16u * (number & 1u))).x;
    let at = start + chunk * 2u;
    let a = weights[at];
    let b = weights[at + 1u];
    return array<vec4<f32>, 8>(
        d * (pair_quad(a) - 1.0), d * (pair_quad(a >> 2u) - 1.0),
        d * (pair_quad(a >> 4u) - 1.0), d * (pair_quad(a >> 6u) - 1.0),
        d * (pair_quad(b) - 1.0), d * (pair_quad(b >> 2u) - 1.0),
        d * (pair_quad(b >> 4u) - 1.0), d * (pair_quad(b >> 6u) - 1.0));
}

fn pair_quad(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(3u));
}
