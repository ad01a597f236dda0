"""The engine from a terminal.

python -m engine attend "SENTENCE" --model minilm --layer 5 --head 8 --mask causal --word she
python -m engine predict "SENTENCE with a [MASK]" --model twin-encoder --silence 1.2
python -m engine models
python -m engine count llama-3-8b
python -m engine cost llama-3-8b --tokens 8192 --dtype bfloat16
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any, NoReturn

from engine.card import Entry
from engine.catalogue import Policy, load, models
from engine.cost import (
    BYTES,
    Job,
    flops,
    kv_cache_bytes,
    overtaking,
    parameter_bytes,
    score_bytes,
    score_bytes_at_once,
    softmax_steps,
)
from engine.errors import EngineError, ModelError, TextError
from engine.interventions import Silence
from engine.masks import Mask
from engine.model import Model
from engine.predicting import Prediction
from engine.presets import PRESETS, Preset, build, count_parameters, preset
from engine.scratch import ScratchModel
from engine.sites import KINDS, Kind
from engine.sizes import Sizes, sizes_of, sizes_of_preset
from engine.spelling import MASK, SPECIALS
from engine.tokens import Group, group_tokens, group_words, pool_words
from engine.trace import Trace


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are one plain line."""

    def error(self, message: str) -> NoReturn:
        raise EngineError(f"{message[:1].upper()}{message[1:]}. See: python -m engine --help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0, or 2 after one line on what was wrong."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        options = _parser().parse_args(arguments)
        text = options.command(options)
    except EngineError as error:
        print(_printable(" ".join(str(error).split())), file=sys.stderr)
        return 2
    try:
        print(_printable(text), flush=True)
    except BrokenPipeError:  # who read us has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains again when it ends
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m engine", description="See which words a word attends to.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    attend = commands.add_parser("attend", help="print whom one word attends to, in one head")
    attend.add_argument("--model", default="minilm", help="an id of `models`, a folder, or a hub id")
    attend.add_argument("--layer", type=int, default=0, help="counted from 0")
    attend.add_argument("--head", type=int, default=0, help="counted from 0")
    attend.add_argument("--word", help="the word that attends; by default the first one")
    attend.add_argument("--kind", choices=KINDS, help="for an encoder-decoder: which attention")
    attend.add_argument("--tokens", action="store_true", help="show tokens instead of words")
    attend.set_defaults(command=_attend)
    guess = commands.add_parser("predict", help="print what a model would put in a place, and how sure it is")
    guess.add_argument("--model", default="twin-encoder", help="one of our own models in `models`")
    guess.add_argument("--word", help="the word in whose place; by default every [MASK], or what comes after the end")
    guess.add_argument("--top", type=int, default=5, help="how many guesses")
    guess.set_defaults(command=_predict)
    for command in (attend, guess):
        command.add_argument("sentence")
        command.add_argument("--mask", default="native", help="native, bidirectional, causal, prefix:N, window:N, ...")
        command.add_argument("--target", help="for an encoder-decoder: what its decoder reads")
        command.add_argument(
            "--silence", action="append", default=[], type=Silence.parse, metavar="[KIND:]LAYER.HEAD",
            help="a head that hands on nothing, such as 2.0; may be given again",
        )  # fmt: skip
    listing = commands.add_parser("models", help="list what can be loaded here")
    listing.set_defaults(command=_models)
    count = commands.add_parser("count", help="count a known model's parameters, by part")
    count.add_argument("preset", nargs="?", help=f"{', '.join(PRESETS)}; none lists them all")
    count.set_defaults(command=_count)
    cost = commands.add_parser("cost", help="what reading or writing costs, in operations and bytes")
    cost.add_argument("model", help="a preset of `count`, or what `attend` can load")
    cost.add_argument("--tokens", type=int, default=1024, help="how long the text is")
    cost.add_argument("--batch", type=int, default=1, help="how many such texts")
    cost.add_argument("--write", action="store_true", help="one more token, with a cache of the others")
    cost.add_argument("--training", action="store_true", help="gradients as well")
    cost.add_argument("--visible-only", action="store_true", help="count only pairs that the mask shows")
    cost.add_argument("--kv-heads", type=int, help="as if so many key-value heads were shared")
    cost.add_argument("--dtype", default="float32", choices=list(BYTES), help="what numbers are stored in")
    cost.set_defaults(command=_cost, device="cpu", download=False)
    for command in (attend, guess, listing):
        command.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
        command.add_argument("--dtype", default="float32", help="float32, bfloat16 or float16")
        command.add_argument("--download", action="store_true", help="allow the hub to be asked")
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _policy(options: argparse.Namespace) -> Policy:
    return Policy(downloads=options.download)


def _opened(options: argparse.Namespace) -> Model:
    model = load(options.model, device=options.device, dtype=options.dtype, policy=_policy(options))
    if model.card.style == "vision":
        raise ModelError(f"{model.card.name} looks at pictures, and only text can be given here.")
    return model


def _attend(options: argparse.Namespace) -> str:
    mask, model = Mask.parse(options.mask), _opened(options)
    trace = model.run(options.sentence, target=options.target, mask=mask, interventions=options.silence)
    kind: Kind = options.kind or trace.kinds[-1]
    grouped = group_tokens if options.tokens else group_words
    queries, keys = grouped(trace.queries(kind)), grouped(trace.keys(kind))
    query = queries[_find(queries, options.word)]
    weights = pool_words(trace.weights(options.layer, options.head, kind), [query], keys)[0].tolist()
    seen = pool_words(trace.visible(options.layer, options.head, kind).float(), [query], keys)[0].tolist()
    row = [
        {"position": place, "text": key.text, "weight": _finite(weight), "masked": not visible}
        for place, (key, weight, visible) in enumerate(zip(keys, weights, seen, strict=True))
    ]
    if not options.json:
        return _as_text(trace, options, query.text, row)
    audit = trace.audit()
    answer = {
        "model": trace.card.id,
        "kind": kind,
        "layer": options.layer,
        "head": options.head,
        "mask": mask.spec,
        "silenced": [one.spec for one in trace.interventions],
        "word": query.text,
        "tokens": [token.text for token in trace.tokens],
        "target": None if trace.target is None else [token.text for token in trace.target.tokens],
        "row": row,
        "audit": {**asdict(audit), "relative": _finite(audit.relative), "passed": audit.passed},
        "backend": trace.backend,
        "notices": [*trace.prompt.notices, *([trace.card.banner] if trace.card.banner else [])],
    }
    return _as_json(answer)


def _as_text(trace: Trace, options: argparse.Namespace, word: str, row: list[dict[str, Any]]) -> str:
    card = trace.card
    done = _done(trace.mask, trace.interventions)
    head = f"{card.name}, layer {options.layer}, head {options.head}, {done}: {word} attends to"
    lines = [f"  {_share(key):>7}  {key['text']}" for key in row]
    facts = f"{len(trace.tokens)} tokens, {card.device}, {card.dtype}, {trace.backend}, {trace.audit()}"
    banner = [card.banner] if card.banner else []
    return "\n".join([*banner, *trace.prompt.notices, head, *lines, facts])


def _done(mask: Mask, silenced: Sequence[Silence]) -> str:
    return ", ".join([mask.name, *(one.name for one in silenced)])


def _predict(options: argparse.Namespace) -> str:
    mask, model = Mask.parse(options.mask), _opened(options)
    if not isinstance(model, ScratchModel):
        raise ModelError(f"{model.card.name} is not one of our own models: see which come with the app in `models`.")
    made = model.predict(options.sentence, options.target, mask, options.silence)
    places = _places(made, options.word)
    guesses = [made.at(position, options.top) for _, position in places]
    if options.json:
        answer = {
            "model": model.card.id,
            "mask": mask.spec,
            "silenced": [one.spec for one in options.silence],
            "tokens": [token.text for token in made.tokens],
            "ahead": made.ahead,
            "places": [
                {"word": word, "position": position, "guesses": [asdict(guess) for guess in found]}
                for (word, position), found in zip(places, guesses, strict=True)
            ],
        }
        return _as_json(answer)
    where = "after" if made.ahead else "at"
    lines = [f"{model.card.name}, {_done(mask, options.silence)}"]
    for (word, position), found in zip(places, guesses, strict=True):
        lines.append("the whole text:" if position is None else f"{where} {word} (token {position}):")
        lines += [f"  {guess.probability:>7.2%}  {guess.text}" for guess in found]
    return "\n".join(lines)


def _places(made: Prediction, word: str | None) -> list[tuple[str | None, int | None]]:
    """Find the places to speak of: one word's, else every [MASK], else the end of a text that may go on.

    Raises:
        TextError: the word is not in the sentence, or nothing says which place is meant.
    """
    if made.is_of_the_whole:
        return [(None, None)]
    groups = group_words(made.tokens)
    if word is not None:
        chosen = [groups[_find(groups, word)]]
    elif made.ahead:
        chosen = [groups[-1]]
    else:
        chosen = [group for group in groups if group.text == SPECIALS[MASK]]
    if not chosen:
        raise TextError("Hide a word as [MASK], or say with --word in whose place the model is to guess.")
    return [(group.text, group.indices[-1 if made.ahead else 0]) for group in chosen]


def _share(key: dict[str, Any]) -> str:
    if key["masked"]:
        return "masked"
    return "not finite" if key["weight"] is None else f"{key['weight']:.2%}"


def _finite(number: float | None) -> float | None:
    return number if number is not None and isfinite(number) else None


def _as_json(answer: object) -> str:
    """Write JSON that any program reads: no NaN, and escapes where the terminal cannot print a text as it is."""
    text = json.dumps(answer, ensure_ascii=False, allow_nan=False, indent=2)
    return text if text == _printable(text) else json.dumps(answer, allow_nan=False, indent=2)


def _models(options: argparse.Namespace) -> str:
    entries = models(_policy(options))
    if options.json:
        return _as_json([asdict(entry) for entry in entries])
    return "\n".join(map(_line, entries))


def _line(entry: Entry) -> str:
    size = "unknown size"
    if entry.parameters:
        small = entry.parameters < 100_000
        size = f"{entry.parameters:,} parameters" if small else f"{entry.parameters / 1e6:,.1f} M parameters"
    shape = f"{entry.layers} × {entry.heads} heads" if entry.layers and entry.heads else ""
    state = "" if entry.available else f"not available: {entry.reason}"
    return "  ".join(filter(None, (f"{entry.id:<24}", entry.style, entry.family, shape, size, entry.where, state)))


def _count(options: argparse.Namespace) -> str:
    known = PRESETS.values() if options.preset is None else [preset(options.preset)]
    counted = {one.name: count_parameters(build(one.make, one.config, device="meta")) for one in known}
    if options.preset is None:
        if options.json:
            return _as_json([_counted(name, parts) for name, parts in counted.items()])
        return "\n".join(f"{sum(parts.values()):>15,}  {name}" for name, parts in counted.items())
    parts = counted[options.preset]
    if options.json:
        return _as_json(_counted(options.preset, parts))
    return _count_as_text(preset(options.preset), parts)


def _counted(name: str, parts: dict[str, int]) -> dict[str, Any]:
    known = preset(name)
    return {
        "model": name,
        "parameters": sum(parts.values()),
        "parts": parts,
        "includes": known.counted,
        "source": known.source,
    }


def _count_as_text(known: Preset, parts: dict[str, int]) -> str:
    config, total = known.config, sum(parts.values())
    lines = [f"  {number:>15,}  {_part_of_all(number / total):>6}  {part}" for part, number in parts.items()]
    shared = "" if config.heads == config.G else f" sharing {config.G} key-value heads"
    size = f"{config.layers} layers, width {config.width:,}, {config.heads} heads{shared}"
    head = f"{known.title}: {total:,} parameters, including {known.counted}"
    return "\n".join([head, *lines, f"{size}; sizes from {known.source}"])


def _cost(options: argparse.Namespace) -> str:
    if options.model in PRESETS:
        sizes = sizes_of_preset(preset(options.model))
    else:
        sizes = sizes_of(load(options.model, device="cpu", policy=_policy(options)))
    if options.kv_heads is not None:
        sizes = sizes.sharing(options.kv_heads)
    job = Job(
        options.tokens, options.batch, "write" if options.write else "read", options.training, options.visible_only
    )
    answer = {
        "model": options.model,
        "tokens": job.tokens,
        "batch": job.batch,
        "step": job.step,
        "training": job.training,
        "counted": "pairs that the mask shows" if job.visible_only else "all pairs",
        "dtype": options.dtype,
        "flops": (counted := dict(flops(sizes, job))),
        "flops_total": sum(counted.values()),
        "softmax_operations": softmax_steps(sizes, job),
        "score_bytes": score_bytes(sizes, job, options.dtype),
        "score_bytes_one_layer": score_bytes_at_once(sizes, job, options.dtype),
        "kv_cache_bytes": kv_cache_bytes(sizes, job, options.dtype),
        "parameter_bytes": parameter_bytes(sizes, options.dtype),
        "parameters": sizes.parameters,
        "attention_overtakes_at": overtaking(sizes, job),
        "notes": [sizes.note] if sizes.note else [],
    }
    return _as_json(answer) if options.json else _cost_as_text(sizes, answer)


def _cost_as_text(sizes: Sizes, answer: dict[str, Any]) -> str:
    total = answer["flops_total"]
    what = "one more token after" if answer["step"] == "write" else "training on" if answer["training"] else "reading"
    lines = [f"{sizes.name}, {what} {answer['tokens']:,} tokens × {answer['batch']:,}, {answer['dtype']}"]
    lines += [
        f"  {count:>26,} FLOP {_part_of_all(count / total):>6}  {part}" for part, count in answer["flops"].items()
    ]
    lines.append(f"  {total:>26,} FLOP         in all, counting {answer['counted']}")
    amounts = {
        "weights of every layer, if they are kept": "score_bytes",
        "weights of one layer": "score_bytes_one_layer",
        "cache of keys and values": "kv_cache_bytes",
        "parameters": "parameter_bytes",
    }
    lines += [f"  {answer[name]:>26,} B  ({answer[name] / 2**30:,.3f} GiB)  {title}" for title, name in amounts.items()]
    length = answer["attention_overtakes_at"]
    never = "scores and mixing never cost as much as the rest of the layers"
    there = f"scores and mixing cost as much as the rest of the layers from {length:,} tokens on" if length else never
    return "\n".join([*lines, there, *answer["notes"]])


def _part_of_all(share: float) -> str:
    return "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def _find(groups: Sequence[Group], word: str | None) -> int:
    """Find the word that was asked for, as it was typed or else in any case.

    Raises:
        TextError: it is not in the sentence.
    """
    if word is None:
        return next((place for place, group in enumerate(groups) if not group.special), 0)
    for same in (lambda text: text == word, lambda text: text.casefold() == word.casefold()):
        for place, group in enumerate(groups):
            if same(group.text):
                return place
    raise TextError(f"{word!r} is not in the sentence. It has: {', '.join(group.text for group in groups)}.")


def _printable(text: str) -> str:
    """Replace what the terminal's encoding cannot print, lone surrogates among them."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


if __name__ == "__main__":
    sys.exit(main())
