"""Any Hugging Face text model behind the engine's Model interface: text in, Trace out.

Dimensions: B batch, T queries, S keys.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from engine.backend import Step, Walk, guided
from engine.card import Card
from engine.checkpoints import Checkpoint
from engine.describe import limit_of, positions_of, vocabulary_of
from engine.eager import check_returned, returned_attention, returned_steps
from engine.errors import (
    CaptureError,
    EngineError,
    InterventionError,
    MaskError,
    ModelError,
    ResourceError,
    TextError,
)
from engine.forwards import FORWARDS
from engine.interventions import Silence, checked
from engine.masks import Mask
from engine.probe import Probed, probe, without_cache
from engine.recording import Recorded, recording
from engine.sites import Kind, Site
from engine.tokens import Prompt, Token, decoded, encode
from engine.trace import Returned, Trace

GENERATED_AT_MOST = 64
# Said outright, since a checkpoint may bring settings of its own.
GREEDY = {"do_sample": False, "num_beams": 1, "num_return_sequences": 1, "return_dict_in_generate": False}


class HuggingFaceModel:
    """A checkpoint that can be run and looked into; shared by all who use it, changed by nobody.

    Attributes:
        card: what it is.
        module: the transformers model.
        tokenizer: its tokenizer.
    """

    def __init__(self, checkpoint: Checkpoint, *, id: str, name: str, licence: str, source: str) -> None:
        probed = probe(checkpoint.module)
        self.module = checkpoint.rebuild("eager") if probed.reason else checkpoint.module
        self.tokenizer = checkpoint.tokenizer
        self._plan = probed.plan
        self._lock = threading.Lock()
        # A fast tokenizer changes settings of its own when it is called, so it is called by one thread at a time.
        self._tokenizing = threading.Lock()
        self._accepts = frozenset(inspect.signature(self.module.forward).parameters)
        steps = probed.plan or returned_steps(self.module)
        self._kind = steps[0].site.kind
        self._heads = {step.site: step.heads for step in steps}
        self.card = _card(checkpoint, self.module, steps, probed, id=id, name=name, licence=licence, source=source)

    def prompt(self, text: str, pair: str | None = None) -> Prompt:
        """Turn text into what this model reads, cut to its limit.

        Raises:
            TextError: there is nothing to read.
        """
        if not isinstance(text, str) or not isinstance(pair, str | None):
            raise TextError(f"A text is a string, not {text if not isinstance(text, str) else pair!r}.")
        prompt = self._encode(text, pair)
        rows = vocabulary_of(self.module)
        if max(prompt.ids) >= rows:
            raise ModelError(f"The tokenizer of {self.card.name} knows tokens beyond the model's {rows:,}.")
        return prompt

    def run(
        self,
        text: str,
        target: str | None = None,
        pair: str | None = None,
        mask: Mask = Mask.native(),
        generate: int = 0,
        interventions: Sequence[Silence] = (),
    ) -> Trace:
        """Read a text once and record all attention.

        Args:
            text: what to read.
            target: for an encoder-decoder, what its decoder reads; None lets the model write it, as it was trained.
            pair: a second text after the first, for models that compare two.
            mask: the mask to impose on self-attention.
            generate: how many tokens a decoder-only model writes on first, as it was trained; then one pass over
                everything makes the trace.
            interventions: heads to silence while it reads, such as (Silence(5, 8),).

        Raises:
            TextError: there is nothing to read.
            MaskError: the mask cannot be imposed here.
            InterventionError: there is no such head, or it cannot be silenced here.
            ModelError: a text is asked for that this model cannot write.
        """
        self._check(mask, interventions)
        prompt = self.prompt(text, pair)
        if generate:
            prompt = self._continued(prompt, generate)
        return self.run_prompt(prompt, self._target(prompt, target), mask, interventions)

    def run_prompt(
        self,
        prompt: Prompt,
        target: Prompt | None = None,
        mask: Mask = Mask.native(),
        interventions: Sequence[Silence] = (),
    ) -> Trace:
        """Read a prompt that is already made, padding and all, and record all attention."""
        return self._run([prompt], [target] if target else [], mask, interventions)[0]

    def run_batch(self, texts: Sequence[str], mask: Mask = Mask.native()) -> list[Trace]:
        """Read several texts in one pass, padded on the right to the longest; each trace is without its padding.

        Raises:
            TextError: one of them holds nothing to read.
        """
        if not texts:
            raise TextError("A batch needs at least one text.")
        prompts = [self.prompt(text) for text in texts]
        targets = [target for prompt in prompts if (target := self._target(prompt, None))]
        traces = self._run(_padded(prompts, self.tokenizer), _padded(targets, self.tokenizer), mask)
        return [
            _without_padding(trace, prompt, targets[index] if targets else None)
            for index, (trace, prompt) in enumerate(zip(traces, prompts, strict=True))
        ]

    def predict(
        self, text: str, mask: Mask = Mask.native(), top: int = 5, interventions: Sequence[Silence] = ()
    ) -> list[list[tuple[str, float]]]:
        """Say what the model would put at each [MASK], or, for a decoder, what comes next.

        Returns:
            For each place, the `top` likeliest tokens with their probabilities from 0 to 1.

        Raises:
            ModelError: the model has no head that predicts tokens.
        """
        prompt = self.prompt(text)
        target = self._target(prompt, None) if "cross" in self.card.kinds else None
        outputs, *_ = self._forward([prompt], [target] if target else [], mask, interventions)
        logits = getattr(outputs, "logits", None)
        if logits is None or logits.dim() != 3 or logits.shape[-1] < len(self.tokenizer) - 1:
            raise ModelError(f"{self.card.name} has no head that predicts words.")
        places = [logits.shape[1] - 1]
        if self.card.style == "BERT-style":
            places = [place for place, id in enumerate(prompt.ids) if id == self.tokenizer.mask_token_id]
        return [self._likeliest(logits[0, place].float(), top) for place in places]

    def _encode(self, text: str, pair: str | None = None) -> Prompt:
        with self._tokenizing:
            return encode(self.tokenizer, text, pair=pair, limit=self.card.limit)

    def _likeliest(self, logits: Tensor, top: int) -> list[tuple[str, float]]:
        best = logits.softmax(dim=-1).topk(min(top, logits.shape[-1]))
        tokens = decoded(self.tokenizer, best.indices.tolist())
        return [(token.text, value) for token, value in zip(tokens, best.values.tolist(), strict=True)]

    def _run(
        self, prompts: Sequence[Prompt], targets: Sequence[Prompt], mask: Mask, interventions: Sequence[Silence] = ()
    ) -> list[Trace]:
        outputs, recorded, milliseconds = self._forward(prompts, targets, mask, interventions)
        sites: dict[Site, Any] = dict(recorded)
        if not self._plan:
            returned = returned_attention(outputs, bool(self.module.config.is_encoder_decoder), self._kind)
            check_returned(returned, self._heads, len(prompts[0]), len((targets or prompts)[0]))
            sites = {site: Returned(weights) for site, weights in returned.items()}
        return [
            Trace(
                self.card,
                prompt,
                targets[index] if targets else None,
                mask,
                sites if len(prompts) == 1 else {site: _nth(held, index) for site, held in sites.items()},
                milliseconds,
                interventions=tuple(dict.fromkeys(interventions)),
            )
            for index, prompt in enumerate(prompts)
        ]

    def _forward(
        self, prompts: Sequence[Prompt], targets: Sequence[Prompt], mask: Mask, interventions: Sequence[Silence] = ()
    ) -> tuple[Any, dict[Site, Recorded], float]:
        silenced = self._check(mask, interventions)
        inputs = self._inputs(prompts, targets)
        padding: dict[Kind, Tensor] = {"encoder": inputs["attention_mask"].bool()}
        padding["decoder"] = inputs["decoder_attention_mask" if targets else "attention_mask"].bool()
        walk = Walk(self._plan)
        listening = recording(mask, padding, silenced)
        with self._lock, FORWARDS, torch.inference_mode(), guided(walk), listening as recorder:
            start = time.perf_counter()
            outputs = self._call(inputs)
            if self.module.device.type == "cuda":
                torch.cuda.synchronize(self.module.device)
            milliseconds = 1000 * (time.perf_counter() - start)
        walk.finish()
        return outputs, recorder.recorded, milliseconds

    def _check(self, mask: Mask, interventions: Sequence[Silence]) -> tuple[Silence, ...]:
        if not isinstance(mask, Mask):
            raise MaskError(f"A mask is a Mask, such as Mask.causal() or Mask.parse('causal'), not {mask!r}.")
        if not self._plan and not mask.is_native:
            raise MaskError(f"No other mask can be imposed on {self.card.name}: {self.card.reason}.")
        absent = mask.layers - {step.site.layer for step in self._plan if step.site.is_self_attention}
        if self._plan and absent:
            raise MaskError(f"{self.card.name} has no layer {min(absent)}: layers count from 0.")
        silenced = checked(interventions, self._heads, self.card.name)
        if not self._plan and silenced:
            raise InterventionError(f"No head of {self.card.name} can be silenced: {self.card.reason}.")
        return silenced

    def _call(self, inputs: dict[str, Tensor]) -> Any:
        asked = {} if self._plan else {"output_attentions": True}
        try:
            return self.module(**inputs, **without_cache(self.module), **asked)
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise self._no_room(inputs) from error
        except EngineError:
            raise
        except Exception as error:  # models of unknown make fail in ways of their own
            if "allocate memory" in str(error):
                raise self._no_room(inputs) from error
            cause = (str(error) or type(error).__name__).splitlines()[0]
            raise CaptureError(f"{self.card.name} failed on this text: {cause}") from error

    def _no_room(self, inputs: dict[str, Tensor]) -> ResourceError:
        tokens = inputs["input_ids"].shape[1]
        return ResourceError(f"There is not enough memory on {self.card.device} for {tokens:,} tokens.")

    def _inputs(self, prompts: Sequence[Prompt], targets: Sequence[Prompt]) -> dict[str, Tensor]:
        real = torch.tensor([prompt.real for prompt in prompts])
        inputs = {"input_ids": torch.tensor([prompt.ids for prompt in prompts]), "attention_mask": real.long()}
        if "token_type_ids" in self._accepts and any(any(prompt.segments) for prompt in prompts):
            inputs["token_type_ids"] = torch.tensor([prompt.segments for prompt in prompts])
        # Padding on the left would shift the positions of the real tokens, unless the model is told.
        if not targets and "position_ids" in self._accepts and not bool(real[:, 0].all()) and self._kind == "decoder":
            inputs["position_ids"] = (real.long().cumsum(dim=1) - 1).clamp(min=0)
        if targets:
            inputs["decoder_input_ids"] = torch.tensor([target.ids for target in targets])
            inputs["decoder_attention_mask"] = torch.tensor([target.real for target in targets]).long()
        return {name: tensor.to(self.module.device) for name, tensor in inputs.items()}

    def _continued(self, prompt: Prompt, count: int) -> Prompt:
        if not self.module.can_generate() or self.card.style != "GPT-style":
            raise ModelError(f"{self.card.name} does not write text, so there is nothing to generate.")
        room = GENERATED_AT_MOST if self.card.limit is None else self.card.limit - len(prompt)
        new = self._generate(prompt, min(count, room, GENERATED_AT_MOST))[len(prompt) :]
        return prompt.extended(decoded(self.tokenizer, new))

    def _generate(self, prompt: Prompt, count: int) -> list[int]:
        if count < 1:
            return list(prompt.ids)
        inputs = {name: value for name, value in self._inputs([prompt], []).items() if name != "token_type_ids"}
        settings = {"max_new_tokens": count, "pad_token_id": _pad(self.tokenizer), **GREEDY}
        try:
            with self._lock, FORWARDS, torch.inference_mode():
                return self.module.generate(**inputs, **settings)[0].tolist()  # type: ignore[operator]
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise self._no_room(inputs) from error
        except Exception as error:  # generating asks far more of a model than reading, and fails in many ways
            cause = (str(error) or type(error).__name__).splitlines()[0]
            raise ModelError(f"{self.card.name} could not write on from this text: {cause}") from error

    def _target(self, prompt: Prompt, text: str | None) -> Prompt | None:
        """Make what the decoder of an encoder-decoder reads: its start token, then all but the last of the target."""
        if not self.module.config.is_encoder_decoder:
            if text is not None:
                raise ModelError(f"{self.card.name} has no second text to read; only an encoder–decoder has.")
            return None
        start = self.module.config.decoder_start_token_id
        if start is None:  # mBART's first checkpoints: their targets begin as later ones do
            start = self.tokenizer.eos_token_id
        if text is None:
            if not self.module.can_generate():
                raise ModelError(f"{self.card.name} cannot write, so give it the target text as well.")
            ids = self._generate(prompt, min(GENERATED_AT_MOST, (self.card.limit or GENERATED_AT_MOST + 1) - 1))
            written = decoded(self.tokenizer, ids[1:-1] if ids[-1] == self.tokenizer.eos_token_id else ids[1:])
            return Prompt("", None, (self._start_token(start), *written), (), (), len(written) + 1, self.card.limit)
        read = self._encode(text)
        ends = read.ids[-1] == self.tokenizer.eos_token_id
        tokens = (self._start_token(start), *(read.tokens[:-1] if ends else read.tokens))
        return Prompt(read.text, None, tokens, read.words, read.notices, read.total, read.limit)

    def _start_token(self, id: int) -> Token:
        raw = str(self.tokenizer.convert_ids_to_tokens([id])[0])
        return Token(raw, raw, id, None, True, None, None)


def _card(
    checkpoint: Checkpoint,
    module: PreTrainedModel,
    steps: Sequence[Step],
    probed: Probed,
    *,
    id: str,
    name: str,
    licence: str,
    source: str,
) -> Card:
    kinds = tuple(dict.fromkeys(step.site.kind for step in steps))
    first = [step for step in steps if step.site.kind == kinds[0]]
    return Card(
        id=id,
        name=name,
        family=module.config.model_type,
        kinds=kinds,
        layers=len(first),
        heads=max(step.heads for step in first),
        kv_heads=max(step.kv_heads for step in first),
        windows=tuple(step.window for step in first),
        positions=positions_of(module),
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        limit=limit_of(module, checkpoint.tokenizer),
        licence=licence,
        source=source,
        backend="eager" if probed.reason else "sdpa",
        reason=probed.reason,
        device=str(module.device),
        dtype=str(module.dtype).removeprefix("torch."),
        missing=checkpoint.missing,
        unexpected=checkpoint.unexpected,
        notes=checkpoint.notes,
    )


def _pad(tokenizer: PreTrainedTokenizerBase) -> int:
    """Choose the id that fills a batch; what it is does not matter, since it is masked by place, never by id."""
    for id in (tokenizer.pad_token_id, tokenizer.eos_token_id):
        if id is not None:
            return int(id)
    return 0


def _padded(prompts: Sequence[Prompt], tokenizer: PreTrainedTokenizerBase) -> list[Prompt]:
    longest = max((len(prompt) for prompt in prompts), default=0)
    return [prompt.padded(longest, pad_id=_pad(tokenizer)) for prompt in prompts]


def _nth(held: Recorded | Returned, index: int) -> Recorded | Returned:
    return _cut(held, index, slice(None), slice(None))


def _cut(held: Recorded | Returned, index: int, queries: slice, keys: slice) -> Recorded | Returned:
    if isinstance(held, Returned):
        return Returned(held.returned[index : index + 1, :, queries, keys])
    return held.item(index, queries, keys)


def _without_padding(trace: Trace, prompt: Prompt, target: Prompt | None) -> Trace:
    """Cut the padding on the right off a trace, rows and columns alike."""
    source, other = slice(0, len(prompt)), slice(0, len(target) if target else len(prompt))
    axes = {"encoder": (source, source), "decoder": (other, other), "cross": (other, source)}
    sites = {site: _cut(held, 0, *axes[site.kind]) for site, held in trace.sites.items()}
    return replace(trace, prompt=prompt, target=target, sites=sites)
