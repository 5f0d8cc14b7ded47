//! The residual stream: the norms between blocks, and the projections that leave it and come back to it.
//!
//! One row is normalised on the way into the projections that follow, if the adapter wants it so; more by a kernel of
//! their own, whose output `h` is then read several times.

use super::forward::Recorder;
use super::weights::Part;
use crate::Result;
use crate::compute::{BufferId, Purpose, RowClass, Rows};
use crate::gguf::TensorInfo;
use crate::kernels::{Epilogue, FusedNorm, Operand, Projection, RmsNorm, RmsNormAdd};
use crate::quant::Format;

impl Recorder<'_> {
    /// Opens the first block: its norm of x.
    pub(super) fn first_block(&mut self, norm: &str) -> Result<Operand> {
        let weights = self.placer.vector(&mut self.recording, norm, self.config.width)?;
        Ok(self.open(FusedNorm::Norm { x: self.act.x, weights }, self.layout.tuning.fused_norms))
    }

    /// Ends a block and opens the next: the closing norm, if the model has one, the residual, and the next block's norm.
    pub(super) fn next_block(&mut self, layer: usize, post: &str, next: &str) -> Result<Operand> {
        let norm = self.between_blocks(layer, post, next)?;
        Ok(self.open(norm, self.layout.tuning.fused_norms))
    }

    /// Ends the last block: the output norm in h, once a step for all that follows.
    pub(super) fn last_block(&mut self, layer: usize, post: &str, output_norm: &str) -> Result<()> {
        let norm = self.between_blocks(layer, post, output_norm)?;
        self.open(norm, false);
        Ok(())
    }

    /// What lies between two blocks. Behind a closing norm the stream is in the other of two buffers: one row is
    /// normalised by every workgroup that needs it, and only one of those writes.
    fn between_blocks(&mut self, layer: usize, post: &str, next: &str) -> Result<FusedNorm> {
        let width = self.config.width;
        if !self.config.post_norm {
            let weights = self.placer.vector(&mut self.recording, next, width)?;
            return Ok(FusedNorm::Norm { x: self.act.x, weights });
        }
        let post = format!("blk.{layer}.{post}.weight");
        let norms = self.recording.buffer(format!("{post}, {next}"), 2 * width, Purpose::Weights);
        self.placer.vector_into(norms, 0, &post, width)?;
        self.placer.vector_into(norms, width, next, width)?;
        let (x, x_next) = (self.act.x, self.act.x_next);
        (self.act.x, self.act.x_next) = (x_next, x);
        Ok(FusedNorm::AddNorm { x, o: self.act.o, norms, x_next })
    }

    /// Records a norm for those rows that are not normalised on the way.
    fn open(&mut self, norm: FusedNorm, is_fused: bool) -> Operand {
        let (width, epsilon, tuning) = (self.config.width, self.config.epsilon, &self.layout.tuning);
        let class = if is_fused { RowClass::more_than_one(Rows::Tokens) } else { RowClass::Any };
        let h = self.act.h;
        match norm {
            FusedNorm::Norm { x, weights } => {
                self.recording.dispatch(RmsNorm::new(width, epsilon, tuning), &[x, weights, h], class);
            }
            FusedNorm::AddNorm { x, o, norms, x_next } => {
                let kernel = RmsNormAdd::new(width, epsilon, tuning);
                self.recording.dispatch(kernel, &[o, norms, x, x_next, h], class);
            }
        }
        Operand { rows: h, fused: is_fused.then_some(norm) }
    }

    /// From the block's input, normalised, to its output added to x (or, before a closing norm, stored in o).
    pub(super) fn feed_forward(&mut self, layer: usize, input: Operand) -> Result<()> {
        let (width, inner) = (self.config.width, self.config.feed_forward);
        let gate = self.placer.tensor(&format!("blk.{layer}.ffn_gate.weight"), &[width, inner])?;
        let up = self.placer.tensor(&format!("blk.{layer}.ffn_up.weight"), &[width, inner])?;
        let (hidden, epilogue) = (self.act.hidden, self.config.gate);
        if gate.format == up.format {
            for part in self.placer.gated(&mut self.recording, gate, up) {
                self.record(gate, &part, epilogue, input, hidden, (inner, 0));
            }
        } else {
            self.gate_of_two_formats(gate, up, input);
        }
        let down = self.placer.tensor(&format!("blk.{layer}.ffn_down.weight"), &[inner, width])?;
        self.project_back(down, hidden);
        Ok(())
    }

    fn gate_of_two_formats(&mut self, gate: &TensorInfo, up: &TensorInfo, input: Operand) {
        let (inner, hidden, epilogue) = (self.config.feed_forward, self.act.hidden, self.config.gate);
        let gates = self.placer.stack(&mut self.recording, &[gate]);
        let ups = self.placer.stack(&mut self.recording, &[up]);
        if let ([of_gate], [of_up]) = (gates.as_slice(), ups.as_slice()) {
            let pair = [(gate, of_gate), (up, of_up)]
                .map(|(tensor, part)| self.projection(tensor, part, Epilogue::Store, (inner, 0)));
            let buffers = [of_gate.buffer, of_up.buffer];
            let tuning = &self.layout.tuning;
            Projection::record_pair(pair, Some(epilogue), &mut self.recording, tuning, buffers, input, hidden);
            return;
        }
        // Split, and not at the same rows: one after the other, for one row too.
        let [of_gate, of_up] = epilogue.in_two_steps().unwrap_or([Epilogue::Store; 2]);
        for part in &gates {
            self.record(gate, part, of_gate, input, hidden, (inner, 0));
        }
        for part in &ups {
            self.record(up, part, of_up, input, hidden, (inner, 0));
        }
    }

    /// A projection back to the model's width: added to x, or stored in o where a closing norm comes first.
    pub(super) fn project_back(&mut self, tensor: &TensorInfo, input: BufferId) {
        let (output, epilogue) =
            if self.config.post_norm { (self.act.o, Epilogue::Store) } else { (self.act.x, Epilogue::Add) };
        self.project(&[tensor], epilogue, input.into(), output);
    }

    /// Projects by tensors whose outputs are neighbours and fill rows of y. Neighbours of one format share a dispatch;
    /// for one row those of two formats do too.
    pub(super) fn project(&mut self, tensors: &[&TensorInfo], epilogue: Epilogue, input: Operand, y: BufferId) {
        let stride = tensors.iter().map(|tensor| tensor.num_rows()).sum();
        let mut parts = Vec::new();
        let mut offset = 0;
        for same in tensors.chunk_by(|a, b| a.format == b.format) {
            for part in self.placer.stack(&mut self.recording, same) {
                parts.push((same[0], part, offset));
            }
            offset += same.iter().map(|tensor| tensor.num_rows()).sum::<usize>();
        }
        let mut rest = parts.as_slice();
        while let Some(((tensor, part, offset), behind)) = rest.split_first() {
            rest = behind;
            match behind.split_first() {
                Some(((other, next, next_offset), behind)) if other.format != tensor.format => {
                    let pair = [(tensor, part, offset), (other, next, next_offset)]
                        .map(|(tensor, part, offset)| self.projection(tensor, part, epilogue, (stride, *offset)));
                    let (buffers, tuning) = ([part.buffer, next.buffer], &self.layout.tuning);
                    Projection::record_pair(pair, None, &mut self.recording, tuning, buffers, input, y);
                    rest = behind;
                }
                _ => self.record(tensor, part, epilogue, input, y, (stride, *offset)),
            }
        }
    }

    fn record(
        &mut self,
        tensor: &TensorInfo,
        part: &Part,
        epilogue: Epilogue,
        input: Operand,
        y: BufferId,
        place: (usize, usize),
    ) {
        let projection = self.projection(tensor, part, epilogue, place);
        projection.record(&mut self.recording, &self.layout.tuning, part.buffer, input, y);
    }

    /// The numbers of a part's projection into rows of y of a width, from an offset on.
    fn projection(
        &self,
        tensor: &TensorInfo,
        part: &Part,
        epilogue: Epilogue,
        (out_stride, offset): (usize, usize),
    ) -> Projection {
        let (k, format, epsilon): (_, Format, _) = (tensor.row_elements(), tensor.format, self.config.epsilon);
        let out_offset = offset + part.first;
        Projection { format, k, n: part.num, epilogue, rows: Rows::Tokens, out_stride, out_offset, epsilon }
    }
}
