"""Masks: counted against closed forms, composed, limited, written down and read back.

B batch, H heads, T queries, S keys.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.attention import attention_weights
from engine.errors import MaskError
from engine.masks import Mask, Visibility
from engine.sites import Site

ENCODER, DECODER, CROSS = Site("encoder", 0), Site("decoder", 0), Site("cross", 0)
CPU = torch.device("cpu")
HUGE = 10**30


def visible(mask: Mask, count: int, site: Site = ENCODER, keys: int | None = None) -> Tensor:
    """What a mask shows of `count` queries where the model itself would show everything, (T, S)."""
    return mask.visible(site, torch.ones(count, keys or count, dtype=torch.bool))[0, 0]


def lengths_adding_to(total: int) -> st.SearchStrategy[list[int]]:
    cuts = st.sets(st.integers(1, total - 1), max_size=3) if total > 1 else st.just(set[int]())
    return cuts.map(lambda at: [b - a for a, b in zip([0, *sorted(at)], [*sorted(at), total], strict=True)])


def masks_for(count: int) -> st.SearchStrategy[Mask]:
    """Any mask that fits `count` tokens, limited or not, up to two layers and three heads."""
    position = st.integers(0, count + 1)
    numbers = st.none() | st.sets(st.integers(0, 1))
    heads = st.none() | st.sets(st.integers(0, 2))
    simple = st.one_of(
        st.just(Mask.native()),
        st.just(Mask.bidirectional()),
        st.just(Mask.causal()),
        st.integers(0, count + 2).map(Mask.prefix),
        st.integers(1, count + 2).map(Mask.window),
        lengths_adding_to(count).map(Mask.document),
        st.lists(st.tuples(position, position), max_size=4).map(Mask.blocking),
    )
    return st.tuples(simple, numbers, heads).map(lambda parts: parts[0].only(layers=parts[1], heads=parts[2]))


def booleans(*shape: int) -> st.SearchStrategy[Tensor]:
    return st.integers(0, 2**31).map(lambda seed: torch.rand(shape, generator=_seeded(seed)) > 0.4)


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("count", [1, 2, 8, 33])
def test_causal_shows_a_triangle_of_n_times_n_plus_1_over_2(count: int):
    seen = visible(Mask.causal(), count)
    assert int(seen.sum()) == count * (count + 1) // 2
    assert torch.equal(seen, torch.ones(count, count).tril().bool())


def test_bidirectional_shows_everything():
    assert visible(Mask.bidirectional(), 7).all()


@pytest.mark.parametrize("width", [1, 2, 3, 6])
def test_a_window_of_w_shows_w_keys_to_each_side_counting_the_token_itself(width: int):
    """n² pairs, less the two corner triangles of n − w rows each."""
    seen = visible(Mask.window(width), 9)
    assert int(seen.sum()) == 81 - (9 - width) * (10 - width)
    assert torch.equal(seen, seen.T)


def test_a_window_of_1_shows_each_token_itself_alone():
    assert torch.equal(visible(Mask.window(1), 5), torch.eye(5).bool())


@pytest.mark.parametrize("width", [6, 7, 100, HUGE])
def test_a_window_as_wide_as_the_text_or_wider_shows_everything(width: int):
    assert visible(Mask.window(width), 6).all()


def test_a_causal_window_shows_w_keys_in_all_as_mistral_counts_them():
    seen = visible(Mask.causal() & Mask.window(3), 8)
    assert seen.sum(dim=1).tolist() == [1, 2, 3, 3, 3, 3, 3, 3]


@pytest.mark.parametrize("length", [0, 1, 4, 8, 9, HUGE])
def test_a_prefix_of_p_adds_the_pairs_above_the_diagonal_among_its_keys(length: int):
    """Query t misses max(0, p − 1 − t) of the prefix when causal: p(p−1)/2 in all."""
    inside = min(length, 8)
    seen = visible(Mask.prefix(length), 8)
    assert int(seen.sum()) == 36 + inside * (inside - 1) // 2
    assert seen[:, :inside].all()


def test_a_prefix_of_0_is_causal():
    assert torch.equal(visible(Mask.prefix(0), 6), visible(Mask.causal(), 6))


def test_documents_see_only_themselves():
    seen = visible(Mask.document([1, 2, 3]), 6)
    assert torch.equal(seen, torch.block_diag(torch.ones(1, 1), torch.ones(2, 2), torch.ones(3, 3)).bool())


def test_blocking_hides_exactly_the_pairs_named():
    seen = visible(Mask.blocking([(4, 2), (0, 5), (4, 2)]), 6)
    assert (~seen).nonzero().tolist() == [[0, 5], [4, 2]]


def test_blocking_pairs_beyond_the_text_hides_nothing():
    assert visible(Mask.blocking([(6, 0), (0, 6), (HUGE, 1), (1, HUGE)]), 6).all()


def test_the_last_query_stands_at_the_last_key_when_earlier_keys_were_kept():
    """Two new queries after four kept keys are positions 4 and 5."""
    assert visible(Mask.causal(), 2, keys=6).tolist() == [[True] * 5 + [False], [True] * 6]
    assert visible(Mask.window(2), 2, keys=6).long().tolist() == [[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1]]
    assert visible(Mask.document([4, 2]), 2, keys=6).long().tolist() == [[0, 0, 0, 0, 1, 1]] * 2
    assert (~visible(Mask.blocking([(5, 1), (1, 1)]), 2, keys=6)).nonzero().tolist() == [[1, 1]]


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (2, 6), (1, 4)])
def test_the_causal_rule_spelled_out_is_the_causal_tensor(queries: int, keys: int):
    spelled = Visibility(causal=True).rows(torch.arange(queries), queries, keys)
    assert spelled is not None
    assert torch.equal(spelled, visible(Mask.causal(), queries, keys=keys))


def test_rows_of_a_visibility_are_the_rows_of_the_whole():
    whole = torch.rand(2, 3, 7, 7, generator=_seeded(0)) > 0.5
    rows = torch.tensor([6, 0, 3])
    both = Visibility(causal=True, tensor=whole).rows(rows, 7, 7)
    assert both is not None
    assert torch.equal(both, (whole & torch.ones(7, 7).tril().bool())[..., rows, :])
    shared = Visibility(tensor=whole[..., :1, :]).rows(rows, 7, 7)
    assert shared is not None
    assert torch.equal(shared, whole[..., :1, :])
    assert Visibility().rows(rows, 7, 7) is None


def test_identical_keys_share_attention_evenly_over_the_visible_past():
    """Equal scores: query t gives 1/(t + 1) to each of the t + 1 keys it sees."""
    q, k = torch.randn(1, 4, 6, 8, generator=_seeded(0)), torch.ones(1, 4, 6, 8)
    weights = attention_weights(q, k, mask=Mask.causal())
    expected = (torch.ones(6, 6).tril() / torch.arange(1.0, 7.0)[:, None]).expand(1, 4, 6, 6)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-7)


@settings(deadline=None)
@given(st.data())
def test_and_shows_what_both_show_and_never_more(data: st.DataObject):
    first, second, native = data.draw(masks_for(5)), data.draw(masks_for(5)), data.draw(booleans(2, 3, 5, 5))
    for site in (Site("encoder", 0), Site("decoder", 1)):
        apart = first.visible(site, native, heads=3) & second.visible(site, native, heads=3)
        assert torch.equal((first & second).visible(site, native, heads=3).expand(2, 3, 5, 5), apart.expand(2, 3, 5, 5))


@settings(deadline=None)
@given(st.data())
def test_and_commutes_in_effect(data: st.DataObject):
    first, second, native = data.draw(masks_for(5)), data.draw(masks_for(5)), data.draw(booleans(2, 3, 5, 5))
    assert torch.equal(
        (first & second).visible(ENCODER, native, heads=3), (second & first).visible(ENCODER, native, heads=3)
    )


@settings(deadline=None)
@given(st.data())
def test_native_and_another_never_shows_what_native_hides(data: st.DataObject):
    native, other = data.draw(booleans(2, 3, 5, 5)), data.draw(masks_for(5))
    seen = (Mask.native() & other).visible(ENCODER, native, heads=3)
    assert not (seen & ~native).any()
    assert torch.equal(Mask.native().visible(ENCODER, native), native)


@settings(deadline=None)
@given(st.data())
def test_padding_is_hidden_under_every_mask(data: st.DataObject):
    native, real = data.draw(booleans(2, 3, 5, 5)), data.draw(booleans(2, 5))
    seen = data.draw(masks_for(5)).visible(ENCODER, native, real, heads=3)
    assert not (seen & ~real[:, None, None, :]).any()


def test_a_foreign_mask_replaces_what_the_model_would_show():
    causal = torch.ones(6, 6).tril().bool()
    assert Mask.bidirectional().visible(DECODER, causal).all()
    assert torch.equal(Mask.causal().visible(ENCODER, torch.ones(6, 6).bool())[0, 0], causal)


def test_a_foreign_mask_keeps_padding_and_nothing_else_of_the_native_one():
    real = torch.tensor([[True, True, True, False], [False, True, True, True]])
    native = torch.ones(4, 4).tril().bool() & real[:, None, None, :]
    seen = Mask.bidirectional().visible(DECODER, native, real)
    assert torch.equal(seen.expand(2, 1, 4, 4), real[:, None, None, :].expand(2, 1, 4, 4))


@settings(deadline=None)
@given(st.data())
def test_cross_attention_is_left_alone(data: st.DataObject):
    native = data.draw(booleans(2, 1, 3, 5))
    mask = data.draw(masks_for(5))
    assert torch.equal(mask.visible(CROSS, native), native)
    own = Visibility(tensor=native)
    assert mask.resolve(CROSS, own, None, (3, 3, 5), CPU) is own


def test_only_layers_leaves_the_other_layers_their_own_mask():
    native = torch.rand(1, 1, 5, 5, generator=_seeded(1)) > 0.5
    mask = Mask.causal().only(layers=[1])
    assert torch.equal(mask.visible(Site("encoder", 0), native), native)
    assert torch.equal(mask.visible(Site("encoder", 1), native)[0, 0], torch.ones(5, 5).tril().bool())


def test_only_heads_leaves_the_other_heads_their_own_mask():
    native = torch.ones(4, 4).bool()
    seen = Mask.window(1).only(heads=[2]).visible(ENCODER, native, heads=3)
    assert seen.shape == (1, 3, 4, 4)
    assert seen[0, :2].all()
    assert torch.equal(seen[0, 2], torch.eye(4).bool())


def test_only_twice_limits_to_what_both_name():
    twice = Mask.causal().only(layers=[0, 1, 2], heads=[0, 1]).only(layers=[1, 2, 3], heads=[1])
    assert twice == Mask.causal().only(layers=[1, 2], heads=[1])


@pytest.mark.parametrize("nowhere", [{"heads": []}, {"layers": []}])
def test_a_mask_limited_to_nothing_leaves_everything_as_it_is(nowhere: dict[str, list[int]]):
    mask = Mask.causal().only(**nowhere)
    own = Visibility(tensor=torch.ones(1, 1, 4, 4).bool())
    assert own.tensor is not None
    assert torch.equal(mask.visible(ENCODER, own.tensor), own.tensor)
    assert mask.resolve(ENCODER, own, None, (2, 4, 4), CPU) is own


def test_only_reaches_into_every_part_of_a_composed_mask():
    mask = (Mask.causal() & Mask.window(2)).only(layers=[1])
    assert mask == Mask.causal().only(layers=[1]) & Mask.window(2).only(layers=[1])
    assert visible(mask, 5).all()


def test_different_heads_can_have_different_masks():
    mask = Mask.causal().only(heads=[0]) & Mask.window(1).only(heads=[1])
    seen = mask.visible(ENCODER, torch.ones(4, 4).bool(), heads=2)[0]
    assert torch.equal(seen[0], torch.ones(4, 4).tril().bool())
    assert torch.equal(seen[1], torch.eye(4).bool())


def test_a_head_that_does_not_exist_is_refused():
    with pytest.raises(MaskError, match="Head 4 does not exist: this layer has heads 0 to 3"):
        Mask.causal().only(heads=[4]).visible(ENCODER, torch.ones(3, 3).bool(), heads=4)


def test_equal_masks_are_one_cache_key():
    assert Mask.window(3) == Mask.window(3)
    assert len({Mask.window(3), Mask.parse("window:3"), Mask.window(4), Mask.prefix(3), Mask.causal()}) == 4
    assert Mask.blocking([(1, 2), (0, 1)]) == Mask.blocking([(0, 1), (1, 2), (0, 1)])
    assert hash(Mask.causal() & Mask.window(2)) == hash(Mask.causal() & Mask.window(2))


def test_masks_that_differ_in_rule_or_reach_are_different_keys():
    different = [
        Mask.native(),
        Mask.bidirectional(),
        Mask.causal(),
        Mask.causal().only(layers=[0]),
        Mask.causal().only(heads=[0]),
        Mask.native() & Mask.causal(),
    ]
    assert len(set(different)) == len(different)


def test_saying_the_same_twice_says_it_once():
    assert Mask.causal() & Mask.causal() == Mask.causal()
    assert Mask.native() & Mask.native() == Mask.native()


def test_only_native_is_native():
    assert Mask.native().is_native
    assert (Mask.native() & Mask.native()).is_native
    assert not (Mask.native() & Mask.window(2)).is_native
    assert not Mask.bidirectional().is_native


@pytest.mark.parametrize(
    ("mask", "name", "spec"),
    [
        (Mask.native(), "as trained", "native"),
        (Mask.bidirectional(), "BERT-style (bidirectional)", "bidirectional"),
        (Mask.causal(), "GPT-style (causal)", "causal"),
        (Mask.prefix(4), "prefix of 4", "prefix:4"),
        (Mask.window(3), "window of 3", "window:3"),
        (Mask.document([2, 3]), "separate documents of 2, 3", "document:2,3"),
        (Mask.blocking([(4, 2)]), "1 blocked pair", "blocking:4>2"),
        (Mask.blocking([(4, 2), (0, 1)]), "2 blocked pairs", "blocking:0>1,4>2"),
        (Mask.causal() & Mask.window(3), "GPT-style (causal) and window of 3", "causal & window:3"),
        (Mask.causal().only(layers=[1], heads=[0, 2]), "GPT-style (causal) in layer 1 in head 0, 2", "causal"),
    ],
)
def test_a_mask_has_a_name_to_say_and_a_spec_to_write(mask: Mask, name: str, spec: str):
    assert (mask.name, mask.spec) == (name, spec)


@given(st.lists(masks_for(6), min_size=1, max_size=3))
def test_parse_reads_what_spec_writes(parts: list[Mask]):
    text = " & ".join(part.spec for part in parts)
    mask = Mask.parse(text)
    assert Mask.parse(mask.spec) == mask
    assert set(mask.spec.split(" & ")) == set(text.split(" & "))


def test_parse_forgives_spaces():
    assert Mask.parse("  native&blocking:4 > 2 ") == Mask.native() & Mask.blocking([(4, 2)])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "There is no mask ''"),
        ("abc", "There is no mask 'abc'. Say native, bidirectional, causal"),
        ("causal:3", "There is no mask 'causal:3'"),
        ("causal &", "There is no mask ''"),
        ("window:0", "A window must be a whole number of at least 1, not 0."),
        ("window:-3", "A window must be a whole number of at least 1, not -3."),
        ("window", "The mask 'window' does not read: after the colon come whole numbers."),
        ("window:", "does not read"),
        ("window:two", "does not read"),
        ("window:1.5", "does not read"),
        ("prefix:-1", "A prefix must be a whole number of at least 0, not -1."),
        ("document:", "does not read"),
        ("document:3,0", "A document must be a whole number of at least 1, not 0."),
        ("blocking:4", "does not read"),
        ("blocking:4>2>1", "does not read"),
        ("blocking:-4>2", "A query must be a whole number of at least 0, not -4."),
        ("blocking:4>-2", "A key must be a whole number of at least 0, not -2."),
    ],
)
def test_parse_refuses_with_a_sentence(text: str, sentence: str):
    with pytest.raises(MaskError) as refusal:
        Mask.parse(text)
    assert sentence in str(refusal.value)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "3", None])
def test_a_window_that_is_no_positive_whole_number_is_refused(wrong: object):
    with pytest.raises(MaskError, match="A window must be a whole number of at least 1, not "):
        Mask.window(wrong)  # type: ignore[arg-type]


def test_a_negative_layer_is_refused():
    with pytest.raises(MaskError, match="A layer or head must be a whole number of at least 0, not -1"):
        Mask.causal().only(layers=[-1])


@pytest.mark.parametrize("lengths", [[2, 3], [7], [2, HUGE], []])
def test_document_lengths_that_do_not_add_up_are_refused(lengths: list[int]):
    with pytest.raises(MaskError, match=f"add up to {sum(lengths)}, not to the 6 tokens"):
        visible(Mask.document(lengths), 6)


@pytest.mark.parametrize("mask", [Mask.causal(), Mask.bidirectional()])
@pytest.mark.parametrize("padding", [None, torch.ones(2, 5, dtype=torch.bool)])
def test_plain_masks_resolve_to_a_rule_and_never_to_a_tensor(mask: Mask, padding: Tensor | None):
    native = Visibility(tensor=torch.rand(2, 1, 5, 5) > 0.5)
    resolved = mask.resolve(DECODER, native, padding, (3, 5, 5), CPU)
    assert resolved.tensor is None
    assert resolved.causal == (mask == Mask.causal())


def test_native_resolves_to_what_the_model_asked_for():
    own = Visibility(causal=True, tensor=torch.ones(1, 1, 5, 5).bool())
    assert Mask.native().resolve(DECODER, own, torch.tensor([[False] * 5]), (3, 5, 5), CPU) is own
    assert Mask.causal().only(layers=[7]).resolve(DECODER, own, torch.tensor([[False] * 5]), (3, 5, 5), CPU) is own


def test_plain_masks_with_padding_resolve_to_a_tensor_that_hides_it():
    real = torch.tensor([[False, True, True]])
    resolved = Mask.causal().resolve(DECODER, Visibility(), real, (2, 3, 3), CPU)
    assert resolved.tensor is not None
    assert resolved.tensor[0, 0].tolist() == [[False, False, False], [False, True, False], [False, True, True]]


@settings(deadline=None)
@given(st.data())
def test_resolving_and_asking_agree(data: st.DataObject):
    """Rule or tensor, spelled out it is what `visible` says."""
    mask, causal, real = data.draw(masks_for(5)), data.draw(st.booleans()), data.draw(st.none() | booleans(2, 5))
    native = Visibility(causal, data.draw(st.none() | booleans(2, 3, 5, 5)))
    if real is not None:  # a model hides its own padding
        shown = real[:, None, None, :]
        native = Visibility(causal, shown if native.tensor is None else native.tensor & shown)
    own = native.rows(torch.arange(5), 5, 5)
    full = torch.ones(2, 3, 5, 5, dtype=torch.bool)
    asked = mask.visible(DECODER, full if own is None else own.expand_as(full), real, heads=3)
    resolved = mask.resolve(DECODER, native, real, (3, 5, 5), CPU).rows(torch.arange(5), 5, 5)
    assert torch.equal(full if resolved is None else resolved.expand_as(full), asked.expand_as(full))
