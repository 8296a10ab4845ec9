"""Load a draft model or a DFlash checkpoint and make sure that it belongs to the target; on the decode thread."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models.cache import make_prompt_cache

from engine import model, smollm2
from engine.drafters import Drafter, NoDrafter, PaidDrafter
from engine.drafters.dflash import DFlashDrafter
from engine.drafters.dflash_model import DFlashArgs, DFlashModel
from engine.drafters.draft_model import DraftModelDrafter
from engine.drafters.ngram import NgramDrafter
from engine.errors import ModelError
from engine.request import EngineSettings, Method
from engine.rollback import can_rewind, why_not

MINI = Path(__file__).with_name("dflash_mini")
"""Trained for the built-in model by bench/train; MODEL_CARD.md is beside it."""
MINI_WINDOW = 512
"""It was trained on texts of 640 tokens."""
EMULATED = ("applegpu_g13", "applegpu_g14")
"""M1 and M2 have no bf16 of their own; fp16 is faster there."""
AGREEMENT = 0.9
"""Share of rows whose likeliest token must survive the cast to fp16."""


@dataclass(frozen=True)
class Drafters:
    """What guesses for a target: freely, and at a price. `why_off` says why nothing does."""

    free: Drafter
    paid: PaidDrafter | None = None
    why_off: str = ""

    @property
    def method(self) -> str:
        """The name that /stats shows."""
        names = [drafter.method for drafter in (self.free, self.paid) if drafter is not None]
        return "+".join(name for name in names if name != NoDrafter.method) or NoDrafter.method

    @property
    def methods(self) -> tuple[Method, ...]:
        """What a request may choose among."""
        named = [drafter.method for drafter in (self.free, self.paid) if drafter is not None]
        return "off", "auto", *(method for method in get_args(Method) if method in named and method != "off")

    def only(self, method: Method) -> Drafters:
        """Those of one method; of `auto`, all."""
        if method == "auto":
            return self
        free = self.free if self.free.method == method else NoDrafter()
        return Drafters(free, self.paid if self.paid and self.paid.method == method else None)


def drafters_for(target: model.LoadedModel, settings: EngineSettings, tell: model.LoadProgress) -> Drafters:
    """The drafters that the settings ask for. Raises ModelError where the draft that they name does not do."""
    method = settings.speculation
    if method == "off" or settings.max_draft < 1:
        return Drafters(NoDrafter(), why_off="off by setting")
    if method == "mtp":
        raise ModelError("this engine does not draft with MTP heads yet; set speculation.method to auto")
    cache = make_prompt_cache(target.model)
    if not can_rewind(cache):
        return Drafters(NoDrafter(), why_off=why_not(cache))
    if method == "ngram":
        return Drafters(NgramDrafter())
    if settings.draft is None:
        if method != "auto":
            raise ModelError(
                f"speculation {method} needs a draft: give --draft PATH (in lanes.yaml, speculation.draft)"
            )
        brings_one = target.info.id == smollm2.NAME
        return Drafters(NgramDrafter(), load_dflash(MINI, target.model, window=MINI_WINDOW) if brings_one else None)
    paid = _load_paid(settings.draft, target, settings, tell)
    return Drafters(NgramDrafter() if method == "auto" else NoDrafter(), paid)


def _load_paid(
    path: str, target: model.LoadedModel, settings: EngineSettings, tell: model.LoadProgress
) -> DFlashDrafter | DraftModelDrafter:
    folder = Path(path).expanduser()
    is_dflash = settings.speculation != "draft" and "dflash_config" in _config(folder)
    if settings.speculation == "dflash" and not is_dflash:
        raise ModelError(f"{folder} is no DFlash checkpoint: its config.json has no dflash_config")
    if is_dflash:
        return load_dflash(folder, target.model, window=settings.draft_window, sink=settings.draft_sink)
    return load_draft_model(path, target, settings.max_draft, tell)


def load_draft_model(path: str, target: model.LoadedModel, longest: int, tell: model.LoadProgress) -> DraftModelDrafter:
    """Raises ModelError where it cannot be loaded, has another tokenizer, or cannot take tokens back."""
    draft = model.load(path, tell)
    model.wire(target.weight_bytes + draft.weight_bytes)
    _check_tokenizers(path, target.info.id, target.info.tokenizer, draft.info.tokenizer)
    cache = make_prompt_cache(draft.model)
    if not can_rewind(cache):
        raise ModelError(f"{path} cannot draft: {why_not(cache)}; give another draft model")
    return DraftModelDrafter(draft.model, target.info.vocab_size, draft.info.context_length, longest)


def load_dflash(folder: Path, target: Any, *, window: int = 0, sink: int = 0) -> DFlashDrafter:
    """A DFlash checkpoint in z-lab's layout. Raises ModelError where something of it is missing or does not fit."""
    try:
        args = DFlashArgs.from_config(_config(folder))
    except KeyError as error:
        raise ModelError(f"{folder / 'config.json'} lacks {error}: it is no DFlash checkpoint") from error
    weights: dict[str, mx.array] = {}
    for file in sorted(folder.glob("model*.safetensors")):
        weights |= mx.load(str(file))  # type: ignore[arg-type]
    offsets = weights.pop("d2t", None)
    network = DFlashModel(args)
    _check_fit(folder, args, target, {name: weight.shape for name, weight in weights.items()}, network)
    network.load_weights(list(weights.items()))
    if mx.default_device() == mx.cpu:
        network.set_dtype(mx.float32)
    network.eval()
    mx.eval(network.parameters())  # type: ignore[no-untyped-call]
    if _is_bf16(network) and _device().startswith(EMULATED):
        cast_if_harmless(network)
    shortlist = None if offsets is None else offsets + mx.arange(offsets.size)
    return DFlashDrafter(target, network, shortlist=shortlist, window=window, sink=sink)


