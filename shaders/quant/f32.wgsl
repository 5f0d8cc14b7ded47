// F32: the words of the file. Layout: src/quant/f32.rs.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let at = row * ROW_WORDS + chunk * 32u;
    return array<vec4<f32>, 8>(f32_quad(at), f32_quad(at + 4u), f32_quad(at + 8u), f32_quad(at + 12u),
        f32_quad(at + 16u), f32_quad(at + 20u), f32_quad(at + 24u), f32_quad(at + 28u));
}

fn f32_quad(at: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(vec4<u32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]));
}
