"""What holds of every store: who sees a pattern, what passes, in what order, and what a change leaves."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from reasonblocks.exceptions import BadAnswer, ConfigError
from reasonblocks.requests import Retrieve
from reasonblocks.types import Pattern, Tier
from reasonblocks.util.memo import Memo
from tests.core.stores.kinds import KINDS, Maker, Store
from tests.core.stores.world import Broken, Numbers, answer, pattern, plain_search, request
from tests.whole import QUICK_EXAMPLES, WHOLE

NUMBERS = st.lists(st.integers(-2, 3), min_size=4, max_size=4).map(lambda numbers: " ".join(map(str, numbers)))
TIERS: st.SearchStrategy[Tier] = st.sampled_from(["e1", "e2", "e2", "e3"])
ORGS = st.sampled_from(["acme", "other", "shared"])
TYPES = st.sampled_from([None, None, "loop", "drift"])
FOR_KINDS = st.sampled_from([(), (), ("waiting",), ("cycle", "repeat")])
GATES = st.sampled_from([None, None, None, 0.0, 0.3, 0.7, 0.8, 0.95, 1.0])
STATS = st.sampled_from([{}, {}, {"recovered": 5}, {"recovered": 1, "not_recovered": 9}])


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    tier = draw(TIERS)
    org = draw(ORGS if tier == "e1" else st.one_of(st.none(), ORGS))
    failure_type = draw(TYPES)
    return Pattern(
        id=f"p{draw(st.integers(0, 11)):02}",
        tier=tier,
        fields={"instruction": "Look."},
        org_id=org,
        failure_type=failure_type,
        exemplars=tuple(draw(st.lists(NUMBERS, min_size=1, max_size=3))),
        gate_threshold=draw(GATES),
        stats=draw(STATS),
        requires_signal=tier == "e2" and failure_type is not None and draw(st.booleans()),
        kinds=draw(FOR_KINDS) if tier == "e2" else (),
        off=draw(st.sampled_from([False, False, False, True])),
    )


REQUESTS = st.builds(
    request,
    TIERS,
    NUMBERS,
    org_id=ORGS,
    failure_type=TYPES,
    kind=st.sampled_from([None, "waiting", "repeat", "error"]),
    top_k=st.sampled_from([1, 2, 5, 50]),
    similarity=st.sampled_from([0.0, 0.5, 0.7, 0.8, 1.0]),
)


SEARCHES = (
    st.lists(patterns(), max_size=30),
    st.lists(patterns(), max_size=5),
    st.lists(REQUESTS, min_size=1, max_size=12),
)
CHECKED = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.mark.parametrize("stores", ["memory", "file"], indirect=True)
@settings(CHECKED, max_examples=100 if WHOLE else QUICK_EXAMPLES)
@given(*SEARCHES)
def test_a_local_store_gives_what_a_plain_search_gives(
    stores: Maker, added: list[Pattern], layer: list[Pattern], asked: list[Retrieve]
) -> None:
    found, plain = _both(stores, added, layer, asked)
    assert found == plain


@pytest.mark.parametrize("stores", [kind for kind in KINDS if kind not in ("memory", "file")], indirect=True)
@settings(CHECKED, max_examples=8, phases=[Phase.explicit, Phase.generate])  # each makes a store of 150 MB
@given(*SEARCHES)
def test_every_other_store_gives_what_a_plain_search_gives(
    stores: Maker, added: list[Pattern], layer: list[Pattern], asked: list[Retrieve]
) -> None:
    found, plain = _both(stores, added, layer, asked)
    assert found == plain


def _both(stores: Maker, added: list[Pattern], layer: list[Pattern], asked: list[Retrieve]) -> tuple[Any, Any]:
    own = list({one.id: one for one in added}.values())
    under = list({one.id: one for one in layer}.values())
    store = stores.new(own, under)
    found = [answer(store.search(one)) for one in asked]
    store.close()
    return found, [plain_search(own, one, under) for one in asked]


@pytest.mark.skipif("qdrant-server" in KINDS, reason="the contract has run against the server")
def test_a_real_server_keeps_the_contract() -> None:
    pytest.skip("QDRANT_URL names no Qdrant server to run the contract against")


def test_of_many_equals_the_first_by_id_are_given(stores: Maker) -> None:
    store = stores.new(pattern(f"p{number:03}") for number in reversed(range(150)))
    assert answer(store.search(request(top_k=3))) == [("p000", 1.0), ("p001", 1.0), ("p002", 1.0)]


def test_a_low_gate_of_its_own_is_found_behind_many_that_do_not_pass(stores: Maker) -> None:
    near = [pattern(f"p{number:03}", "e2", "1 1") for number in range(120)]
    store = stores.new([*near, pattern("low", "e2", "1 3", gate_threshold=0.1)])
    assert answer(store.search(request(similarity=0.99)))[0][0] == "low"


def test_what_does_not_help_comes_after_all_that_pass(stores: Maker) -> None:
    useless = [pattern(f"a{number}", stats={"not_recovered": 9}) for number in range(40)]
    store = stores.new([*useless, pattern("b", "e2", "1 1")])
    assert [name for name, _ in answer(store.search(request()))] == ["b", "a0"]


def test_an_empty_store_finds_nothing(stores: Maker) -> None:
    store = stores.new()
    assert [store.search(request(tier)) for tier in ("e1", "e2", "e3")] == [(), (), ()]


def test_no_org_gets_anothers_however_much_is_asked_for(stores: Maker) -> None:
    store = stores.new(
        pattern(f"{tier}-{org}", tier, org_id=org) for tier in ("e1", "e2", "e3") for org in ("acme", "b")
    )
    found = [store.search(request(tier, org_id="b", top_k=1_000, similarity=0.0)) for tier in ("e1", "e2", "e3")]
    assert {trace.pattern.org_id for traces in found for trace in traces} == {"b"}


def test_an_org_may_be_called_as_that_of_nobody_is_stored(stores: Maker) -> None:
    store = stores.new([pattern("mine", org_id="shared"), pattern("all")])
    assert [trace.pattern.id for trace in store.search(request(org_id="acme"))] == ["all"]


def test_a_search_that_names_a_failure_type_finds_that_and_none(stores: Maker) -> None:
    store = stores.new([pattern("a", failure_type="loop"), pattern("b", failure_type="drift"), pattern("c")])
    found = [answer(store.search(request(failure_type=named, top_k=9))) for named in ("loop", None)]
    assert found == [[("a", 1.0), ("c", 1.0)], [("a", 1.0), ("b", 1.0), ("c", 1.0)]]


def test_one_that_waits_for_its_failure_type_is_found_by_nothing_else(stores: Maker) -> None:
    waits = pattern("a", failure_type="loop", requires_signal=True, gate_threshold=0.1)
    under = replace(waits, id="b")
    store = stores.new([waits], [under])
    found = [answer(store.search(request(failure_type=named))) for named in (None, "drift", "loop")]
    assert found == [[], [], [("a", 1.0), ("b", 1.0)]]


def test_one_that_fits_the_kind_is_found_behind_many_that_do_not(stores: Maker) -> None:
    near = [pattern(f"p{number:03}", kinds=("waiting",)) for number in range(120)]
    store = stores.new([*near, pattern("fits", "e2", "1 1", kinds=("cycle",))])
    assert [name for name, _ in answer(store.search(request(kind="cycle")))] == ["fits"]


def test_one_that_no_longer_waits_is_found_by_any_search(stores: Maker) -> None:
    store = stores.new([pattern("a", failure_type="loop", requires_signal=True)])
    store.add([pattern("a", failure_type="loop")])
    assert answer(store.search(request())) == [("a", 1.0)]


def test_an_awaited_search_finds_the_same(stores: Maker) -> None:
    if stores.kind == "qdrant-local":
        pytest.skip("the local mode of the client takes one thread")
    store = stores.new([pattern("a"), pattern("b", "e3")], [pattern("c")])

    async def both() -> list[Any]:
        found = [answer(await store.asearch(request(tier))) for tier in ("e2", "e3")]
        if hasattr(store, "aclose"):
            await store.aclose()
        return found

    assert asyncio.run(both()) == [answer(store.search(request(tier))) for tier in ("e2", "e3")]


def test_the_vector_of_a_query_is_kept_in_the_runs_memo(stores: Maker) -> None:
    numbers, memo = Numbers(), Memo()
    store = stores.new([pattern("a")], embedder=numbers)
    before = numbers.texts
    for _ in range(3):
        store.search(request(memo=memo))
    assert numbers.texts - before == 1


# ------------------------------------------------------------ layers


def test_a_pattern_hides_that_of_the_layer(stores: Maker) -> None:
    store = stores.new([pattern("a", "e2", "0 1")], [pattern("a", "e2", "1"), pattern("b", "e2", "1")])
    assert [trace.pattern.id for trace in store.search(request(top_k=9))] == ["b"]


@pytest.mark.parametrize("tier", ["e2", "e3"])
def test_one_that_is_off_switches_that_of_the_layer_off(stores: Maker, tier: Any) -> None:
    store = stores.new([pattern("a", tier, off=True)], [pattern("a", tier)])
    assert store.search(request(tier)) == ()


def test_the_layer_shows_again_when_what_hid_it_is_removed(stores: Maker) -> None:
    store = stores.new([pattern("a", off=True)], [pattern("a")])
    before = answer(store.search(request()))
    store.remove("a")
    assert (before, answer(store.search(request()))) == ([], [("a", 1.0)])


def test_what_is_added_later_hides_the_layer_too(stores: Maker) -> None:
    store = stores.new(layer=[pattern("a")])
    store.search(request())
    store.add([pattern("a", off=True)])
    assert store.search(request()) == ()


def test_a_layer_is_not_the_stores_own(stores: Maker) -> None:
    store = stores.new(layer=[pattern("a")])
    assert (len(store), store.list("acme"), store.remove("a")) == (0, (), False)


# ------------------------------------------------------------ changes


def test_what_is_stored_comes_back_whole(stores: Maker) -> None:
    fields = {"diagnosis": "Ü \u2028 ✓", "trigger_state": {"trajectory_description": "x"}}
    given_ = pattern(
        "a/ü 1", "e2", "1 2", "3 4", fields=fields, org_id="acme", failure_type="loop", model_family="gpt",
        gate_threshold=0.5, requires_signal=True, source_trace_id="t", revision=7, kinds=("waiting", "cycle"),
        created_at="2020-01-01T00:00:00+00:00", stats={"injected": 3},
    )  # fmt: skip
    assert stores.new([given_]).get("a/ü 1") == given_


def test_a_store_says_when_a_pattern_came(stores: Maker) -> None:
    stored = stores.new([pattern("a")]).get("a")
    assert stored is not None
    assert str(stored.created_at).endswith("+00:00")


def _revisions(store: Store, *given_: Pattern) -> list[int]:
    found = []
    for one in given_:
        store.add([one])
        stored = store.get(one.id)
        found.append(stored.revision if stored else 0)
    return found


def test_a_different_pattern_takes_the_next_revision(stores: Maker) -> None:
    store = stores.new()
    assert _revisions(store, pattern("a"), pattern("a"), pattern("a", "e2", "2")) == [1, 1, 2]


def test_a_replaced_pattern_is_found_by_its_new_exemplars_only(stores: Maker) -> None:
    store = stores.new([pattern("a", "e2", "1", "0 1", "0 0 1")])
    store.add([pattern("a", "e2", "0 0 0 1")])
    found = [len(store.search(request("e2", text))) for text in ("1", "0 1", "0 0 1", "0 0 0 1")]
    assert found == [0, 0, 0, 1]


def test_a_removed_pattern_is_gone(stores: Maker) -> None:
    store = stores.new([pattern("a", "e2", "1", "1 1"), pattern("b", "e3")])
    removed = [store.remove("a"), store.remove("a")]
    assert (removed, len(store), store.get("a"), store.search(request())) == ([True, False], 1, None, ())


def test_counting_changes_nothing_but_the_counts(stores: Maker) -> None:
    numbers = Numbers()
    store = stores.new([pattern("a")], embedder=numbers)
    before, texts = store.get("a"), numbers.texts
    store.count(["a", "a", "nobody"], "injected")
    store.count(["a"], "recovered")
    after = store.get("a")
    assert before is not None
    assert after is not None
    assert (after.stats, after.revision, numbers.texts) == ({"injected": 2, "recovered": 1}, before.revision, texts)


def test_a_pattern_loses_its_place_as_soon_as_it_was_counted_out(stores: Maker) -> None:
    store = stores.new([pattern("a"), pattern("b")])
    before = answer(store.search(request()))[0]
    store.count(["a"] * 9, "not_recovered")
    assert (before, answer(store.search(request()))[0]) == (("a", 1.0), ("b", 1.0))


def test_only_what_is_known_is_counted(stores: Maker) -> None:
    with pytest.raises(ConfigError, match="did you mean 'injected'"):
        stores.new([pattern("a")]).count(["a"], "inject")


def test_a_list_is_of_one_org_and_of_none(stores: Maker) -> None:
    store = stores.new([pattern("b"), pattern("a", "e1"), pattern("c", org_id="b"), pattern("d", "e3", off=True)])
    assert [one.id for one in store.list("acme")] == ["a", "b", "d"]


def test_a_list_is_narrowed_and_shows_the_layer_if_asked(stores: Maker) -> None:
    store = stores.new([pattern("a", failure_type="loop"), pattern("b")], [pattern("c", failure_type="loop")])
    found = store.list("acme", "e2", failure_type="loop", layer=True), store.list("acme", "e3")
    assert ([one.id for one in found[0]], found[1]) == (["a", "c"], ())


def test_one_that_cannot_be_stored_keeps_all_out(stores: Maker) -> None:
    store = stores.new([pattern("a")])
    with pytest.raises(ConfigError, match="pattern 'c'"):
        store.add([pattern("b"), pattern("c", exemplars=())])
    assert len(store) == 1


def test_what_was_added_is_there_when_it_is_opened_again(stores: Maker) -> None:
    if not stores.is_lasting:
        pytest.skip("what is in memory only is gone with the store")
    first = stores.at("again", [pattern("a", "e2", "1 1"), pattern("b", "e3")])
    first.count(["a"], "injected")
    before = [*first.search(request()), *first.search(request("e3"))]
    first.close()
    second = stores.at("again")
    assert [*second.search(request()), *second.search(request("e3"))] == before


# ------------------------------------------------------------ embedders


@pytest.mark.parametrize(
    ("given_", "error"),
    [
        (RuntimeError("no"), RuntimeError),
        ((float("nan"), 0, 0, 0), BadAnswer),
        ((float("inf"), 0, 0, 0), BadAnswer),
        ((1.0, 0.0), BadAnswer),
        ("text", BadAnswer),
    ],
)
def test_a_broken_embedder_moves_nothing(stores: Maker, given_: Any, error: type[Exception]) -> None:
    numbers = Broken()
    store = stores.new([pattern("a")], embedder=numbers)
    numbers.answer = given_
    with pytest.raises(error):
        store.add([pattern("b"), pattern("a", "e2", "2")])
    with pytest.raises(error):
        store.search(request())
    numbers.answer = None
    assert (len(store), answer(store.search(request()))) == (1, [("a", 1.0)])


def test_an_embedder_that_loses_a_text_is_refused_by_its_name(stores: Maker) -> None:
    class Losing(Numbers):
        def embed_many(self, texts: Any) -> Any:
            return super().embed_many(texts)[1:]

    store = stores.new(embedder=Losing("loser"))
    with pytest.raises(BadAnswer, match="embedder 'loser'"):
        store.add([pattern("a"), pattern("b")])
    assert len(store) == 0


def test_a_text_of_which_the_embedder_knows_nothing_is_like_no_other(stores: Maker) -> None:
    store = stores.new([pattern("a", "e2", "0 0"), pattern("b")])
    assert [trace.pattern.id for trace in store.search(request("e2", "0"))] == []
