// Product piece of matvec.wgsl: of bytes, see int8.wgsl. Each lane rounds a chunk of x for all its weight rows.

alias Prepared = Quantized;

fn prepare(x: array<vec4<f32>, 8>) -> Prepared {
    return quantize(x);
}

// The sum of the products of a chunk.
fn times(row: u32, chunk: u32, x: Prepared) -> vec4<f32> {
    return vec4<f32>(dot_packed(load_packed_weights(row, chunk), x), 0.0, 0.0, 0.0);
}
