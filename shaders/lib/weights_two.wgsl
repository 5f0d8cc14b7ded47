// Weights piece of matvec.wgsl: rows from SPLIT on are those of weights_2, in a format of its own. The composer declares
// that buffer and appends the second format's piece, whose names it ends in _2.

fn load_weights(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    if (row < SPLIT) {
        return load_chunk(row, chunk);
    }
    return load_chunk_2(row - SPLIT, chunk);
}