def cast_if_harmless(network: DFlashModel) -> bool:
    """Make a bf16 network fp16, unless that gives infinities or other likeliest features; says whether it did."""
    before = _probe(network)
    network.set_dtype(mx.float16)
    after = _probe(network)
    agree = mx.mean(mx.equal(mx.argmax(before, axis=-1), mx.argmax(after, axis=-1))) >= AGREEMENT
    if bool((mx.all(mx.isfinite(after)) & agree).item()):
        return True
    network.set_dtype(mx.bfloat16)
    return False


def _probe(network: DFlashModel) -> mx.array:
    """What the network makes of made-up states; the same ones each time."""
    args, dtype = network.args, network.fc.weight.dtype
    states, block = mx.random.key(1), mx.random.key(2)
    taps = len(args.target_layer_ids) * args.hidden_size
    context = network.context(mx.random.normal((1, 32, taps), key=states).astype(dtype), 0)
    embeddings = mx.random.normal((1, args.block_size, args.hidden_size), key=block) * 0.1
    return network(embeddings.astype(dtype), list(context), 32).astype(mx.float32)


def _config(folder: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read {folder / 'config.json'}: {error}; `draft` wants a model folder") from error
    return config


def _check_fit(
    folder: Path, args: DFlashArgs, target: Any, shapes: dict[str, tuple[int, ...]], network: DFlashModel
) -> None:
    parameters = dict(tree_flatten(network.parameters()))  # type: ignore[no-untyped-call]
    expected = {name: weight.shape for name, weight in parameters.items()}
    wrong = sorted(name for name in expected.keys() | shapes.keys() if expected.get(name) != shapes.get(name))
    if wrong:
        raise ModelError(f"{folder}: tensors do not fit its config, first {wrong[0]}; fetch the checkpoint again")
    width = target.model.norm.weight.shape[0]
    if args.hidden_size != width:
        raise ModelError(f"{folder} drafts for a model of width {args.hidden_size}, and this one has {width}")
    if max(args.target_layer_ids) >= len(target.layers):
        raise ModelError(f"{folder} reads layer {max(args.target_layer_ids)}, and this model has {len(target.layers)}")


def _check_tokenizers(path: str, name: str, target: Any, draft: Any) -> None:
    ours, theirs = target.get_vocab(), draft.get_vocab()
    if ours == theirs:
        return
    different = sorted(token for token in ours.keys() | theirs.keys() if ours.get(token) != theirs.get(token))
    raise ModelError(
        f"the draft model {path} has another tokenizer than {name}: {len(different)} entries differ, first "
        f"{different[0]!r}. Give a draft model of the same family"
    )


def _is_bf16(network: DFlashModel) -> bool:
    return bool(network.fc.weight.dtype == mx.bfloat16)


def _device() -> str:
    return str(mx.device_info().get("architecture", "")) if mx.metal.is_available() else ""
