// Piece of the kernels that multiply in tiles of 64 weight rows: which rows those are, and where their sums go. When gated, 32 are
// of the gate and 32, N rows further on, of the up-projection.

// The weight row behind row r of the tile whose first output is n.
fn weight_row(n: u32, r: u32) -> u32 {
    if (GATED) {
        return min(n + r % 32u, N - 1u) + select(0u, N, r >= 32u);
    }
    return min(n + r, N - 1u);
}

// The finished sums of row t of x: those of weight rows i, i + 16, i + 32 and i + 48 of the tile.
fn store(sums: vec4<f32>, t: u32, num_rows: u32, n: u32, i: u32) {
    if (t >= num_rows) {
        return;
    }
    let out = t * OUT_STRIDE + OUT_OFFSET;
    if (GATED) {
        if (n + i < N) {
            y[out + n + i] = finish(0.0, sums.x, sums.z);
        }
        if (n + i + 16u < N) {
            y[out + n + i + 16u] = finish(0.0, sums.y, sums.w);
        }
    } else {
        for (var part = 0u; part < 4u; part += 1u) {
            let column = n + i + 16u * part;
            if (column < N) {
                y[out + column] = finish(y[out + column], sums[part], 0.0);
            }
        }
    }
}
