// Piece of the int8 kernels: activations as signed bytes, 32 at a time, and products of them with packed weights.
//
// x = scale * byte with scale = max |x| / 127 (as llama.cpp's Q8_0 and Q8_1): the error of one value is at most scale / 2.
// The products of bytes are exact. `load_packed` of the format's piece gives weights of scale * byte + minimum, so
// sum w x = x_scale * w_scale * (sum of the bytes' products) + minimum * (sum of x).

struct Quantized {
    low: vec4<u32>, // 16 signed bytes
    high: vec4<u32>, // 16 signed bytes
    factors: vec3<f32>, // the scale, and the sums of either 16 values
}

fn quantize(x: array<vec4<f32>, 8>) -> Quantized {
    // As bits, which are in the order of the values: what is not finite is above all others and stays not finite.
    var largest = vec4<u32>(0u);
    for (var i = 0u; i < 8u; i += 1u) {
        largest = max(largest, bitcast<vec4<u32>>(x[i]) & vec4<u32>(0x7fffffffu));
    }
    let bits = max(max(largest.x, largest.y), max(largest.z, largest.w));
    let highest = bitcast<f32>(bits);
    // Values so small that the division would overflow are zero beside any others.
    let inverse = select(0.0, 127.0 / highest, bits > 0x01000000u);
    let low = vec4<u32>(
        to_bytes(x[0] * inverse), to_bytes(x[1] * inverse), to_bytes(x[2] * inverse), to_bytes(x[3] * inverse));
    let high = vec4<u32>(
        to_bytes(x[4] * inverse), to_bytes(x[5] * inverse), to_bytes(x[6] * inverse), to_bytes(x[7] * inverse));
    let scale = highest / 127.0;
    let ones = vec4<u32>(0x01010101u);
    return Quantized(low, high, scale * vec3<f32>(1.0, f32(dot16(low, ones)), f32(dot16(high, ones))));
}

fn to_bytes(x: vec4<f32>) -> u32 {
    return pack4xI8(vec4<i32>(round(x)));
}

fn dot16(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
}

// The sum of 32 products.
fn dot_packed(w: array<vec4<u32>, 3>, x: Quantized) -> f32 {
    let factors = bitcast<vec4<f32>>(w[2]);
    let products = vec2<f32>(f32(dot16(w[0], x.low)), f32(dot16(w[1], x.high)));
    return x.factors.x * dot(factors.xy, products) + dot(factors.zw, x.factors.yz);
}
