// Weights piece of matvec.wgsl for products of bytes: rows from SPLIT on are those of weights_2, see weights_two.wgsl.

fn load_packed_weights(row: u32, chunk: u32) -> array<vec4<u32>, 3> {
    if (row < SPLIT) {
        return load_packed(row, chunk);
    }
    return load_packed_2(row - SPLIT, chunk);
}
