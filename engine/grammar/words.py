"""Every word of the grammar, in the order in which models number them."""

from engine.grammar import lexicon

_SIGNS = (".", ",", "so", "did", "does", "didn't", "doesn't", "not", "fit", "for", "from")


def _every_word() -> tuple[str, ...]:
    """Collect the words of all lists: single words, several in one string, past and present, plurals."""
    found = set(_SIGNS)
    for name, value in vars(lexicon).items():
        if name.isupper() and isinstance(value, tuple | frozenset):
            for entry in value:
                found.update(word for text in ((entry,) if isinstance(entry, str) else entry) for word in text.split())
    for name, value in vars(lexicon).items():
        if name.startswith("OF_"):
            forms = [form for reason in value for form in (lexicon.present(reason), *_for_they(reason))]
            found.update(word for form in forms for word in form.split())
    found.update(map(lexicon.plural, lexicon.PLACED + lexicon.NEAR))
    found.update(("are", "were", "seem", "seems", "look", "looks"))
    return tuple(sorted(found))


def _for_they(reason: str) -> tuple[str, str]:
    return lexicon.for_they(reason), lexicon.for_they(lexicon.present(reason))


WORDS = _every_word()
