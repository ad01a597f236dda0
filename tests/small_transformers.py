"""Small transformers for tests: lively weights, ids, and the maps of a run.

Weights are drawn much larger than a training run would begin with: attention of nearly uniform weights would look
right under almost any fault.

B batch, H heads, T queries, S keys, D head width, C model width.
"""

from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from engine import Site, recording
from engine.config import Config
from engine.rotary import Linear, Llama3, NTKAware, YaRN

# Matrices this small gain nothing from threads, and where other programs are busy they lose most of their time to them.
torch.set_num_threads(1)

Module = TypeVar("Module", bound=nn.Module)

SMALL = Config(width=16, layers=2, heads=4, feed_forward=24, vocabulary=30, length=32)

# Every way in which word order enters; of the rotary scalings all but the one that follows the length.
SCHEMES: dict[str, dict[str, Any]] = {
    "none": {"positions": "none"},
    "learned": {"positions": "learned"},
    "learned after reserved rows": {"positions": "learned", "reserved": 2},
    "sinusoidal": {"positions": "sinusoidal"},
    "ALiBi": {"positions": "alibi"},
    "relative": {"positions": "relative", "buckets": 8, "furthest": 6},
    "rotary": {"positions": "rotary"},
    "rotary interleaved": {"positions": "rotary", "rotary_layout": "interleaved"},
    "rotary, linear": {"positions": "rotary", "rotary_scaling": Linear(4.0)},
    "rotary, NTK-aware": {"positions": "rotary", "rotary_scaling": NTKAware(4.0)},
    "rotary, YaRN": {"positions": "rotary", "rotary_scaling": YaRN(4.0, 16)},
    "rotary, Llama 3": {"positions": "rotary", "rotary_scaling": Llama3(8.0, 16)},
}


def small(**changes: Any) -> Config:
    """A small configuration with something changed."""
    return replace(SMALL, **changes)


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def some_ids(*shape: int, vocabulary: int = 30, seed: int = 0) -> Tensor:
    """Tokens drawn evenly from the vocabulary."""
    return torch.randint(vocabulary, shape, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def lively(module: Module, seed: int = 0, dtype: torch.dtype = torch.float64) -> Module:
    """Give every parameter numbers that matter: no norm left at 1, no constant at 0, and dropout off."""
    module.to(dtype).eval()
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in module.named_parameters():
        drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        if parameter.dim() > 1:
            drawn *= 1.5 if "tokens" in name else 1.5 * parameter.shape[-1] ** -0.5
        else:
            drawn = 0.3 * drawn + ("bias" not in name)
        parameter.copy_(drawn)
    return module


def close(actual: Tensor, expected: Tensor, tolerance: float | None = None) -> None:
    """Agree to 1e-5 in float32, or to 1e-10 in float64, and in shape and precision."""
    allowed = tolerance or {torch.float32: 1e-5, torch.float64: 1e-10}[actual.dtype]
    torch.testing.assert_close(actual, expected, rtol=allowed, atol=allowed)


@torch.no_grad()
def maps_of(model: nn.Module, *inputs: Any, **more: Any) -> tuple[Tensor, dict[Site, Tensor]]:
    """Run a model and give its output, and of every site the weights, (B, H, T, S)."""
    with recording() as recorder:
        output = model(*inputs, **more)
    return output, {site: recorded.call.weights() for site, recorded in recorder.recorded.items()}
