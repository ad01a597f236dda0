"""Adam in a few lines, so that its whole state can be kept, rewound and gone on from.

PyTorch's own does the same; it takes a second to import, which somebody would wait for.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

EPSILON = 1e-8


class Adam:
    """Adam (Kingma & Ba 2014, 1412.6980): each weight moves by its mean gradient over the root of its mean square.

    Args:
        model: whose weights are changed.
        betas: how much of the two means is kept at each step.
        decay: share of each weight, times the rate, that is taken off it (AdamW, Loshchilov & Hutter 2017, 1711.05101).
    """

    def __init__(self, model: nn.Module, betas: tuple[float, float] = (0.9, 0.999), decay: float = 0.0) -> None:
        self.weights = dict(model.named_parameters())
        self.means = {name: torch.zeros_like(weight) for name, weight in self.weights.items()}
        self.squares = {name: torch.zeros_like(weight) for name, weight in self.weights.items()}
        self.betas, self.decay, self.steps = betas, decay, 0

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Change every weight by its gradient, and forget the gradients."""
        self.steps += 1
        first, second = self.betas
        unbiased = 1 - first**self.steps, 1 - second**self.steps
        for name, weight in self.weights.items():
            if weight.grad is None:
                continue
            mean = self.means[name].lerp_(weight.grad, 1 - first)
            square = self.squares[name].mul_(second).addcmul_(weight.grad, weight.grad, value=1 - second)
            weight.mul_(1 - rate * self.decay)
            weight.addcdiv_(mean, (square / unbiased[1]).sqrt_().add_(EPSILON), value=-rate / unbiased[0])
            weight.grad = None

    def state(self) -> dict[str, Tensor]:
        """Give copies of all weights and of what Adam remembers of each."""
        return {name: value.detach().clone() for name, value in self._held().items()}

    @torch.no_grad()
    def restore(self, state: Mapping[str, Tensor], steps: int) -> None:
        """Go back to a state that was given after so many steps."""
        for name, value in self._held().items():
            value.copy_(state[name])
        self.steps = steps

    def _held(self) -> dict[str, Tensor]:
        held: dict[str, Tensor] = {f"weight/{name}": weight for name, weight in self.weights.items()}
        held |= {f"mean/{name}": value for name, value in self.means.items()}
        return held | {f"square/{name}": value for name, value in self.squares.items()}
