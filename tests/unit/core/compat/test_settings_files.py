"""Settings files of Reeve and Hermes as their pages print them, and what such files may not hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recallite import Memory, NewRecord, Settings, tools
from recallite.compat import load_settings
from recallite.errors import InvalidInput
from recallite.model.settings import WritePolicy, resolve_profile

REEVE = """
{
  "memorySearch": {
    "temporalDecay": {
      "halfLife": 30,    // Half-life in days (memories lose half weight per 30 days)
      "floor": 0.5      // Minimum weight (old memories never go below 50%)
    }
  }
}
"""
REEVE_MERGE = """
{
  "memorySearch": {
    "mergeStrategy": "latest"  // "latest" | "append" | "replace"
  }
}
"""
HERMES = """
# ~/.hermes/config.yaml
memory:
  recall:
    semantic_weight: 0.5
    recency_weight: 0.3
    importance_weight: 0.2
    recency_half_life_days: 30
"""


@pytest.fixture
def load(tmp_path):
    """The settings of a file with this name and text."""

    def loaded(name: str, text: str) -> Settings:
        file = tmp_path / name
        file.write_text(text)
        return load_settings(file)

    return loaded


def test_reeve_json_is_read_as_printed(load):
    settings = load("reeve.json", REEVE)
    assert settings.profile == resolve_profile("reeve")
    assert settings.write_policy == WritePolicy(merge_strategy="latest", topic_cosine=0.92)
    changed = load("reeve.json", REEVE.replace("30,", "12,").replace("0.5 ", "0.25 "))
    assert (changed.profile.half_life_days, changed.profile.decay_floor) == (12, 0.25)


@pytest.mark.parametrize("strategy", ["latest", "append", "replace"])
def test_reeve_merge_strategy_is_read_as_printed(load, strategy):
    settings = load("reeve.json", REEVE_MERGE.replace('"latest"  //', f'"{strategy}"  //'))
    assert settings.profile.name == "reeve"
    assert settings.write_policy.merge_strategy == strategy
    told = [NewRecord("Dana lives in Oslo", topic="home"), NewRecord("Dana lives in Bergen", topic="home")]
    with Memory(":memory:", settings=settings) as memory:
        ids = [memory.remember(text).id for text in told]
        hits = {hit.text for hit in memory.recall("Where does Dana live?")}
        versions = [record.text for record in memory.history(ids[0])]
    bergen, both = {"Dana lives in Bergen"}, {"Dana lives in Oslo", "Dana lives in Bergen"}
    assert hits == (both if strategy == "append" else bergen)
    assert (len({*ids}), len(versions)) == {"append": (2, 1), "latest": (1, 2), "replace": (1, 1)}[strategy]


# An old and a new statement, a question, and whether the change is certain and said.
CHANGES = [
    ("Our dentist is Dr. Lem", "Our dentist is Dr. Ito now", "Who is our dentist?", True),
    ("Dana lives in Oslo", "Dana lives in Bergen now", "Where does Dana live?", True),
    ("The rent is 900 euros", "The rent is 950 euros", "How much is the rent?", False),
    ("We use Jenkins", "We use GitHub Actions now", "What do we use for CI?", False),
    ("User prefers vim", "User prefers emacs now", "Which editor does the user prefer?", False),
    ("User prefers dark mode", "User prefers light mode", "Which mode does the user prefer?", False),
]


@pytest.mark.parametrize("strategy", ["latest", "append", "replace"])
@pytest.mark.parametrize(
    ("told", "old", "new", "question", "certain"),
    [("one by one", *change) for change in CHANGES] + [("many", *change) for change in CHANGES[1::3]],
)
def test_reeve_without_a_topic_the_merge_strategy_decides_what_becomes_of_a_change(
    load, strategy, told, old, new, question, certain
):
    settings = load("reeve.json", REEVE_MERGE.replace('"latest"  //', f'"{strategy}"  //'))
    fillers = [f"Shelf {n} holds box {n}" for n in range(80)] if told == "many" else []
    items = [NewRecord(old, created_at=datetime.now(UTC) - timedelta(days=10)), *fillers, new]
    with Memory(":memory:", settings=settings) as memory:
        ids = [memory.remember(item).id for item in items] if told == "one by one" else memory.remember_many(items)
        memory.store.catch_up()
        hits = [hit.text for hit in memory.recall(question, limit=100) if hit.text in (old, new)]
        found = tools.call("memory", {"action": "search", "query": question}, memory=memory)["results"]
        versions = [record.text for record in memory.history(ids[-1])]
        former = memory.get(ids[0])
    if strategy == "append":
        assert {*hits} == {old, new}
        assert former.superseded_by == ()
    elif strategy == "replace" and certain:
        assert (hits, versions, ids[0]) == ([new], [new], ids[-1])
    else:
        assert (hits, versions) == ([new, old], [old, new])
        assert former.superseded_by == (ids[-1],)
    if strategy != "append":
        assert found[0]["text"] == new


@pytest.mark.parametrize("strategy", ["latest", "replace"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("User prefers tea", "User prefers window seats"),
        ("User prefers dark mode", "User prefers concise answers"),
        ("The team prefers squash merges", "The team prefers async standups"),
        ("User prefers vim", "Ada prefers emacs now"),
        ("Dana owns a boat", "Dana owns a motorbike now"),
        ("User likes tea", "User likes coffee"),
    ],
)
def test_reeve_what_holds_beside_another_is_no_change(load, strategy, old, new):
    settings = load("reeve.json", REEVE_MERGE.replace('"latest"  //', f'"{strategy}"  //'))
    with Memory(":memory:", settings=settings) as memory:
        memory.remember(old)
        assert memory.remember(new).supersedes == ()
        assert {record.text for record in memory.list()} == {old, new}


def test_replace_purges_nothing_before_the_change_happens(load):
    settings = load("reeve.json", REEVE_MERGE.replace('"latest"  //', '"replace"  //'))
    with Memory(":memory:", settings=settings) as memory:
        memory.remember("The office is in Turin")
        later = (datetime.now(UTC) + timedelta(days=40)).date().isoformat()
        memory.remember(f"The office moves to Milan on {later}")
        assert "The office is in Turin" in [record.text for record in memory.list()]


def test_what_a_merge_strategy_implies_can_be_set_otherwise(load):
    text = '{"memorySearch": {"mergeStrategy": "append"}%s}'
    assert load("a.json", text % "").write_policy.supersede_confidence is None
    assert load("b.json", text % ', "write": {"supersede_confidence": 0.9}').write_policy.supersede_confidence == 0.9


def test_other_sections_of_another_systems_file_are_left_to_it(load):
    hermes = load("config.yaml", "model:\n  name: big\nmemory:\n  enabled: true\n  recall:\n    recency_weight: 0.4\n")
    assert hermes == Settings(profile=resolve_profile("hermes").override({"recency_weight": 0.4}))
    reeve = load("reeve.json", '{"agents": {"a": 1}, "memorySearch": {"mergeStrategy": "append"}}')
    assert reeve.write_policy.merge_strategy == "append"


def test_hermes_config_yaml_is_read_as_printed(load):
    settings = load("config.yaml", HERMES)
    assert settings.profile == resolve_profile("hermes")
    assert settings.write_policy.recognise_recalled
    changed = load("config.yml", HERMES.replace("0.5", "1").replace("_days: 30", "_days: 7.5"))
    assert (changed.profile.semantic_weight, changed.profile.half_life_days) == (1, 7.5)


def test_sections_of_other_systems_go_with_our_own(load):
    text = '{"durability": "normal", "profile": {"limit": 4}, "memorySearch": {"temporalDecay": {"halfLife": 9}}}'
    wanted = resolve_profile("reeve").override({"limit": 4, "half_life_days": 9})
    assert load("reeve.json", text) == Settings(durability="normal", profile=wanted)


def test_a_memory_opened_with_a_file_recalls_by_it(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(HERMES + "embedder: none\n")
    with Memory(":memory:", settings=load_settings(file)) as memory:
        memory.remember_many(f"apple {n}" for n in range(9))
        hits = memory.recall("apple")
        assert len(hits) == 5
        assert hits[0].score == pytest.approx(0.5 + 0.3 + 0.1, abs=1e-6)


def test_our_own_files_are_read_too(load):
    assert load("own.toml", 'durability = "normal"') == Settings(durability="normal")
    with pytest.raises(InvalidInput, match="'colour' is no setting"):
        load("own.toml", "colour = 3")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", '{"memorySearch": {"temporalDecay": {"halflife": 3}}}', ["'memorySearch.temporalDecay.halflife'"]),
        ("a.json", '{"memorySearch": {"merge": "latest"}}', ["'memorySearch.merge'", "'latest'", "mergeStrategy"]),
        ("a.yaml", "memory: {recall: {weight: 1}}", ["'memory.recall.weight'", "semantic_weight"]),
        ("a.yaml", "memory: {session: {}}", ["'memory.session'", "recall"]),
        ("a.json", '{"memorySearch": {"temporalDecay": {"halfLife": "x"}}}', ["temporalDecay.halfLife", "'x'"]),
        ("a.json", '{"memorySearch": {"temporalDecay": {"floor": 1.5}}}', ["memorySearch.temporalDecay.floor", "1.5"]),
        ("a.json", '{"memorySearch": {"temporalDecay": 30}}', ["memorySearch.temporalDecay is 30", "halfLife"]),
        ("a.json", '{"memorySearch": {"mergeStrategy": "newest"}}', ["mergeStrategy", "'newest'", "latest"]),
        ("a.json", '{"memorySearch": null}', ["memorySearch is None", "temporalDecay"]),
        ("a.yaml", "memory: {recall: {semantic_weight: yes}}", ["memory.recall.semantic_weight", "True"]),
        ("a.yaml", "memory: {recall: {recency_weight: -0.1}}", ["memory.recall.recency_weight", "-0.1", "at least 0"]),
        ("a.yaml", "memory: [recall]", ["memory is ['recall']", "recall"]),
        ("a.json", '{"memorySearch": {"temporalDecay": {"halfLife": Infinity}}}', ["temporalDecay.halfLife", "inf"]),
        ("a.json", '{"memorySearch": {"temporalDecay": {"floor": NaN}}}', ["temporalDecay.floor", "nan"]),
        ("a.yaml", "memory: {recall: {semantic_weight: .inf}}", ["memory.recall.semantic_weight", "inf"]),
        ("a.json", '{"profile": "default", "memorySearch": {}}', ["profile is 'default'", "'reeve'"]),
        ("a.json", '{"memory": {}, "memorySearch": {}}', ["memory and memorySearch"]),
        ("a.json", '{"write": {"merge_strategy": "append"}, "memorySearch": {"mergeStrategy": "latest"}}',
         ["memorySearch.mergeStrategy is 'latest'", "write.merge_strategy is 'append'"]),
        ("a.json", '{"profile": {"half_life_days": 3}, "memorySearch": {"temporalDecay": {"halfLife": 4}}}',
         ["half_life_days is 3", "halfLife is 4"]),
        ("a.yaml", "memory: {recall: {semantic_weight: 0, recency_weight: 0, importance_weight: 0}}", ["all 0"]),
    ],
)  # fmt: skip
def test_a_fault_names_the_file_the_key_the_value_and_what_is_allowed(load, tmp_path, name, text, said):
    with pytest.raises(InvalidInput) as raised:
        load(name, text)
    message = str(raised.value)
    assert message.startswith(str(tmp_path / name))
    assert [part for part in said if part not in message] == [], message
