// Reduction piece for LANES = 1: every row has one lane, so there is nothing to add.

fn reduce_sum(value: f32, lane: u32, group: u32) -> f32 {
    return value;
}

fn reduce_sum4(value: vec4<f32>, lane: u32, group: u32) -> vec4<f32> {
    return value;
}

fn reduce_max(value: f32, lane: u32, group: u32) -> f32 {
    return value;
}

fn reduce_min_u32(value: u32, lane: u32, group: u32) -> u32 {
    return value;
}
