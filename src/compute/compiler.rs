//! Pipelines and bind groups of a recording's dispatches.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

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

/// What was compiled on a device: timing kernels, trying them and the model itself want some of the same pipelines, and
/// compiling is most of what loading takes where it is slow.
#[derive(Debug, Clone, Default)]
pub(super) struct Pipelines(Rc<RefCell<Made>>);

#[derive(Debug, Default)]
struct Made {
    modules: HashMap<String, wgpu::ShaderModule>,
    layouts: HashMap<&'static [Access], wgpu::BindGroupLayout>,
    /// By source and constants.
    pipelines: HashMap<(String, String), wgpu::ComputePipeline>,
}

impl Pipelines {
    /// Forgets all; whoever uses a pipeline keeps it.
    pub(super) fn clear(&self) {
        self.0.take();
    }

    fn layout(&self, device: &wgpu::Device, access: &'static [Access]) -> wgpu::BindGroupLayout {
        let mut made = self.0.borrow_mut();
        made.layouts.entry(access).or_insert_with(|| bind_group_layout(device, access)).clone()
    }
}

/// Compiles what a device has not compiled before.
pub(super) struct Compiler<'a> {
    gpu: &'a Gpu,
    step: &'a wgpu::Buffer,
}

impl<'a> Compiler<'a> {
    /// For dispatches that read a step's sizes from `step`.
    pub(super) fn new(gpu: &'a Gpu, step: &'a wgpu::Buffer) -> Self {
        Self { gpu, step }
    }

    /// All dispatches of a recording.
    ///
    /// # Errors
    /// `wrong_result` if a kernel does not compile here.
    pub(super) async fn compile_all(&self, recording: &Recording, buffers: &[wgpu::Buffer]) -> Result<Vec<Compiled>> {
        let mut compiled = Vec::with_capacity(recording.dispatches().len());
        for dispatch in recording.dispatches() {
            let pipeline = self.pipeline(dispatch).await?;
            let bind_group = self.bind_group(dispatch, buffers);
            compiled.push(Compiled { pipeline, bind_group, class: dispatch.class });
        }
        Ok(compiled)
    }

    async fn pipeline(&self, dispatch: &Dispatch) -> Result<wgpu::ComputePipeline> {
        let shader = dispatch.kernel.shader();
        let constants = dispatch.kernel.constants();
        let key = (shader.compose(cfg!(target_arch = "wasm32")), format!("{constants:?}"));
        let made = &self.gpu.pipelines.0;
        if let Some(pipeline) = made.borrow().pipelines.get(&key) {
            return Ok(pipeline.clone());
        }
        let device = &self.gpu.device;
        let scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let layout = self.gpu.pipelines.layout(device, dispatch.kernel.access());
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(shader.stem),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let module = made.borrow().modules.get(&key.0).cloned();
        let module = module.unwrap_or_else(|| {
            let source = wgpu::ShaderSource::Wgsl(key.0.as_str().into());
            device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some(shader.stem), source })
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(shader.stem),
            layout: Some(&layout),
            module: &module,
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
        let mut made = made.borrow_mut();
        made.modules.insert(key.0.clone(), module);
        made.pipelines.insert(key, pipeline.clone());
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
            layout: &self.gpu.pipelines.layout(&self.gpu.device, dispatch.kernel.access()),
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
