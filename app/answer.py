"""What a model that was trained here answers, what silencing a head does to that, and what the grammar says is right.

    reads both ways       at a pronoun: who is meant; at another word: that word hidden, to be filled in
    reads left to right   after the reason: "…, so the"; and after any word: the next one
    translates            after a word of the translation: the next one
    classifies            what the sentence is about

Dimensions: L layers, H heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np

from app import cache
from app.drawn import mask_of
from app.scene import PRONOUNS, Scene
from engine import ScratchModel
from engine.errors import MaskError
from engine.grammar import Sentence, parse
from engine.interventions import Silence
from engine.predicting import Guess
from engine.spelling import MASK, SPECIALS
from engine.tokens import Prompt

NAMED = 3  # guesses that are told where nobody is asked for
ENGLISH = frozenset({"Encoder", "Decoder", "TextClassifier"})  # what learned from the English grammar
TRADING = frozenset({"sold", "sells", "bought", "buys", "borrowed", "borrows", "took", "takes"})
TRADED = "It knows no trade, only giving and getting: a reader may take the reason otherwise."
ANSWER_BYTES = 400  # about what the few numbers of an answer take


@dataclass(frozen=True)
class Question:
    """What a model is asked.

    Attributes:
        prompt: what it reads.
        target: what its decoder reads, where it has one beside an encoder.
        position: where it answers, a token of what it reads last; None for one answer on the whole.
        lead: the beginning of a sentence that tells the answer: before a word, the word, and after it.
        asked: words or labels, with their ids, that the answer is wanted of; empty for the likeliest.
        right: the one of them that is right by the grammar; None where it does not say.
        remark: what the grammar says, in a sentence in three parts like the lead; empty for nothing.
    """

    prompt: Prompt
    target: Prompt | None
    position: int | None
    lead: tuple[str, str, str]
    asked: tuple[tuple[str, int], ...] = ()
    right: tuple[str, int] | None = None
    remark: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True)
class Answer:
    """What a model answers, and what it answers with a head silenced.

    Attributes:
        question: what it was asked.
        right: the right answer by the grammar or, where that does not say, the likeliest before anything was silenced.
        before: answers with their probabilities, 0 to 1, with every head at work.
        after: the probabilities of the same with a head silenced; None where none is.
        instead: what is likeliest then, if that is another; None where it is one of them.
    """

    question: Question
    right: tuple[str, int]
    before: tuple[Guess, ...]
    after: tuple[float, ...] | None
    instead: Guess | None = None


@lru_cache(maxsize=256)
def parsed(text: str) -> Sentence | None:
    """Read a sentence by the grammar; None where it does not know its kind."""
    return parse(text)


def is_strange(scene: Scene) -> bool:
    """Say whether a model meets a kind of sentence that it has not learned from."""
    card = scene.trace.card.trained
    return card is not None and card.make in ENGLISH and parsed(scene.view.sentence) is None


def question(scene: Scene) -> Question | None:
    """Find out what to ask a model about the picked word; None where it has nothing to answer."""
    card = scene.trace.card.trained
    if card is None:
        return None
    if card.make == "TextClassifier":
        return _of_the_whole(scene)
    if card.make == "Encoder":
        return _at_a_pronoun(scene) or _hidden(scene)
    return _who_is_meant(scene) or next_word(scene) if card.make == "Decoder" else next_word(scene)


def next_word(scene: Scene) -> Question | None:
    """Ask what follows the picked word; None where the model does not write after it."""
    trace = scene.trace
    if scene.kind == "encoder" or (scene.kind == "cross" and scene.view.direction == "by"):
        return None
    group = scene.sources[scene.pin]
    return Question(trace.prompt, trace.target, group.indices[-1], ("After ", group.text, " the next word is"))


def answer(scene: Scene, asked: Question) -> Answer | None:
    """Let the model answer, with all its heads and, where one is silenced, without it; None where its mask forbids."""
    silenced = cache.silences(scene.view.silence)
    try:
        likeliest = _said(scene, asked, ())
        right = asked.right or (likeliest[0].text, likeliest[0].id)
        before = _named(likeliest, asked)
        if not silenced:
            return Answer(asked, right, before, None)
        after = _said(scene, asked, silenced, tuple(guess.id for guess in before))
        first = _said(scene, asked, silenced)[0]
    except MaskError:  # one that names tokens, and this text has others
        return None
    instead = None if first.id in {guess.id for guess in before} else first
    return Answer(asked, right, before, tuple(guess.probability for guess in after), instead)


def costs(scene: Scene, given: Answer) -> np.ndarray:
    """Say what silencing each head alone takes from the right answer, in points of a hundred, (L, H).

    Negative where the right answer gains.
    """
    trace, several = scene.trace, len(scene.trace.kinds) > 1
    made = np.zeros((trace.layers(scene.kind), trace.heads(scene.kind)))
    (whole,) = _said(scene, given.question, (), (given.right[1],))
    for layer, head in np.ndindex(made.shape):
        silenced = (Silence(layer, head, scene.kind if several else None),)
        (without,) = _said(scene, given.question, silenced, (given.right[1],))
        made[layer, head] = 100 * (whole.probability - without.probability)
    return made


def _named(likeliest: Sequence[Guess], asked: Question) -> tuple[Guess, ...]:
    """Choose whose probabilities are told: those asked for and the likeliest, or the likeliest few."""
    if not asked.asked:
        return tuple(likeliest[:NAMED])
    wanted = [guess for guess in likeliest if guess.id in {id for _, id in asked.asked}]
    first = likeliest[:1] if likeliest[0].id not in {guess.id for guess in wanted} else []
    typed = {id: text for text, id in asked.asked}
    return tuple(replace(guess, text=typed.get(guess.id, guess.text)) for guess in (*first, *wanted))


def _said(scene: Scene, asked: Question, silenced: tuple[Silence, ...], ids: tuple[int, ...] = ()) -> list[Guess]:
    """Let a model answer: the probabilities of some ids or, without any, of the likeliest few and all asked for."""
    target = None if asked.target is None else tuple(asked.target.ids)
    specs = tuple(one.spec for one in silenced)
    wanted = ids or tuple(id for _, id in asked.asked)
    read = (tuple(asked.prompt.ids), target, asked.position)
    key = ("answer", scene.view.model, mask_of(scene.view), *read, specs, wanted, bool(ids))
    return cache.derived(key, lambda: _computed(scene, asked, silenced, ids), lambda made: ANSWER_BYTES)


def _computed(scene: Scene, asked: Question, silenced: tuple[Silence, ...], ids: tuple[int, ...]) -> list[Guess]:
    model = _model(scene)
    mask = mask_of(scene.view)
    made = model.predict_prompt(asked.prompt, asked.target, mask, silenced)
    if ids:
        return [Guess(made.text_of(id), id, made.of(asked.position, id)) for id in ids]
    best = list(made.at(asked.position, NAMED))
    others = [id for _, id in asked.asked if id not in {guess.id for guess in best}]
    found = best + [Guess(made.text_of(id), id, made.of(asked.position, id)) for id in others]
    return sorted(found, key=lambda guess: -guess.probability)


def _model(scene: Scene) -> ScratchModel:
    return cast(ScratchModel, cache.model(scene.view.model))


def _at_a_pronoun(scene: Scene) -> Question | None:
    group, prompt = scene.sources[scene.pin], scene.trace.prompt
    sentence = parsed(scene.view.sentence)
    meant = {} if sentence is None else {one.source: one.target for one in sentence.links if one.relation == "pronoun"}
    if group.word is None or (group.word not in meant and group.text.casefold() not in PRONOUNS):
        return None
    made = Question(prompt, None, group.indices[0], ("At ", group.text, " the model itself says"))
    if sentence is None or group.word not in meant:
        return made
    pair = sentence.candidates if group.word == sentence.pronoun and sentence.candidates else (meant[group.word],)
    return _with_gold(scene, made, sentence, pair, meant[group.word], group.text)


def _with_gold(
    scene: Scene, made: Question, sentence: Sentence, pair: Sequence[int], meant: int, pronoun: str
) -> Question:
    """Add who might be meant and who is; a model can name only who is one word to it."""
    words = scene.trace.prompt.words
    numbers = {place: _model(scene).vocabulary.ids(words[place].text) for place in pair}  # type: ignore[union-attr]
    asked = {place: (words[place].text, ids[0]) for place, ids in numbers.items() if len(ids) == 1}
    named = any(one.relation == "determiner" and one.target == meant for one in sentence.links)
    told = ("By the grammar ", pronoun, f" is {'the ' if named else ''}{words[meant].text}.")
    if sentence.decided == "reason" and TRADING & set(sentence.words):
        told = (*told[:2], f"{told[2]} {TRADED}")
    if meant not in asked:
        told = (*told[:2], f"{told[2]} The model has no word for that, so it cannot name it.")
    return replace(made, asked=tuple(asked.values()), right=asked.get(meant), remark=told)


def _hidden(scene: Scene) -> Question | None:
    """Ask an encoder for the picked word, hidden from it."""
    group, prompt = scene.sources[scene.pin], scene.trace.prompt
    pieces = [token for token in prompt.tokens if token.word == group.word and not token.special]
    spans = [span for token in pieces for span in (token.start, token.end) if span is not None]
    if group.word is None or not spans:
        return None
    text = prompt.text[: min(spans)] + SPECIALS[MASK] + prompt.text[max(spans) :]
    asked = _model(scene).prompt(text)
    position = next((at for at, token in enumerate(asked.tokens) if token.word == group.word), None)
    if position is None:  # the text was cut before it
        return None
    word = prompt.words[group.word].text
    return Question(asked, None, position, ("With ", word, " hidden, the model fills in"))


def _who_is_meant(scene: Scene) -> Question | None:
    """Ask a model that writes on who is meant, after the reason: where it is named, or would be."""
    sentence, prompt = parsed(scene.view.sentence), scene.trace.prompt
    if sentence is None or sentence.referent is None or sentence.candidates is None or prompt.cut:
        return None
    pronoun = prompt.words[sentence.pronoun or 0].text
    if sentence.answer is not None:
        at = next(place for place, token in enumerate(prompt.tokens) if token.word == sentence.answer)
        made = Question(prompt, None, at - 1, ("Before ", prompt.words[sentence.answer].text, " the model expects"))
    else:
        named = any(one.relation == "determiner" and one.target == sentence.referent for one in sentence.links)
        ending = ", so the" if named else ", so"
        longer = _model(scene).prompt(prompt.text.rstrip().removesuffix(".") + ending)
        made = Question(longer, None, len(longer) - 1, (f"After “…{ending}” the model goes on with", "", ""))
    return _with_gold(scene, made, sentence, sentence.candidates, sentence.referent, pronoun)


def _of_the_whole(scene: Scene) -> Question:
    card, sentence = scene.trace.card.trained, parsed(scene.view.sentence)
    made = Question(scene.trace.prompt, None, None, ("The model says that this sentence is about", "", ""))
    if card is None or sentence is None or sentence.topic not in card.labels:
        return made
    topic = (sentence.topic, card.labels.index(sentence.topic))
    return replace(made, asked=(topic,), right=topic, remark=(f"By the grammar it is about {sentence.topic}.", "", ""))
