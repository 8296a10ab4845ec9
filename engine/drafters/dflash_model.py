"""The network of DFlash (arXiv 2602.06036) as z-lab's checkpoints lay it out: a few Qwen3-style layers, no embedding.

The target's hidden states of earlier positions become context: h = hidden_norm(fc(states)). The block [last token,
MASK, MASK, ...] is denoised in one pass: its queries see the context and the whole block, and row j predicts the token
at its own position. Context and block go through the same key and value weights; rotary positions are absolute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx.nn.layers.activations import silu
from mlx.nn.layers.base import Module
from mlx.nn.layers.linear import Linear
from mlx.nn.layers.normalization import RMSNorm
from mlx_lm.models.rope_utils import initialize_rope

KeysValues = tuple[mx.array, mx.array]


@dataclass(frozen=True)
class DFlashArgs:
    """The keys of a checkpoint's config.json that matter; Qwen3's names."""

    hidden_size: int
    num_hidden_layers: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    max_position_embeddings: int
    block_size: int
    target_layer_ids: tuple[int, ...]
    mask_token_id: int
    rope_scaling: dict[str, Any] | None = None
    draft_vocab_size: int | None = None
    """Of ours: the head knows only so many tokens; tensor `d2t` says what to add to each row for the token's id."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> DFlashArgs:
        """Raises KeyError where a key is missing."""
        own = config["dflash_config"]
        heads = config["num_attention_heads"]
        rope = config.get("rope_parameters") or {}
        return cls(
            hidden_size=config["hidden_size"],
            num_hidden_layers=config["num_hidden_layers"],
            intermediate_size=config["intermediate_size"],
            num_attention_heads=heads,
            num_key_value_heads=config.get("num_key_value_heads", heads),
            head_dim=config.get("head_dim") or config["hidden_size"] // heads,
            rms_norm_eps=config["rms_norm_eps"],
            rope_theta=config.get("rope_theta") or rope["rope_theta"],
            max_position_embeddings=config.get("max_position_embeddings", 32768),
            block_size=config["block_size"],
            target_layer_ids=tuple(own["target_layer_ids"]),
            mask_token_id=own["mask_token_id"],
            rope_scaling=config.get("rope_scaling"),
            draft_vocab_size=config.get("draft_vocab_size"),
        )


class Attention(Module):
    """Attention of a block over context and itself."""

    def __init__(self, args: DFlashArgs) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        width, head = args.hidden_size, args.head_dim
        self.heads, self.kv_heads, self.head_dim = args.num_attention_heads, args.num_key_value_heads, head
        self.scale = float(head) ** -0.5
        self.q_proj = Linear(width, self.heads * head, bias=False)
        self.k_proj = Linear(width, self.kv_heads * head, bias=False)
        self.v_proj = Linear(width, self.kv_heads * head, bias=False)
        self.o_proj = Linear(self.heads * head, width, bias=False)
        self.q_norm = RMSNorm(head, eps=args.rms_norm_eps)
        self.k_norm = RMSNorm(head, eps=args.rms_norm_eps)
        self.rope: Any = initialize_rope(head, args.rope_theta, False, args.rope_scaling, args.max_position_embeddings)

    def keys_values(self, x: mx.array, position: int) -> KeysValues:
        """Of x [B, n, width] at `position` and those that follow: [B, kv heads, n, head] each."""
        keys = self.k_norm(self._split(self.k_proj(x), self.kv_heads))
        return self.rope(keys, offset=position), self._split(self.v_proj(x), self.kv_heads)

    def queries(self, x: mx.array, position: int) -> mx.array:
        """Of x [B, n, width]: [B, heads, n, head]."""
        turned: mx.array = self.rope(self.q_norm(self._split(self.q_proj(x), self.heads)), offset=position)
        return turned

    def merged(self, attended: mx.array) -> mx.array:
        """What the heads [B, heads, n, head] give together: [B, n, width]."""
        batch, _, count, _ = attended.shape
        return self.o_proj(attended.transpose(0, 2, 1, 3).reshape(batch, count, -1))

    def __call__(self, x: mx.array, context: KeysValues | None, position: int) -> mx.array:
        keys, values = self.keys_values(x, position)
        if context is not None:
            keys, values = mx.concatenate([context[0], keys], axis=2), mx.concatenate([context[1], values], axis=2)
        return self.merged(
            mx.fast.scaled_dot_product_attention(self.queries(x, position), keys, values, scale=self.scale)
        )

    def _split(self, x: mx.array, heads: int) -> mx.array:
        batch, count, _ = x.shape
        return x.reshape(batch, count, heads, self.head_dim).transpose(0, 2, 1, 3)


class MLP(Module):
    """Qwen3's."""

    def __init__(self, args: DFlashArgs) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.gate_proj = Linear(args.hidden_size, args.intermediate_size, bias=False)
        self.up_proj = Linear(args.hidden_size, args.intermediate_size, bias=False)
        self.down_proj = Linear(args.intermediate_size, args.hidden_size, bias=False)

    def __call__(self, x: mx.array) -> mx.array:
        return self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(Module):
    """One draft layer."""

    def __init__(self, args: DFlashArgs) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.self_attn = Attention(args)
        self.mlp = MLP(args)
        self.input_layernorm = RMSNorm(args.hidden_size, eps=args.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(args.hidden_size, eps=args.rms_norm_eps)

    def __call__(self, x: mx.array, context: KeysValues | None, position: int) -> mx.array:
        x = x + self.self_attn(self.input_layernorm(x), context, position)
        return x + self.mlp(self.post_attention_layernorm(x))


class DFlashModel(Module):
    """The draft network. Embeddings of the block come from the target; so does the head behind it."""

    def __init__(self, args: DFlashArgs) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.args = args
        self.fc = Linear(len(args.target_layer_ids) * args.hidden_size, args.hidden_size, bias=False)
        self.hidden_norm = RMSNorm(args.hidden_size, eps=args.rms_norm_eps)
        self.layers = [Layer(args) for _ in range(args.num_hidden_layers)]
        self.norm = RMSNorm(args.hidden_size, eps=args.rms_norm_eps)

    def context(self, states: mx.array, position: int) -> list[KeysValues]:
        """Keys and values of each layer for the target's states [B, n, taps x width] from `position` on."""
        features = self.hidden_norm(self.fc(states))
        return [layer.self_attn.keys_values(features, position) for layer in self.layers]

    def __call__(self, block: mx.array, contexts: list[KeysValues | None], position: int) -> mx.array:
        """Denoise a block's embeddings [B, n, width], the first of which is at `position`; [B, n, width]."""
        for layer, context in zip(self.layers, contexts, strict=True):
            block = layer(block, context, position)
        result: mx.array = self.norm(block)
        return result
