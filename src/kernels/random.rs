//! Random inputs for the kernels' cases.

use half::{bf16, f16};

use crate::quant::Format;

/// A small generator of random inputs (xorshift64*): the same cases everywhere.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }

    pub(super) fn bits(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as u32
    }

    /// Uniform in [-1, 1).
    pub(super) fn float(&mut self) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "24 bits are exact")]
        let unit = (self.bits() >> 8) as f32 / 8_388_608.0;
        unit - 1.0
    }

    pub(super) fn floats(&mut self, num: usize) -> Vec<u32> {
        (0..num).map(|_| self.float().to_bits()).collect()
    }

    /// A buffer of rows of a format: random bits with weights below one, packed.
    pub(super) fn weights(&mut self, format: Format, num_rows: usize, k: usize) -> Vec<u32> {
        let words = format.packed_row_words(k);
        let mut packed = vec![0; num_rows * words];
        for row in packed.chunks_exact_mut(words) {
            format.pack_row(&self.gguf_row(format, k), row);
        }
        packed.extend(format.codebook());
        packed
    }

    pub(super) fn gguf_row(&mut self, format: Format, k: usize) -> Vec<u8> {
        match format {
            Format::F32 => (0..k).flat_map(|_| self.float().to_le_bytes()).collect(),
            Format::F16 => (0..k).flat_map(|_| f16::from_f32(self.float()).to_le_bytes()).collect(),
            Format::Bf16 => (0..k).flat_map(|_| bf16::from_f32(self.float()).to_le_bytes()).collect(),
            _ => {
                let mut bytes: Vec<u8> = (0..format.row_bytes(k)).map(|_| self.bits().to_le_bytes()[0]).collect();
                for block in bytes.chunks_exact_mut(format.block_bytes()) {
                    self.set_scales(format, block);
                }
                bytes
            }
        }
    }

    /// Gives a block of random bits scales with which its largest weights are near one, in any format: how far a device
    /// may be from the twin does not depend on it.
    fn set_scales(&mut self, format: Format, block: &mut [u8]) {
        // Where the f16 scales are, and the largest number that they are multiplied with.
        let (offsets, largest): (&[usize], f32) = match format {
            Format::Q4_0 => (&[0], 8.0),
            Format::Q4_1 => (&[0, 2], 15.0),
            Format::Q5_0 => (&[0], 16.0),
            Format::Q5_1 => (&[0, 2], 31.0),
            Format::Q8_0 => (&[0], 128.0),
            Format::Q2K => (&[80, 82], 15.0 * 3.0),
            Format::Q3K => (&[108], 32.0 * 4.0),
            Format::Q4K => (&[0, 2], 63.0 * 15.0),
            Format::Q5K => (&[0, 2], 63.0 * 31.0),
            Format::Q6K => (&[208], 128.0 * 32.0),
            Format::Iq1S => (&[0], 15.0 * 1.125),
            Format::Iq2Xxs | Format::Iq2Xs | Format::Iq2S => (&[0], 3.875 * 43.0),
            Format::Iq3Xxs => (&[0], 7.75 * 62.0),
            Format::Iq3S => (&[0], 31.0 * 15.0),
            Format::Iq4Nl => (&[0], 127.0),
            Format::Iq4Xs => (&[0], 32.0 * 127.0),
            Format::Tq1_0 => (&[52], 1.0),
            Format::Tq2_0 => (&[64], 2.0),
            Format::Iq1M => {
                // Its f16 is in four nibbles.
                let [low, high] = self.scale(15.0 * 1.125);
                for (at, nibble) in [(49, low & 15), (51, low >> 4), (53, high & 15), (55, high >> 4)] {
                    block[at] = (block[at] & 15) | (nibble << 4);
                }
                return;
            }
            Format::Mxfp4 => {
                // An exponent with a bias of 128; the largest value is 12.
                block[0] = 122 + block[0] % 4;
                return;
            }
            Format::F32 | Format::F16 | Format::Bf16 => return,
        };
        for &at in offsets {
            block[at..at + 2].copy_from_slice(&self.scale(largest));
        }
    }

    /// An f16 of a quarter to the whole of `1 / largest`, of either sign: never subnormal, as devices may take that for
    /// zero.
    fn scale(&mut self, largest: f32) -> [u8; 2] {
        let unit = self.float();
        f16::from_f32((0.25 + 0.75 * unit.abs()).copysign(unit) / largest).to_le_bytes()
    }
}
