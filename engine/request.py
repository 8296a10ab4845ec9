"""What is asked of the engine and what it gives back: plain values, no MLX, shared by both threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from engine.vocabulary import Vocabulary

if TYPE_CHECKING:
    from engine.grammar import Grammar

Finish = Literal["stop", "length"]
Phase = Literal["prefill", "decode"]
Method = Literal["auto", "off", "ngram", "draft", "dflash", "mtp"]


@dataclass(frozen=True)
class Sampling:
    """How one token is chosen from the model's logits; the defaults change nothing.

    `temperature` 0 is greedy. `top_k` 0, `top_p` 1, `min_p` 0, `repetition_penalty` 1 and the other
    penalties 0 are off.
    Penalties look back as mlx-lm's do: `repetition_context_size` tokens, and 20 for presence and frequency. With a
    `seed`, a request gives the same tokens each time, with or without speculation.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    repetition_penalty: float = 1.0
    repetition_context_size: int = 20
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Speculation:
    """What one request says of drafts: by which method, and how many tokens at most (None: as the engine is set)."""

    method: Method = "auto"
    max_tokens: int | None = None


NO_SPECULATION = Speculation("off")


@dataclass(frozen=True)
class GenerationRequest:
    """One prompt to continue.

    `stop_tokens` end the generation; the one that did is part of the last batch. With `max_tokens` 0 the prompt is only
    fed. `top_logprobs` asks for log-probabilities, and for so many of the likeliest tokens beside the chosen one (None:
    for none at all). The answer follows `grammar`. The last `begun` tokens of `prompt` are answer already.
    `is_choice`: one of several answers to a prompt that has just been fed for all of them.
    """

    id: str
    prompt: tuple[int, ...]
    max_tokens: int
    sampling: Sampling = Sampling()
    stop_tokens: frozenset[int] = frozenset()
    speculation: Speculation = Speculation()
    top_logprobs: int | None = None
    grammar: Grammar | None = None
    begun: int = 0
    is_choice: bool = False


@dataclass(frozen=True)
class TokenScore:
    """The log-probability of a chosen token, and of the likeliest ones at its place, the likeliest first.

    It is what the model itself says: before temperature, penalties, biases and a grammar.
    """

    token: int
    logprob: float
    likeliest: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class TokenBatch:
    """The tokens of one step or cycle, in order; `from_draft` of them were accepted drafts.

    `scores` are those of the tokens, where they are asked for.
    """

    tokens: tuple[int, ...]
    finish: Finish | None = None
    from_draft: int = 0
    scores: tuple[TokenScore, ...] = ()


@dataclass(frozen=True)
class Fed:
    """What one chunk of a prompt took; `is_restored`: it was read from disk, not computed."""

    tokens: int
    seconds: float
    is_restored: bool = False


@dataclass(frozen=True)
class Usage:
    """What one generation has cost so far; seconds are the decode thread's own."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    cycles: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0

    def plus(self, **amounts: float) -> Usage:
        """This and so much more, by field."""
        return replace(self, **{name: getattr(self, name) + amount for name, amount in amounts.items()})


@dataclass(frozen=True)
class ModelInfo:
    """The loaded model as the wire needs it. `tokenizer` is mlx-lm's TokenizerWrapper.

    `methods` are those of speculation that a request may name.
    """

    id: str
    tokenizer: Any
    vocab_size: int
    context_length: int
    eos_ids: frozenset[int]
    methods: tuple[Method, ...] = ("off", "auto")

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What each token stands for; built when it is first asked."""
        return Vocabulary(self.tokenizer, self.vocab_size, self.eos_ids)


@dataclass(frozen=True)
class Progress:
    """Whether decoding moves. `since` and `last_step_at` are moments of time.monotonic; `tokens` is since the start."""

    state: Literal["idle", "busy", "stalled"]
    since: float
    tokens: int
    phase: Phase | None
    last_step_at: float


@dataclass(frozen=True)
class EngineSettings:
    """How the engine is to run, as its command line says.

    `speculation` is `auto` (all drafters there are: n-grams, and `draft` if it is given), `off`, `ngram`, `draft` or
    `dflash`; `max_draft` bounds the tokens drafted in a cycle; `prefix_bytes` is the memory that finished prompts may
    keep (None: a share of the machine's), and `prefix_disk_bytes` the disk, in `prefix_folder`; `max_context` narrows
    the model's own context length. `draft` is the draft model's folder; of a DFlash draft, `draft_window` newest
    positions and `draft_sink` first ones are seen (0: all).
    """

    model: str
    speculation: Method = "auto"
    max_draft: int = 15
    prefix_bytes: int | None = None
    max_context: int | None = None
    draft: str | None = None
    draft_window: int = 0
    draft_sink: int = 0
    prefix_disk_bytes: int = 0
    prefix_folder: str | None = None
