"""A Hugging Face tokenizer out of a GGUF file's metadata (the `smollm` flavour of byte-level BPE)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from engine.errors import ModelError

CONTROL = 3
"""llama.cpp's token type of tokens that are never written as text."""


def write_tokenizer(metadata: dict[str, Any], folder: Path) -> None:
    """Write tokenizer.json, tokenizer_config.json and the chat template into `folder`.

    Raises ModelError for a flavour whose way of splitting text is not known here: a wrong one tokenizes almost right.
    """
    flavour = metadata["tokenizer.ggml.model"], metadata["tokenizer.ggml.pre"]
    if flavour != ("gpt2", "smollm"):
        raise ModelError(f"tokenizer {flavour} of this GGUF is not known; only ('gpt2', 'smollm') is")
    words: list[str] = metadata["tokenizer.ggml.tokens"]
    types: list[int] = metadata["tokenizer.ggml.token_type"].tolist()
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]

    tokenizer = Tokenizer(models.BPE(vocab={word: token for token, word in enumerate(words)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    controls = [word for word, kind in zip(words, types, strict=True) if kind == CONTROL]
    tokenizer.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in controls])

    def named(role: str) -> str:
        return words[int(metadata[f"tokenizer.ggml.{role}_token_id"].item())]

    wrapped = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        bos_token=named("bos"),
        eos_token=named("eos"),
        pad_token=named("padding"),
        unk_token=named("unknown"),
        model_max_length=metadata["llama.context_length"].item(),
        clean_up_tokenization_spaces=False,
        chat_template=metadata["tokenizer.chat_template"],
    )
    wrapped.save_pretrained(folder)
