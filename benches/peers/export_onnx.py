"""Turns a GGUF file into the int4 ONNX model that ONNX Runtime Web runs: export_onnx.py MODEL.gguf FOLDER

The weights are read from the GGUF file, so both engines start from the same numbers; the builder rounds them again, to
4 bits in blocks of 32 with one scale (as Q4_0; Q4_1 has a minimum as well), multiplied with 8-bit activations. Inputs,
outputs, keys and values are f32: SwiftShader has no f16. The output matrix is applied to the last token alone, as
Pagewise does.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer

OPTIONS = [
    "int4_block_size=32",
    "int4_is_symmetric=true",
    "use_webgpu_fp32=true",
    "prune_lm_head=true",
]


def dequantise(gguf: Path, folder: Path) -> None:
    """Writes the model and its tokeniser as the builder reads them."""
    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    model = AutoModelForCausalLM.from_pretrained(**source, dtype="float32")
    # What was read is plain f32 by now; saved as "quantised" it could not be loaded again.
    model.hf_quantizer = None
    model.config.__dict__.pop("quantization_config", None)
    model.__dict__.pop("is_quantized", None)
    model.config.tie_word_embeddings = True
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**source).save_pretrained(folder)


def build(source: Path, folder: Path, cache: Path) -> None:
    """Runs ONNX Runtime's own model builder."""
    arguments = ["-i", source, "-o", folder, "-c", cache, "-p", "int4", "-e", "webgpu", "--extra_options", *OPTIONS]
    builder = [sys.executable, "-m", "onnxruntime_genai.models.builder"]
    subprocess.run([*builder, *map(str, arguments)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    plain = arguments.folder / "plain"
    dequantise(arguments.model.resolve(), plain)
    build(plain, arguments.folder / "model", arguments.folder / "cache")


if __name__ == "__main__":
    main()
