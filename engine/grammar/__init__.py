"""A grammar of simple English sentences that knows what its words mean to each other.

Sentences for training and for measuring come with gold labels: who "she" is, which noun a determiner belongs to, whose
subject and object a noun is, where a word was said before. A typed sentence is parsed by the same grammar.
"""

from engine.grammar.frames import FRAMES, REASON_FRAMES, Frame
from engine.grammar.parsing import parse
from engine.grammar.sentences import RELATIONS, TOPICS, Link, Relation, Sentence
from engine.grammar.source import Split, sentences
from engine.grammar.words import WORDS

__all__ = [
    "FRAMES",
    "REASON_FRAMES",
    "RELATIONS",
    "TOPICS",
    "WORDS",
    "Frame",
    "Link",
    "Relation",
    "Sentence",
    "Split",
    "parse",
    "sentences",
]
