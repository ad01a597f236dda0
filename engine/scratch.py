"""Our own transformers behind the same Model interface as any checkpoint: text in, Trace out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from engine.blocks import Cache
from engine.card import Card
from engine.config import Config
from engine.errors import MaskError, ModelError, ResourceError, ShapeError
from engine.forwards import FORWARDS
from engine.huggingface import HuggingFaceModel
from engine.masks import Mask
from engine.presets import Transformer, build
from engine.recording import Recorded, recording
from engine.sites import Kind, Site
from engine.tokens import Prompt, Token, encode
from engine.trace import Trace
from engine.transformer import Decoder, EncoderDecoder, VisionTransformer
from engine.vocabulary import number_words
from engine.weights import rebuilt

POSITIONS = {"alibi": "ALiBi", "relative": "relative bias"}
FAMILIES = {
    "Encoder": "encoder",
    "Decoder": "decoder",
    "EncoderDecoder": "encoder–decoder",
    "TextClassifier": "classifier",
}


class ScratchModel:
    """One of our own transformers, ready to read; shared by all who use it, changed by nobody.

    Attributes:
        card: what it is.
        module: the transformer itself, with dropout off.
    """

    def __init__(
        self,
        module: Transformer,
        read: Callable[[str], Prompt],
        *,
        id: str,
        name: str,
        source: str,
        licence: str,
        notes: Sequence[str] = (),
    ) -> None:
        if isinstance(module, VisionTransformer):
            raise ModelError(f"{name} looks at images, and text is all that can be read here.")
        self.module = module.eval()
        self._read = read
        self.card = _card(module, id=id, name=name, source=source, licence=licence, notes=tuple(notes))

    def prompt(self, text: str) -> Prompt:
        """Turn text into what this model reads.

        Raises:
            TextError: there is nothing to read.
        """
        return self._read(text)

    def run(self, text: str, target: str | None = None, mask: Mask = Mask.native()) -> Trace:
        """Read a text once and record all attention.

        Args:
            text: what to read.
            target: for an encoder-decoder, what its decoder reads; None for the same text.
            mask: the mask to impose on self-attention.

        Raises:
            TextError: there is nothing to read.
            MaskError: the mask names a layer that is not there.
            ModelError: a target is given to a model that reads only one text.
        """
        if target is not None and not isinstance(self.module, EncoderDecoder):
            raise ModelError(f"{self.card.name} has no second text to read; only an encoder–decoder has.")
        prompt = self.prompt(text)
        second = None
        if isinstance(self.module, EncoderDecoder):
            second = prompt if target is None else self.prompt(target)
        return self.run_prompt(prompt, second, mask)

    def run_prompt(self, prompt: Prompt, target: Prompt | None = None, mask: Mask = Mask.native()) -> Trace:
        """Read a prompt that is already made, padding and all, and record all attention."""
        self._check_mask(mask)
        ids, padding = self._inputs(prompt)
        told: dict[Kind, Tensor | None] = {"encoder": padding, "decoder": padding}
        run = partial(self.module, ids, padding)
        if target is not None:
            other, other_padding = self._inputs(target)
            told = {"encoder": padding, "decoder": other_padding}
            run = partial(self.module, ids, other, padding, other_padding)
        given: dict[Kind, Tensor] = {kind: real for kind, real in told.items() if real is not None}
        _, recorded, milliseconds = self._forward(run, mask, given)
        return Trace(self.card, prompt, target, mask, recorded, milliseconds)

    def generate(self, text: str, count: int) -> list[Trace]:
        """Write on greedily with a cache of keys and values, and record every step.

        Args:
            text: what to read first.
            count: how many tokens to write, 1 at least.

        Returns:
            One trace per step: the text, T × T; then each written token, one row over all keys so far. Rows and
            columns are labelled with the tokens at their absolute positions.

        Raises:
            TextError: there is nothing to read.
            ModelError: this model does not write, or has no room for so many tokens.
        """
        if not isinstance(self.module, Decoder) or self.module.config.head == "none":
            raise ModelError(f"{self.card.name} does not write text, so there is nothing to generate.")
        prompt = self.prompt(text)
        if count < 1:
            raise ModelError(f"{count} tokens cannot be written; ask for one at least.")
        if self.card.limit is not None and len(prompt) + count > self.card.limit:
            raise ModelError(f"{len(prompt)} tokens and {count} more do not fit into {self.card.limit} positions.")
        return self._steps(self.module, prompt, count)

    def _steps(self, module: Decoder, prompt: Prompt, count: int) -> list[Trace]:
        cache, traces = Cache(), []
        new, _ = self._inputs(prompt)
        named = {token.id: token.text for token in prompt.tokens}
        for _ in range(count):
            first = cache.length
            vectors, recorded, milliseconds = self._forward(partial(module, new, cache=cache), Mask.native(), {})
            traces.append(Trace(self.card, prompt, None, Mask.native(), recorded, milliseconds, first))
            with torch.inference_mode():
                new = module.logits(vectors[:, -1:]).argmax(dim=-1)  # (1, 1)
            prompt = prompt.extended([_written(int(new), named)])
        return traces

    def _forward(
        self, run: Callable[[], Tensor], mask: Mask, padding: dict[Kind, Tensor]
    ) -> tuple[Tensor, dict[Site, Recorded], float]:
        with FORWARDS, torch.inference_mode(), recording(mask, padding) as recorder:
            start = time.perf_counter()
            try:
                vectors = run()
            except (torch.OutOfMemoryError, MemoryError) as error:
                raise ResourceError(f"There is not enough memory on {self.card.device} for this text.") from error
            if vectors.is_cuda:
                torch.cuda.synchronize(vectors.device)
            return vectors, recorder.recorded, 1000 * (time.perf_counter() - start)

    def _inputs(self, prompt: Prompt) -> tuple[Tensor, Tensor | None]:
        device, rows = self.card.device, self.module.config.vocabulary
        if wrong := [id for id in prompt.ids if not 0 <= id < rows]:
            raise ShapeError(f"Token {wrong[0]} does not exist: this model knows tokens 0 to {rows - 1:,}.")
        ids = torch.tensor([prompt.ids], device=device)
        return ids, None if all(prompt.real) else torch.tensor([prompt.real], device=device)

    def _check_mask(self, mask: Mask) -> None:
        config = self.module.config
        deepest = max(config.layers, config.decoder_layers or 0)
        absent = [layer for layer in sorted(mask.layers) if layer >= deepest]
        if absent:
            raise MaskError(f"{self.card.name} has no layer {absent[0]}: layers count from 0.")


def in_our_code(model: HuggingFaceModel, *, id: str, name: str) -> ScratchModel:
    """Give our own transformer the weights of a Hugging Face model, and its tokenizer.

    Args:
        model: of a family that engine/weights.py knows.
        id: the name it is loaded under.
        name: what a person calls it.

    Returns:
        A model with the same numbers that runs through engine/transformer.py.

    Raises:
        ModelError: our parts cannot do what the model does.
    """
    module = rebuilt(model.module)
    made = ScratchModel(
        module, reader(model.tokenizer, model.card.limit), id=id, name=name, source=model.card.source,
        licence=model.card.licence, notes=(f"The weights of {model.card.name}, run by our own transformer.",),
    )  # fmt: skip
    made.card = replace(made.card, limit=model.card.limit)
    return made


def reader(tokenizer: PreTrainedTokenizerBase, limit: int | None) -> Callable[[str], Prompt]:
    """Make what turns text into a prompt; a fast tokenizer changes settings of its own, so one thread at a time."""
    lock = threading.Lock()

    def read(text: str) -> Prompt:
        with lock:
            return encode(tokenizer, text, limit=limit)

    return read


def untrained(make: Callable[[Config], Transformer], config: Config, *, seed: int = 0) -> ScratchModel:
    """Build a transformer with random weights that reads by words.

    Args:
        make: its class, such as `Encoder`.
        config: its sizes; the vocabulary has to hold the different words of one text.
        seed: decides its weights.
    """
    limit = config.length if config.positions == "learned" else None
    return ScratchModel(
        build(make, config, seed=seed),
        lambda text: number_words(text, config.vocabulary, limit),
        id="untrained",
        name="Untrained",
        source=f"random numbers, seed {seed}",
        licence="none needed",
        notes=("These weights are random: this model has learned nothing yet.",),
    )


def _written(id: int, named: dict[int, str]) -> Token:
    """Make the token that a model wrote; a number that no word of the text has is shown as a number."""
    text = named.get(id, f"⟨id {id}⟩")
    return Token(text, text, id, None, False, None, None, generated=True)


def _card(module: Transformer, *, id: str, name: str, source: str, licence: str, notes: tuple[str, ...]) -> Card:
    config, weights = module.config, next(module.parameters())
    kinds: tuple[Kind, ...] = ("encoder",)
    if isinstance(module, EncoderDecoder):
        kinds = ("encoder", "decoder", "cross")
    elif isinstance(module, Decoder):
        kinds = ("decoder",)
    span = config.window if config.window is None or "decoder" in kinds else 2 * config.window - 1
    return Card(
        id=id,
        name=name,
        family=FAMILIES[type(module).__name__],
        kinds=kinds,
        layers=config.layers,
        heads=config.heads,
        kv_heads=config.G,
        windows=(span,) * config.layers,
        positions=POSITIONS.get(config.positions, config.positions),
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        limit=config.length if config.positions == "learned" else None,
        licence=licence,
        source=source,
        backend="sdpa",
        reason="",
        device=str(weights.device),
        dtype=str(weights.dtype).removeprefix("torch."),
        notes=notes,
    )
