// Weights piece of matvec.wgsl for products of bytes: all rows are of one format.

fn load_packed_weights(row: u32, chunk: u32) -> array<vec4<u32>, 3> {
    return load_packed(row, chunk);
}
