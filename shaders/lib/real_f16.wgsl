// Piece of matmul_tile.wgsl: its tiles are f16, and so are the sums of 32 products. What exceeds f16's range anywhere ends
// as NaN, because a clamp, or an infinity that a softmax takes for a small number, would go on as an answer.

alias Real = f16;

fn nan_where(is_nan: vec4<bool>, quad: vec4<f32>) -> vec4<f32> {
    // Bits, because no expression may be NaN, and because compilers may assume that none is.
    return bitcast<vec4<f32>>(select(bitcast<vec4<u32>>(quad), vec4<u32>(0x7fc00000u), is_nan));
}

fn real(quad: vec4<f32>) -> vec4<f16> {
    // Beyond the range a conversion may yield the largest finite value instead of infinity.
    let is_beyond = (bitcast<vec4<u32>>(quad) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x477fe000u); // 65504
    return vec4<f16>(nan_where(is_beyond, quad));
}

fn trusted(sums: vec4<f32>) -> vec4<f32> {
    let exponents = bitcast<vec4<u32>>(sums) & vec4<u32>(0x7f800000u);
    return nan_where(exponents == vec4<u32>(0x7f800000u), sums);
}
