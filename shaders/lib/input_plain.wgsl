// Input piece of matvec.wgsl: rows of x as they are.

const NORMED: bool = false;

fn input_factor(row: u32, lane: u32, group: u32) -> f32 {
    return 1.0;
}

fn input_quad(row: u32, i: u32, factor: f32, is_writer: bool) -> vec4<f32> {
    return x[row + i];
}

fn weighted(quad: vec4<f32>, i: u32) -> vec4<f32> {
    return quad;
}
