// BF16: two weights per word. Layout: src/quant/bf16.rs.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let at = row * ROW_WORDS + chunk * 16u;
    return array<vec4<f32>, 8>(bf16_quad(at), bf16_quad(at + 2u), bf16_quad(at + 4u), bf16_quad(at + 6u),
        bf16_quad(at + 8u), bf16_quad(at + 10u), bf16_quad(at + 12u), bf16_quad(at + 14u));
}

fn bf16_quad(at: u32) -> vec4<f32> {
    let a = weights[at];
    let b = weights[at + 1u];
    return bitcast<vec4<f32>>(vec4<u32>(a << 16u, a & 0xffff0000u, b << 16u, b & 0xffff0000u));
}
