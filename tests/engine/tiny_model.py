"""Tiny random models, and decoding on them: real MLX, milliseconds a run."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path

import mlx.core as mx
from mlx.nn.layers.base import Module
from mlx.utils import tree_flatten, tree_map
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.models.llama import Model, ModelArgs
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from engine.drafters import Draft, Drafter, PaidDrafter
from engine.grammar import Grammar, Matcher
from engine.logprobs import Scores
from engine.plain import Sequence
from engine.proposals import Order
from engine.request import Sampling
from engine.sampling import Chooser
from engine.speculate import decode

VOCABULARY = 48
EOS = 47
JSON_WORDS = (
    *'{}[]":,.-ĠĊ\\0123456789abcdefglmnrstu',
    *('":', "true", '",', '{"', "}}"),
    *("Ã", "©"),  # the two bytes of é
    *("<think>", "</think>", "<tool_call>", "</tool_call>"),
)
"""A vocabulary that JSON can be written in, and that has the markers of reasoning and of tool calls."""
JSON_CHAT = (
    "{% for message in messages %}[{{ message.content }}]{% endfor %}"
    "{% if tools %}{# <tool_call> tool_call.name #}{% endif %}{% if enable_thinking %}<think>{% endif %}"
)
WIDTHS = (0, 1, 2, 3, 7, 15)
CONFIG = {
    "model_type": "llama",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
    "eos_token_id": EOS,
}


def tiny_model(seed: int = 0) -> Module:
    """Two layers of random weights, large enough that the model has opinions."""
    return randomized(Model(ModelArgs.from_dict(CONFIG)), seed)


def randomized(model: Module, seed: int) -> Module:
    """The model with random matrices in place of its own."""
    key = mx.random.key(seed)

    def drawn(weight: mx.array) -> mx.array:
        nonlocal key
        key, used = mx.random.split(key)
        return weight if weight.ndim == 1 else 0.4 * mx.random.normal(weight.shape, key=used)

    model.update(tree_map(drawn, model.parameters()))
    mx.eval(model.parameters())
    return model


def write_tiny_model(folder: Path, seed: int = 0, *, is_json: bool = False, **config: object) -> Path:
    """The same model as a folder in Hugging Face's layout, with a tokenizer of one token a character.

    Its chats are the contents of the messages, each in brackets. `is_json`: with JSON_WORDS for its vocabulary.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(tiny_model(seed).parameters())))
    (folder / "config.json").write_text(json.dumps({**CONFIG, **config}))
    words = JSON_WORDS if is_json else [chr(ord("0") + token) for token in range(VOCABULARY - 1)]
    words = [*words, *(f"<unused{spare}>" for spare in range(EOS - len(words))), "<eos>"]
    tokenizer = Tokenizer(models.BPE(vocab={word: token for token, word in enumerate(words)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken(word, normalized=False) for word in words if word.endswith(("think>", "call>"))])
    chat = JSON_CHAT if is_json else "{% for message in messages %}[{{ message.content }}]{% endfor %}"
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>", chat_template=chat)
    wrapped.save_pretrained(folder)
    return folder


def random_prompt(seed: int, length: int = 24) -> list[int]:
    """Random tokens of a small alphabet, so that some n-grams repeat."""
    dice = random.Random(seed)
    return [dice.randrange(8) for _ in range(length)]


def reference(model: Module, prompt: list[int], count: int, **options: object) -> list[int]:
    """What mlx-lm's own plain decoding gives."""
    steps = generate_step(mx.array(prompt), model, max_tokens=count, **options)
    return [int(token) for token, _ in steps]


class ScriptedPolicy:
    """Drafts as many tokens as a random schedule says, whatever it costs."""

    def __init__(self, widths: Iterable[int], seed: int = 0, shadows: float = 0.0) -> None:
        self._shadows = shadows
        self._widths = list(widths)
        self._dice = random.Random(seed)
        self.widest = max(self._widths)
        self.cycles: list[tuple[int, int]] = []

    def sequence_began(self) -> None: ...

    def choose(self, context: int, draft: Draft) -> int:
        return min(self._dice.choice(self._widths), len(draft.tokens))

    def order(self, context: int, kind: str, limit: int) -> Order:
        return Order(min(self._dice.choice(self._widths), limit), is_shadow=self._dice.random() < self._shadows)

    def shadow_drafted(self, draft: Draft, seconds: float) -> None: ...

    def step_ended(self, context: int, tokens: tuple[int, ...], seconds: float, *, paid_s: float) -> None: ...

    def cycle_ended(
        self, context: int, draft: Draft, accepted: int, tokens: tuple[int, ...], seconds: float, *, paid_s: float
    ) -> None:
        self.cycles.append((len(draft.tokens), accepted))

    def sequence_ended(self) -> None: ...


class OracleDrafter:
    """Knows the true output, and errs on purpose with a given probability."""

    method = "oracle"

    def __init__(self, truth: list[int], error: float, seed: int = 0) -> None:
        self._truth = truth
        self._error = error
        self._dice = random.Random(seed)

    def begin(self, tokens: list[int]) -> None:
        self._known = len(tokens)

    def extend(self, tokens: list[int]) -> None:
        self._known += len(tokens)

    def propose(self, limit: int) -> Draft:
        truth = self._truth[self._known : self._known + limit]
        wrong = [(token + 1) % VOCABULARY for token in truth]
        tokens = [bad if self._dice.random() < self._error else good for good, bad in zip(truth, wrong, strict=True)]
        return Draft(tuple(tokens), "oracle")


def decoded(
    model: Module,
    prompt: list[int],
    count: int,
    drafter: Drafter,
    policy: ScriptedPolicy,
    *,
    sampling: Sampling | None = None,
    stops: frozenset[int] = frozenset(),
    paid: PaidDrafter | None = None,
    grammar: Grammar | None = None,
    scores: Scores | None = None,
) -> list[int]:
    """What our loop gives, checking after every step that cache and tokens belong together."""
    matcher = Matcher(grammar, prompt) if grammar else None
    chooser = Chooser(sampling or Sampling(temperature=0), matcher)
    taps = paid.taps if paid else None
    sequence = Sequence(model, make_prompt_cache(model), chooser, list(prompt), taps=taps, scores=scores)
    if len(prompt) > 1:
        sequence.forward(mx.array(prompt[:-1]))
    output: list[int] = []
    for step in decode(sequence, count, stops, drafter=drafter, policy=policy, spend=lambda *_: None, paid=paid):
        output += step.tokens
        assert sequence.tokens == prompt + output
        assert {layer.offset for layer in sequence.cache} == {sequence.fed}
        assert sequence.fed in {len(sequence.tokens) - 1, len(sequence.tokens)}
    return output


def assert_same_up_to_ties(model: Module, prompt: list[int], expected: list[int], got: list[int]) -> None:
    """Equal, or first different where the two best logits lie within 1e-3."""
    if expected == got:
        return
    first = next((i for i, pair in enumerate(zip(expected, got, strict=False)) if pair[0] != pair[1]), None)
    assert first is not None, f"lengths differ: {len(expected)} and {len(got)}"
    logits = model(mx.array([prompt + expected[:first]]))[0, -1]
    best, second = sorted(logits.tolist(), reverse=True)[:2]
    assert best - second < 1e-3, f"token {first} is {got[first]}, expected {expected[first]} (gap {best - second:.4f})"
