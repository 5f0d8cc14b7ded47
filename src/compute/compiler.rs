//! Pipelines and bind groups of a recording's dispatches.

use std::collections::HashMap;

use super::gpu::Gpu;
use super::recording::{Access, Dispatch, Recording, RowClass};
use crate::{Error, Result};

/// A dispatch, compiled.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) pipeline: wgpu::ComputePipeline,
    pub(super) bind_group: wgpu::BindGroup,
    pub(super) class: RowClass,
}

/// Compiles each distinct pipeline once.
pub(super) struct Compiler<'a> {
    gpu: &'a Gpu,
    step: &'a wgpu::Buffer,
    modules: HashMap<String, wgpu::ShaderModule>,
    layouts: HashMap<&'static [Access], wgpu::BindGroupLayout>,
    pipelines: HashMap<(String, String), wgpu::ComputePipeline>,
}

impl<'a> Compiler<'a> {
    /// Nothing compiled yet.
    pub(super) fn new(gpu: &'a Gpu, step: &'a wgpu::Buffer) -> Self {
        Self { gpu, step, modules: HashMap::new(), layouts: HashMap::new(), pipelines: HashMap::new() }
    }

    /// All dispatches of a recording.
    ///
    /// # Errors
    /// `wrong_result` if a kernel does not compile here.
    pub(super) async fn compile_all(
        mut self,
        recording: &Recording,
        buffers: &[wgpu::Buffer],
    ) -> Result<Vec<Compiled>> {
        let mut compiled = Vec::with_capacity(recording.dispatches().len());
        for dispatch in recording.dispatches() {
            let pipeline = self.pipeline(dispatch).await?;
            let bind_group = self.bind_group(dispatch, buffers);
            compiled.push(Compiled { pipeline, bind_group, class: dispatch.class });
        }
        Ok(compiled)
    }

    async fn pipeline(&mut self, dispatch: &Dispatch) -> Result<wgpu::ComputePipeline> {
        let shader = dispatch.kernel.shader();
        let source = shader.compose(cfg!(target_arch = "wasm32"));
        let constants = dispatch.kernel.constants();
        let key = (source, format!("{constants:?}"));
        if let Some(pipeline) = self.pipelines.get(&key) {
            return Ok(pipeline.clone());
        }
        let device = &self.gpu.device;
        let scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let module = self.modules.entry(key.0.clone()).or_insert_with(|| {
            let source = wgpu::ShaderSource::Wgsl(key.0.as_str().into());
            device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some(shader.stem), source })
        });
        let layout =
            self.layouts.entry(dispatch.kernel.access()).or_insert_with_key(|access| bind_group_layout(device, access));
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(shader.stem),
            bind_group_layouts: &[Some(layout)],
            immediate_size: 0,
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(shader.stem),
            layout: Some(&layout),
            module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &constants,
                zero_initialize_workgroup_memory: false,
            },
            cache: None,
        });
        if let Some(error) = scope.pop().await {
            return Err(Error::WrongResult(format!(
                "the kernel {} does not compile on {}: {error}",
                shader.stem,
                self.gpu.name()
            )));
        }
        self.pipelines.insert(key, pipeline.clone());
        Ok(pipeline)
    }

    fn bind_group(&self, dispatch: &Dispatch, buffers: &[wgpu::Buffer]) -> wgpu::BindGroup {
        let bound = dispatch.buffers.iter().map(|id| &buffers[id.0]).chain([self.step]);
        let entries: Vec<_> = (0..)
            .zip(bound)
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        self.gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(dispatch.kernel.shader().stem),
            layout: &self.layouts[dispatch.kernel.access()],
            entries: &entries,
        })
    }
}

fn bind_group_layout(device: &wgpu::Device, access: &[Access]) -> wgpu::BindGroupLayout {
    let storage = access.iter().map(|a| wgpu::BufferBindingType::Storage { read_only: *a == Access::Read });
    let entries: Vec<_> = (0..)
        .zip(storage.chain([wgpu::BufferBindingType::Uniform]))
        .map(|(binding, ty)| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
            count: None,
        })
        .collect();
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries })
}
