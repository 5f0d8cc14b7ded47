//! Decode against the adapter's bandwidth, prefill against its arithmetic, for models of real shapes with random weights.
//!
//!     cargo bench --bench roofline [-- --adapter NAME-PART] [--shapes 1B,0.6B] [--formats Q4_0,Q8_0] [--contexts 128,1024] [--prompt 512]
//!
//! `scripts/gpu-bench` runs it with what a GPU takes minutes for; `node benches/roofline/run.mjs` runs it in a browser.
#![allow(clippy::cast_precision_loss, reason = "sizes and times of a benchmark")]

#[path = "../../tests/common/gguf_writer.rs"]
mod gguf_writer;
mod measure;
mod peak;
mod report;
mod synthetic;

use pagewise::compute::{Gpu, GpuOptions};
use pagewise::quant::Format;
use pagewise::{Error, Result};

/// What to measure.
#[derive(Debug)]
pub(crate) struct Plan {
    adapter: Option<String>,
    /// Parts of the shapes' names.
    shapes: Vec<String>,
    formats: Vec<Format>,
    contexts: Vec<usize>,
    /// Tokens of the prompt that prefill is measured with.
    prompt_tokens: usize,
    /// Nothing new is begun after so many seconds.
    limit_s: f64,
}

impl Plan {
    /// Reads `--name value` pairs; what is not given suits a small machine.
    ///
    /// # Errors
    /// `bad_request` naming what is wrong.
    fn parse(arguments: &[String]) -> Result<Self> {
        let bad = |what: &str| Error::BadRequest(what.to_owned());
        let mut plan = Self {
            adapter: None,
            shapes: vec!["SmolLM2".to_owned()],
            formats: vec![Format::Q4_0],
            contexts: vec![128, 1024, 4096],
            prompt_tokens: 512,
            limit_s: f64::MAX,
        };
        let mut rest = arguments.iter().filter(|argument| *argument != "--bench");
        while let Some(name) = rest.next() {
            let value = rest.next().ok_or_else(|| bad(&format!("{name} wants a value")))?;
            let list = || value.split(',').map(str::to_owned).collect::<Vec<_>>();
            match name.as_str() {
                "--adapter" => plan.adapter = Some(value.clone()),
                "--shapes" => plan.shapes = list(),
                "--formats" => {
                    let find = |name: &String| {
                        let found = Format::ALL.into_iter().find(|format| format.name() == name);
                        found.ok_or_else(|| bad(&format!("no format {name}")))
                    };
                    plan.formats = list().iter().map(find).collect::<Result<_>>()?;
                }
                "--contexts" => plan.contexts = list().iter().map(|text| tokens(text)).collect::<Result<_>>()?,
                "--prompt" => plan.prompt_tokens = tokens(value)?,
                "--limit-s" => plan.limit_s = value.parse().map_err(|_| bad(&format!("{value} seconds")))?,
                _ => return Err(bad(&format!("no option {name}"))),
            }
        }
        Ok(plan)
    }
}

fn tokens(text: &str) -> Result<usize> {
    match text.parse() {
        Ok(num) if (1..=16_000).contains(&num) => Ok(num),
        _ => Err(Error::BadRequest(format!("{text} tokens, 1 to 16000 allowed"))),
    }
}

/// Measures and reports as it goes: `print` gets Markdown.
async fn run(plan: &Plan, options: GpuOptions, print: impl Fn(&str)) -> Result<()> {
    let start = web_time::Instant::now();
    let gpu = Gpu::open(&GpuOptions { adapter: plan.adapter.clone(), ..options }).await?;
    let peak = peak::Peak::measure(&gpu).await?;
    print(&report::head(&gpu, &peak));
    let mut details = String::new();
    for shape in synthetic::SHAPES.iter().filter(|shape| plan.shapes.iter().any(|part| shape.name.contains(part))) {
        for &format in &plan.formats {
            if start.elapsed().as_secs_f64() > plan.limit_s {
                print(&report::left_out(shape, format));
                continue;
            }
            let context_length = plan.contexts.iter().copied().fold(plan.prompt_tokens, usize::max);
            match measure::Subject::load(&gpu, shape, format, context_length).await {
                Ok(mut subject) => details += &report::model(&mut subject, shape, format, plan, &peak, &print).await?,
                Err(Error::OutOfMemory { what, asked, allowed }) => {
                    print(&format!(
                        "| {} | {format} | does not fit: {what}, {asked} bytes, {allowed} allowed |",
                        shape.name
                    ));
                }
                Err(error) => return Err(error),
            }
        }
    }
    print(&details);
    Ok(())
}

#[cfg(not(target_arch = "wasm32"))]
fn main() -> std::process::ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let run = async { run(&Plan::parse(&arguments)?, GpuOptions::default(), |line| println!("{line}")).await };
    match pollster::block_on(run) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(target_arch = "wasm32")]
fn main() {}

/// The same for a page: `arguments` as on the command line, `hint` and `subgroups` as the engine's worker finds them.
#[cfg(target_arch = "wasm32")]
#[wasm_bindgen::prelude::wasm_bindgen]
pub async fn roofline(
    arguments: Vec<String>,
    hint: String,
    subgroups: bool,
    print: js_sys::Function,
) -> std::result::Result<(), String> {
    let options = GpuOptions { hint, subgroups, ..GpuOptions::default() };
    let print = |line: &str| {
        // A page that cannot show a line has nothing else to lose.
        let _ = print.call1(&wasm_bindgen::JsValue::NULL, &line.into());
    };
    let result = async { run(&Plan::parse(&arguments)?, options, print).await }.await;
    result.map_err(|error| error.to_string())
}
