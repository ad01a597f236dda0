"""Train the models in assets/ again, and measure them: python -m engine.training all."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engine.errors import EngineError
from engine.presets import build
from engine.trained import card_of, module_of
from engine.training import finetuned, finetuning
from engine.training.batches import Reads
from engine.training.loop import one_thread
from engine.training.recipe import Recipe, runs, trained
from engine.training.recipes import RECIPES
from engine.training.twin_recipes import MAKES, measure
from engine.training.twin_scores import headlines, report
from engine.training.twins import CONFIG, HEADS

SEEDS = (0, 1, 2)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m engine.training", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    names = (*RECIPES, "finetuning")
    train = commands.add_parser("train", help="train some models again and write them to assets/")
    train.add_argument("names", nargs="+", choices=names, metavar="name", help=", ".join(names))
    commands.add_parser("all", help="train all models again and write them to assets/")
    evaluate = commands.add_parser("evaluate", help="measure the models in assets/, every head and every relation")
    evaluate.add_argument("--json", action="store_true", help="for programs")
    seeds = commands.add_parser(
        "seeds", help="train the guided twins from three seeds and measure each; writes nothing"
    )
    seeds.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args(arguments)
    try:
        if given.command in ("train", "all"):
            _train(names if given.command == "all" else given.names)
        else:
            _show(_evaluated() if given.command == "evaluate" else _seeds(), as_json=given.json)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _train(names: tuple[str, ...] | list[str]) -> None:
    start = time.monotonic()
    for run in runs(RECIPES[name] for name in names if name in RECIPES):
        with _timed(" and ".join(recipe.id for recipe in run)):
            for recipe, model in zip(run, trained(run, say=_say), strict=True):
                with one_thread(recipe.seed):
                    measured = recipe.measure(model)
                recipe.write(model, measured)
    if "finetuning" in names:
        with _timed("finetuning"):
            finetuned.write(finetuning.curves(say=_say))
    _say(f"all in {time.monotonic() - start:.0f} s")


@contextmanager
def _timed(name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    _say(f"{name}: {time.monotonic() - began:.0f} s")


def _evaluated() -> dict[str, Any]:
    """Measure every model in assets/ on what it has never seen."""
    told: dict[str, Any] = {}
    for name, recipe in RECIPES.items():
        model = module_of(card_of(name))
        with one_thread(recipe.seed):
            if name.startswith("twin"):
                reads = _reads(name)
                told[name] = report(model, reads, build(MAKES[reads], CONFIG, seed=1))
            else:
                measured = recipe.measure(model)
                told[name] = {**measured.scores, "named heads": {key: list(at) for key, at in measured.heads.items()}}
    return told


def _seeds() -> dict[str, Any]:
    """Train the guided twins from several seeds: the same head is to find the same person in all of them."""
    told: dict[str, Any] = {}
    for name in ("twin-encoder", "twin-decoder"):
        recipe: Recipe = RECIPES[name]
        reads = _reads(name)
        for seed in SEEDS:
            model = recipe.trained(seed, _say)
            with one_thread(seed):
                scores = dict(measure(model, reads).scores)
                scores["headlines"] = headlines(model, reads, HEADS[reads]["pronoun"])
            told[f"{name}, seed {seed}"] = scores
    return told


def _reads(name: str) -> Reads:
    return "both ways" if "encoder" in name else "left to right"


def _show(told: dict[str, Any], *, as_json: bool) -> None:
    print(json.dumps(told, ensure_ascii=False, indent=1) if as_json else "\n".join(_lines(told)))


def _lines(told: dict[str, Any], depth: int = 0) -> list[str]:
    """Write nested results as indented lines; a list of numbers stays on one."""
    lines = []
    for name, value in told.items():
        if isinstance(value, dict):
            lines += [f"{'  ' * depth}{name}", *_lines(value, depth + 1)]
        elif isinstance(value, list) and value and isinstance(value[0], list):
            lines.append(f"{'  ' * depth}{name}")
            lines += [f"{'  ' * (depth + 1)}layer {row}: {' '.join(map(str, one))}" for row, one in enumerate(value)]
        else:
            lines.append(f"{'  ' * depth}{name}: {' '.join(map(str, value)) if isinstance(value, list) else value}")
    return lines


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
