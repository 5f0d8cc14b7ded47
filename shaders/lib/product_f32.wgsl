// Product piece of matvec.wgsl: in f32.

alias Prepared = array<vec4<f32>, 8>;

fn prepare(x: array<vec4<f32>, 8>) -> Prepared {
    return x;
}

// Four sums of the products of a chunk.
fn times(row: u32, chunk: u32, x: Prepared) -> vec4<f32> {
    let w = load_weights(row, chunk);
    return w[0] * x[0] + w[1] * x[1] + w[2] * x[2] + w[3] * x[3] + w[4] * x[4] + w[5] * x[5] + w[6] * x[6] + w[7] * x[7];
}
