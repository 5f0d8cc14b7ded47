// F16: two weights per word. Layout: src/quant/f16.rs.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let at = row * ROW_WORDS + chunk * 16u;
    return array<vec4<f32>, 8>(f16_quad(at), f16_quad(at + 2u), f16_quad(at + 4u), f16_quad(at + 6u),
        f16_quad(at + 8u), f16_quad(at + 10u), f16_quad(at + 12u), f16_quad(at + 14u));
}

fn f16_quad(at: u32) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(weights[at]), unpack2x16float(weights[at + 1u]));
}
