"""The fields that chats and completions have in common, read into plain values. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from engine.fields import Fields
from engine.request import NO_SPECULATION, Method, Sampling, Speculation

MOST_TOKENS = 1 << 31
MOST_STOPS = 16
LONGEST_STOP = 1024
MOST_CHOICES = 16
UNSUPPORTED = {
    "functions": "is the older name of tools; use tools",
    "function_call": "is the older name of tool_choice; use tool_choice",
    "audio": "only text is written; leave it out",
    "web_search_options": "this engine looks nothing up; leave it out",
    "guided_json": "is another server's name; use response_format with a json_schema",
    "guided_regex": "only JSON schemas are followed; use response_format with a json_schema and a pattern",
    "guided_choice": "only JSON schemas are followed; use response_format with a json_schema and an enum",
    "guided_grammar": "only JSON schemas are followed; use response_format with a json_schema",
    "grammar": "only JSON schemas are followed; use response_format with a json_schema",
    "use_beam_search": "there is no beam search; use n",
    "prompt_logprobs": "the prompt has no log probabilities; use logprobs for those of the answer",
}
"""What would change the answer, and what to do instead."""


@dataclass(frozen=True)
class Options:
    """What both APIs have in common. `max_tokens` None: to the end of the context.

    `choices` answers are wanted. `top_logprobs`: log-probabilities, with so many alternatives (None: none).
    """

    model: str | None
    stream: bool
    include_usage: bool
    max_tokens: int | None
    sampling: Sampling
    stops: tuple[str, ...]
    stop_tokens: frozenset[int]
    ignore_eos: bool
    speculation: Speculation
    choices: int
    top_logprobs: int | None


def refuse_unsupported(fields: Fields) -> None:
    """Raises FieldError for what cannot be done here and would change the answer."""
    for name, remedy in UNSUPPORTED.items():
        if fields.raw(name) not in (None, False):
            fields.fail(name, f"is not supported: {remedy}")
    if any(modality != "text" for modality in fields.items("modalities")):
        fields.fail("modalities", "is not supported: only text is written; leave it out")


def options_of(fields: Fields, max_tokens: int | None, top_logprobs: int | None) -> Options:
    """Read what both APIs have; `max_tokens` and `top_logprobs` have other names or bounds in each."""
    ids = fields.items("stop_token_ids")
    if not all(isinstance(token, int) for token in ids):
        fields.fail("stop_token_ids", "must be a list of token ids")
    return Options(
        model=fields.text("model"),
        stream=bool(fields.boolean("stream")),
        include_usage=bool(fields.inner("stream_options").boolean("include_usage")),
        max_tokens=max_tokens,
        sampling=_sampling(fields),
        stops=_stops(fields),
        stop_tokens=frozenset(ids),
        ignore_eos=bool(fields.boolean("ignore_eos")),
        speculation=_speculation(fields),
        choices=fields.integer("n", 1, MOST_CHOICES) or 1,
        top_logprobs=top_logprobs,
    )


def _sampling(fields: Fields) -> Sampling:
    top_p = fields.number("top_p", 1.0, 0.0, 1.0)
    top_k = fields.integer("top_k", -1, MOST_TOKENS) or 0
    return Sampling(
        temperature=fields.number("temperature", 1.0, 0.0, 100.0),
        top_p=top_p,
        # A top_p of 0 leaves the likeliest token; the filter itself takes 0 for "off".
        top_k=1 if top_p == 0 else max(top_k, 0),
        min_p=fields.number("min_p", 0.0, 0.0, 1.0),
        seed=fields.integer("seed", -(1 << 63), (1 << 64) - 1),
        repetition_penalty=fields.number("repetition_penalty", 1.0, 0.01, 100.0),
        presence_penalty=fields.number("presence_penalty", 0.0, -2.0, 2.0),
        frequency_penalty=fields.number("frequency_penalty", 0.0, -2.0, 2.0),
        logit_bias=_logit_bias(fields.inner("logit_bias")),
    )


def _logit_bias(fields: Fields) -> dict[int, float]:
    for name in fields.values:
        if not name.isdecimal() or len(name) > 9:
            fields.fail(name, "must be a token id")
    return {int(name): fields.number(name, 0.0, -100.0, 100.0) for name in fields.values}


def _stops(fields: Fields) -> tuple[str, ...]:
    value = fields.raw("stop")
    stops = [value] if isinstance(value, str) else fields.items("stop")
    if not all(isinstance(stop, str) and stop for stop in stops):
        fields.fail("stop", "must be a string that is not empty, or a list of such")
    if len(stops) > MOST_STOPS or any(len(stop) > LONGEST_STOP for stop in stops):
        fields.fail("stop", f"at most {MOST_STOPS} strings of at most {LONGEST_STOP} characters")
    return tuple(stops)


def _speculation(fields: Fields) -> Speculation:
    """As in lanes.yaml; `{"freshlane": {"speculation": false}}` is what the supervisor sends."""
    if fields.inner("freshlane").boolean("speculation") is False:
        return NO_SPECULATION
    inner = fields.inner("speculation")
    for name in inner.values:
        if name not in ("method", "max_tokens"):
            inner.fail(name, "is not one of method and max_tokens; what else there is belongs to the lane")
    method = inner.text("method") or "auto"
    for known in get_args(Method):
        if method == known:
            return Speculation(known, inner.integer("max_tokens", 0, MOST_TOKENS))
    return inner.fail("method", f"{method!r} is none of {', '.join(get_args(Method))}")
