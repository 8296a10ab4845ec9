"""What tells one model's KV cache from another's: two of the same fingerprint compute the same."""

from __future__ import annotations

import hashlib
from importlib.metadata import version

import mlx.core as mx
from mlx.nn.layers.base import Module
from mlx.utils import tree_flatten

LOOKED_AT = 32
"""Numbers of each tensor: training changes all of a tensor, so a few tell."""


def fingerprint_of(model: Module) -> str:
    """Of names, shapes, types and first numbers of all tensors, of the versions that compute, and of the device.

    Quantization shows in names and types.
    """
    digest = hashlib.sha256(f"{version('mlx')} {version('mlx-lm')} {mx.default_device()}".encode())
    parameters = dict(tree_flatten(model.parameters()))  # type: ignore[no-untyped-call]
    first = {name: weight.flatten()[:LOOKED_AT].astype(mx.float32) for name, weight in parameters.items()}
    mx.eval(first)
    for name, weight in sorted(parameters.items()):
        digest.update(f"{name} {weight.shape} {weight.dtype} {first[name].tolist()}".encode())
    return digest.hexdigest()[:32]
