//! The adapter and the device: what the visitor's GPU is, and what it reports going wrong.

use std::sync::{Arc, Mutex};

use super::compiler::Pipelines;
use super::tuning::{AdapterKind, Tuning};
use crate::{Error, Result};

/// How to choose and open an adapter.
#[derive(Debug, Clone, Default)]
pub struct GpuOptions {
    /// Open the device with WebGPU's default limits and no optional feature, whatever the adapter offers.
    pub baseline: bool,
    /// Part of the name of the adapter to take (native only); the first adapter otherwise.
    pub adapter: Option<String>,
    /// What a page knows of the adapter beyond what wgpu reports (vendor and architecture of `GPUAdapterInfo`).
    pub hint: String,
    /// The page has arranged that devices are opened with the `subgroups` feature (wgpu's web backend cannot ask).
    pub subgroups: bool,
    /// Overrides how kernels are chosen.
    pub tuning: Option<Tuning>,
}

/// What the device reported since it was opened.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Why the device is gone.
    pub(super) lost: Option<String>,
    /// The first error that no scope caught.
    pub(super) uncaptured: Option<Error>,
}

/// An open device.
#[derive(Debug, Clone)]
pub struct Gpu {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) faults: Arc<Mutex<Faults>>,
    pub(super) pipelines: Pipelines,
    name: String,
    kind: AdapterKind,
    driver: String,
    subgroup_lanes: u32,
    tuning: Tuning,
    limits: GpuLimits,
}

/// The limits that decide how a model is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuLimits {
    /// Largest range that one binding may cover.
    pub binding_bytes: u64,
    /// Largest buffer.
    pub buffer_bytes: u64,
}

impl Gpu {
    /// Opens an adapter.
    ///
    /// # Errors
    /// `no_webgpu` if there is none, or it refuses to open.
    pub async fn open(options: &GpuOptions) -> Result<Self> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapter = find_adapter(&instance, options).await?;
        let info = adapter.get_info();
        let wanted = wgpu::Features::SUBGROUP | wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::SHADER_F16;
        let required_features = if options.baseline { wgpu::Features::empty() } else { adapter.features() & wanted };
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("pagewise"),
            required_features,
            required_limits: required_limits(&adapter, options.baseline),
            ..Default::default()
        };
        let (device, queue) = adapter
            .request_device(&descriptor)
            .await
            .map_err(|error| Error::NoWebgpu(format!("the adapter {} refused to open: {error}", info.name)))?;
        let faults = watch(&device);
        let names = format!("{} {}", info.name, options.hint);
        let kind = AdapterKind::of(&names, info.device_type == wgpu::DeviceType::Cpu);
        let subgroups =
            required_features.contains(wgpu::Features::SUBGROUP) || (options.subgroups && !options.baseline);
        let lanes = if subgroups { info.subgroup_min_size.max(1) } else { 1 };
        let tuning = options.tuning.unwrap_or_else(|| Tuning::choose(kind, lanes));
        let limits = device.limits();
        let name = if info.name.is_empty() { options.hint.clone() } else { info.name };
        Ok(Self {
            device,
            queue,
            faults,
            pipelines: Pipelines::default(),
            kind,
            driver: format!("{} {}", info.driver, info.driver_info),
            subgroup_lanes: lanes,
            name: if name.is_empty() { "unnamed adapter".into() } else { name },
            tuning,
            limits: GpuLimits {
                binding_bytes: limits.max_storage_buffer_binding_size,
                buffer_bytes: limits.max_buffer_size,
            },
        })
    }

    /// The adapter's name, as far as it tells.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it computes on.
    pub fn kind(&self) -> AdapterKind {
        self.kind
    }

    /// How kernels are chosen for this adapter.
    pub fn tuning(&self) -> Tuning {
        self.tuning
    }

    /// The smallest subgroup, in lanes; 1 without subgroups.
    pub fn subgroup_lanes(&self) -> u32 {
        self.subgroup_lanes
    }

    /// Everything that measurements on it depend on: name, driver, what it offers and what is allowed.
    pub fn identity(&self) -> String {
        let (f16, limits) = (self.has_f16(), self.limits);
        format!("{} {} {:?} {} f16={f16} {limits:?}", self.name, self.driver, self.kind, self.subgroup_lanes)
    }

    /// Whether shaders can compute with f16.
    pub fn has_f16(&self) -> bool {
        self.device.features().contains(wgpu::Features::SHADER_F16)
    }

    /// The same device with kernels chosen otherwise.
    pub fn with_tuning(self, tuning: Tuning) -> Self {
        Self { tuning, ..self }
    }

    /// The device's limits.
    pub fn limits(&self) -> GpuLimits {
        self.limits
    }

    /// Forgets pipelines that nothing uses any more, as those of kernels that were timed and not chosen.
    pub fn forget_pipelines(&self) {
        self.pipelines.clear();
    }

    /// Destroys the device: its memory is free at once.
    pub fn destroy(&self) {
        self.device.destroy();
    }

    /// Remembers that the device is gone.
    pub(super) fn note_loss(&self, why: String) {
        if let Ok(mut faults) = self.faults.lock() {
            faults.lost.get_or_insert(why);
        }
    }

    /// The first thing that went wrong, if anything did.
    pub(super) fn fault(&self) -> Result<()> {
        let Ok(faults) = self.faults.lock() else {
            return Err(Error::DeviceLost("a device callback failed".into()));
        };
        match (&faults.lost, &faults.uncaptured) {
            (Some(why), _) => Err(Error::DeviceLost(format!("the GPU device was lost: {why}"))),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Ok(()),
        }
    }
}

