"""Our own transformers behind the same Model interface as any checkpoint: text in, Trace out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from engine._scratch_card import card_of, heads_of
from engine.blocks import Cache
from engine.config import Config
from engine.errors import MaskError, ModelError, ResourceError, ShapeError, TextError
from engine.forwards import FORWARDS
from engine.huggingface import HuggingFaceModel
from engine.interventions import Silence, checked
from engine.masks import Mask
from engine.predicting import Prediction, check_predicts, probabilities, speaks_ahead
from engine.presets import Transformer, build
from engine.recording import Recorded, recording
from engine.sites import Kind, Site
from engine.spelling import BEGIN, END, Vocabulary, special
from engine.tokens import Prompt, Token, encode
from engine.trace import Trace
from engine.transformer import Decoder, EncoderDecoder, TextClassifier, VisionTransformer
from engine.vocabulary import number_words
from engine.weights import rebuilt

WRITTEN_AT_MOST = 48  # tokens of a translation that never comes to its end


@dataclass(frozen=True)
class _Pass:
    """What one forward pass leaves: its last vectors, (1, T, C), what was recorded, and how long it took."""

    vectors: Tensor
    recorded: dict[Site, Recorded]
    milliseconds: float


class ScratchModel:
    """One of our own transformers, ready to read; shared by all who use it, changed by nobody.

    Attributes:
        card: what it is.
        module: the transformer itself, with dropout off.
        vocabulary: the words that it has learned; None where its tokens have no meaning beyond one text.
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
        vocabulary: Vocabulary | None = None,
        labels: Sequence[str] = (),
    ) -> None:
        if isinstance(module, VisionTransformer):
            raise ModelError(f"{name} looks at images, and text is all that can be read here.")
        self.module = module.eval()
        self.vocabulary = vocabulary
        self._read, self._labels = read, tuple(labels)
        self._heads = heads_of(module)
        self.card = card_of(module, id=id, name=name, source=source, licence=licence, notes=tuple(notes))

    def prompt(self, text: str) -> Prompt:
        """Turn text into what this model reads.

        Raises:
            TextError: there is nothing to read.
        """
        if not isinstance(text, str):
            raise TextError(f"A text is a string, not {text!r}.")
        return self._read(text)

    def run(
        self,
        text: str,
        target: str | None = None,
        mask: Mask = Mask.native(),
        interventions: Sequence[Silence] = (),
    ) -> Trace:
        """Read a text once and record all attention.

        Args:
            text: what to read.
            target: for an encoder-decoder, what its decoder reads. None lets a trained one write it, word by word the
                likeliest, under its own mask but with the interventions; an untrained one reads the same text.
            mask: the mask to impose on self-attention.
            interventions: heads to silence, such as (Silence(2, 0),).

        Raises:
            TextError: there is nothing to read.
            MaskError: the mask names a layer that is not there.
            InterventionError: there is no such head.
            ModelError: a target is given to a model that reads only one text.
        """
        prompt, second = self._prompts(text, target, interventions)
        return self.run_prompt(prompt, second, mask, interventions)

    def run_prompt(
        self,
        prompt: Prompt,
        target: Prompt | None = None,
        mask: Mask = Mask.native(),
        interventions: Sequence[Silence] = (),
    ) -> Trace:
        """Read a prompt that is already made, padding and all, and record all attention."""
        silenced = checked(interventions, self._heads, self.card.name)
        done = self._pass(prompt, target, mask, silenced)
        return Trace(self.card, prompt, target, mask, done.recorded, done.milliseconds, interventions=silenced)

    def predict(
        self,
        text: str,
        target: str | None = None,
        mask: Mask = Mask.native(),
        interventions: Sequence[Silence] = (),
    ) -> Prediction:
        """Say what the model would put where: at every token, after every token, or on the whole text.

        An encoder speaks at position t of token t, which is worth asking where it is hidden: "[MASK]". A decoder speaks
        at position t of token t + 1; so does an encoder-decoder in its target. A classifier says what the text is.

        Args:
            text, target, mask, interventions: as for `run`.

        Raises:
            ModelError: there is no head on top; also as for `run`, and the other errors as there.
        """
        check_predicts(self.module, self.card.name)
        prompt, second = self._prompts(text, target, interventions)
        return self.predict_prompt(prompt, second, mask, interventions)

    def predict_prompt(
        self,
        prompt: Prompt,
        target: Prompt | None = None,
        mask: Mask = Mask.native(),
        interventions: Sequence[Silence] = (),
    ) -> Prediction:
        """Predict from a prompt that is already made, such as a trace's prompt and target."""
        check_predicts(self.module, self.card.name)
        done = self._pass(prompt, target, mask, checked(interventions, self._heads, self.card.name))
        shown = probabilities(self.module, done.vectors, self._inputs(prompt)[1])
        read = prompt if target is None else target
        return Prediction(read.tokens, shown, speaks_ahead(self.module), partial(self._text_of, read))

    def generate(self, text: str, count: int) -> list[Trace]:
        """Write on greedily with a cache of keys and values, and record every step.

        Args:
            text: what to read first.
            count: how many tokens to write, 1 at least.

        Returns:
            One trace per step: the text, T × T; then each written token, one row over all keys so far. Rows and
            columns are labelled with the tokens at their absolute positions. A trained model may come to its end
            before it has written so many.

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
        cache, traces, read = Cache(), [], prompt
        new, _ = self._inputs(prompt)
        for _ in range(count):
            first = cache.length
            done = self._forward(partial(module, new, cache=cache))
            traces.append(Trace(self.card, prompt, None, Mask.native(), done.recorded, done.milliseconds, first))
            new = _likeliest(module, done.vectors)  # (1, 1)
            if self.vocabulary is not None and int(new) == END:
                break
            prompt = prompt.extended([self._written(int(new), read)])
        return traces

    def _prompts(self, text: str, target: str | None, interventions: Sequence[Silence]) -> tuple[Prompt, Prompt | None]:
        """Turn texts into what is read; the second, for an encoder-decoder alone, may have to be written first."""
        if not isinstance(self.module, EncoderDecoder):
            if target is not None:
                raise ModelError(f"{self.card.name} has no second text to read; only an encoder–decoder has.")
            return self.prompt(text), None
        prompt = self.prompt(text)
        if self.vocabulary is None:
            return prompt, prompt if target is None else self.prompt(target)
        if target is None:
            silenced = checked(interventions, self._heads, self.card.name)
            return prompt, self._translation(self.module, prompt, silenced)
        return prompt, self.vocabulary.read(target, self.card.limit, ends=False)

    def _translation(self, module: EncoderDecoder, prompt: Prompt, silenced: Sequence[Silence]) -> Prompt:
        """Write greedily with a cache, from [BOS] until [EOS], which is left out: no row of a map comes from it."""
        ids, padding = self._inputs(prompt)
        memory = self._forward(partial(module.encode, ids, padding), silenced=silenced).vectors
        tokens, cache, new = [special(BEGIN)], Cache(), torch.tensor([[BEGIN]], device=ids.device)
        room = WRITTEN_AT_MOST if self.card.limit is None else min(WRITTEN_AT_MOST, self.card.limit - 1)
        for _ in range(room):
            step = partial(module.decode, new, memory, padding, cache=cache)
            new = _likeliest(module, self._forward(step, silenced=silenced).vectors)  # (1, 1)
            if int(new) == END:
                break
            tokens.append(self._written(int(new), prompt))
        return Prompt("", None, tuple(tokens), (), (), len(tokens), self.card.limit)

    def _written(self, id: int, read: Prompt) -> Token:
        """Make a token that the model wrote: of no word of the text, like every written one."""
        if self.vocabulary is not None and id <= END:
            return special(id, generated=True)
        text = self._text_of(read, id)
        return Token(text, text, id, None, False, None, None, generated=True)

    def _text_of(self, read: Prompt, id: int) -> str:
        """Say what a reader sees of an id; a number that no word of the text has is shown as a number."""
        if isinstance(self.module, TextClassifier):
            return self._labels[id] if id < len(self._labels) else f"label {id}"
        if self.vocabulary is not None:
            return self.vocabulary.text(id)
        return next((token.text for token in read.tokens if token.id == id), f"⟨id {id}⟩")

    def _pass(self, prompt: Prompt, target: Prompt | None, mask: Mask, silenced: Sequence[Silence]) -> _Pass:
        self._check_mask(mask)
        ids, padding = self._inputs(prompt)
        told: dict[Kind, Tensor | None] = {"encoder": padding, "decoder": padding}
        run = partial(self.module, ids, padding)
        if target is not None:
            other, other_padding = self._inputs(target)
            told = {"encoder": padding, "decoder": other_padding}
            run = partial(self.module, ids, other, padding, other_padding)
        given: dict[Kind, Tensor] = {kind: real for kind, real in told.items() if real is not None}
        return self._forward(run, mask, given, silenced)

    def _forward(
        self,
        run: Callable[[], Tensor],
        mask: Mask = Mask.native(),
        padding: Mapping[Kind, Tensor] | None = None,
        silenced: Sequence[Silence] = (),
    ) -> _Pass:
        with FORWARDS, torch.inference_mode(), recording(mask, padding, silenced) as recorder:
            start = time.perf_counter()
            try:
                vectors = run()
            except (torch.OutOfMemoryError, MemoryError) as error:
                raise ResourceError(f"There is not enough memory on {self.card.device} for this text.") from error
            if vectors.is_cuda:
                torch.cuda.synchronize(vectors.device)
            return _Pass(vectors, recorder.recorded, 1000 * (time.perf_counter() - start))

    def _inputs(self, prompt: Prompt) -> tuple[Tensor, Tensor | None]:
        device, rows = self.card.device, self.module.config.vocabulary
        if wrong := [id for id in prompt.ids if not 0 <= id < rows]:
            raise ShapeError(f"Token {wrong[0]} does not exist: this model knows tokens 0 to {rows - 1:,}.")
        ids = torch.tensor([prompt.ids], device=device)
        return ids, None if all(prompt.real) else torch.tensor([prompt.real], device=device)

    def _check_mask(self, mask: Mask) -> None:
        if not isinstance(mask, Mask):
            raise MaskError(f"A mask is a Mask, such as Mask.causal() or Mask.parse('causal'), not {mask!r}.")
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


@torch.inference_mode()
def _likeliest(module: Decoder | EncoderDecoder, vectors: Tensor) -> Tensor:
    """Choose what comes after the last vector, (1, T, C) to (1, 1)."""
    return module.logits(vectors[:, -1:]).argmax(dim=-1)
