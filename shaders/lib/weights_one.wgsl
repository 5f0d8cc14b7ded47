// Weights piece of matvec.wgsl: all rows are of one format.

fn load_weights(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    return load_chunk(row, chunk);
}