async fn find_adapter(instance: &wgpu::Instance, options: &GpuOptions) -> Result<wgpu::Adapter> {
    if let Some(part) = &options.adapter {
        let adapters = instance.enumerate_adapters(wgpu::Backends::all()).await;
        let names: Vec<_> = adapters.iter().map(|a| a.get_info().name).collect();
        let found = adapters.into_iter().find(|a| a.get_info().name.contains(part.as_str()));
        return found.ok_or_else(|| Error::NoWebgpu(format!("no adapter named {part:?} among {names:?}")));
    }
    let request =
        wgpu::RequestAdapterOptions { power_preference: wgpu::PowerPreference::HighPerformance, ..Default::default() };
    let adapter = instance.request_adapter(&request).await;
    adapter.map_err(|error| Error::NoWebgpu(format!("no GPU adapter: {error}")))
}

/// WebGPU's default limits, raised to what the adapter has where that saves splitting or allows larger tiles.
fn required_limits(adapter: &wgpu::Adapter, baseline: bool) -> wgpu::Limits {
    let mut limits = wgpu::Limits::default();
    if !baseline {
        let has = adapter.limits();
        limits.max_storage_buffer_binding_size = has.max_storage_buffer_binding_size;
        limits.max_buffer_size = has.max_buffer_size;
    }
    limits
}

/// Notes lost devices and errors that no scope caught, so that nothing computed after them is ever used.
fn watch(device: &wgpu::Device) -> Arc<Mutex<Faults>> {
    let faults = Arc::new(Mutex::new(Faults::default()));
    let seen = faults.clone();
    device.set_device_lost_callback(move |reason, message| {
        if let Ok(mut faults) = seen.lock() {
            faults.lost.get_or_insert(format!("{reason:?}: {message}"));
        }
    });
    let seen = faults.clone();
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
        if let Ok(mut faults) = seen.lock() {
            faults.uncaptured.get_or_insert(match error {
                wgpu::Error::OutOfMemory { .. } => {
                    Error::OutOfMemory { what: "a GPU operation".into(), asked: 0, allowed: 0 }
                }
                other => Error::WrongResult(format!("the GPU reported: {other}")),
            });
        }
    }));
    faults
}
