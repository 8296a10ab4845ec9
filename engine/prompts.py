"""Requests into token ids: the chat template, the tokenizer, the model's limits. Runs on a worker thread."""

from __future__ import annotations

import uuid
from typing import Any

from jinja2 import TemplateError

from engine.errors import FieldError, RequestError
from engine.forced_form import grammar_of
from engine.openai_wire import ChatCall, CompletionCall
from engine.options import Options
from engine.request import GenerationRequest, ModelInfo, Speculation


class Prompter:
    """Turns calls into requests for one loaded model. A long prompt takes a while: not for the event loop."""

    def __init__(self, info: ModelInfo) -> None:
        self._info = info
        self._tokenizer = info.tokenizer
        self._template = str(getattr(info.tokenizer, "chat_template", None) or "")

    def request(self, call: ChatCall | CompletionCall, request_id: str) -> GenerationRequest:
        """Raises RequestError for what this model cannot be asked."""
        options = call.options
        self._check_ids("logit_bias", options.sampling.logit_bias)
        self._check_ids("stop_token_ids", options.stop_tokens)
        if options.top_logprobs is not None:
            _ = self._info.vocabulary.tokens  # told now if it cannot be had, and built off the event loop
        self._check_method(options.speculation)
        prompt = self._chat(call) if isinstance(call, ChatCall) else self._completion(call)
        return GenerationRequest(
            id=request_id or uuid.uuid4().hex,
            prompt=prompt,
            grammar=grammar_of(call, prompt, self._info) if isinstance(call, ChatCall) else None,
            top_logprobs=options.top_logprobs,
            max_tokens=options.max_tokens or self._info.context_length,
            sampling=options.sampling,
            stop_tokens=self._stop_tokens(options),
            speculation=options.speculation,
        )

    def _stop_tokens(self, options: Options) -> frozenset[int]:
        return options.stop_tokens if options.ignore_eos else options.stop_tokens | self._info.eos_ids

    def _chat(self, call: ChatCall) -> tuple[int, ...]:
        if not self._tokenizer.has_chat_template:
            raise RequestError("this model has no chat template; use /v1/completions")
        extra: dict[str, Any] = dict(call.template)
        if call.tools:
            if "tools" not in self._template:
                raise FieldError("tools", "this model's chat template has no place for tools")
            extra["tools"] = call.tools
        try:
            ids = self._tokenizer.apply_chat_template(call.messages, add_generation_prompt=True, **extra)
        except (TemplateError, TypeError, KeyError, ValueError) as error:
            raise FieldError("messages", f"the chat template does not take them: {error}") from error
        return tuple(ids)

    def _completion(self, call: CompletionCall) -> tuple[int, ...]:
        if isinstance(call.prompt, tuple):
            self._check_ids("prompt", call.prompt)
            return call.prompt
        try:
            return tuple(self._tokenizer.encode(call.prompt))
        except (TypeError, ValueError) as error:
            raise FieldError("prompt", f"cannot be tokenized: {error}") from error

    def _check_method(self, speculation: Speculation) -> None:
        if speculation.method not in self._info.methods:
            raise FieldError(
                "speculation.method", f"{speculation.method} is not set up here; use {', '.join(self._info.methods)}"
            )

    def _check_ids(self, field: str, ids: Any) -> None:
        wrong = next((token for token in ids if not 0 <= token < self._info.vocab_size), None)
        if wrong is not None:
            raise FieldError(field, f"{wrong} is no token id of this model; they end at {self._info.vocab_size - 1}")
