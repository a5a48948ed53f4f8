"""Settings from files: ours, Reeve's and Hermes' as their pages print them, and what such files may not hold."""

from __future__ import annotations

import json

import pytest

from recollect import Memory, Settings
from recollect.errors import InvalidInput
from recollect.policies import Consolidation, WritePolicy
from recollect.profiles import PROFILES
from tests.memory.support import run

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
OURS = """
embedder = "none"
low_memory = true
token_codes = false

[profile]
name = "memweave"
limit = 3
mmr_lambda = 0.7

[write]
merge_strategy = "append"
link_cosine = 0.85

[consolidation]
threshold = 20
"""


@pytest.fixture
def load(tmp_path):
    """The settings of a file with this name and text."""

    def loaded(name: str, text: str | bytes) -> Settings:
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Settings.load(file)

    return loaded


def test_reeve_json_is_read_as_printed(load):
    settings = load("reeve.json", REEVE)
    assert settings.profile == PROFILES["reeve"]
    assert settings.write_policy == WritePolicy(merge_strategy="latest", topic_cosine=0.92)
    changed = load("reeve.json", REEVE.replace("30,", "12,").replace("0.5 ", "0.25 "))
    assert (changed.profile.half_life_days, changed.profile.decay_floor) == (12, 0.25)


@pytest.mark.parametrize("strategy", ["latest", "append", "replace"])
def test_reeve_merge_strategy_is_read_as_printed(load, strategy):
    settings = load("reeve.json", REEVE_MERGE.replace('"latest"  //', f'"{strategy}"  //'))
    assert settings.profile == PROFILES["reeve"]
    assert settings.write_policy == WritePolicy(merge_strategy=strategy, topic_cosine=0.92)


def test_other_sections_of_another_systems_file_are_left_to_it(load):
    hermes = load("config.yaml", "model:\n  name: big\nmemory:\n  enabled: true\n  recall:\n    recency_weight: 0.4\n")
    assert hermes == Settings(profile=PROFILES["hermes"].override({"recency_weight": 0.4}))
    reeve = load("reeve.json", '{"agents": {"a": 1}, "memorySearch": {"mergeStrategy": "append"}}')
    assert reeve.write_policy.merge_strategy == "append"


def test_hermes_config_yaml_is_read_as_printed(load):
    settings = load("config.yaml", HERMES)
    assert settings.profile == PROFILES["hermes"]
    assert settings.write_policy.duplicate_cosine == 0.98
    changed = load("config.yml", HERMES.replace("0.5", "1").replace("_days: 30", "_days: 7.5"))
    assert (changed.profile.semantic_weight, changed.profile.half_life_days) == (1, 7.5)


def test_our_own_names_in_each_format(load):
    wanted = Settings(
        embedder="none", low_memory=True, profile=PROFILES["memweave"].override({"limit": 3, "mmr_lambda": 0.7}),
        write=WritePolicy(link_cosine=0.85), consolidation=Consolidation(threshold=20),
    )  # fmt: skip
    assert load("ours.toml", OURS) == wanted
    for name in ("ours.json", "ours.jsonc", "ours.json5", "ours.yaml"):
        assert load(name, json.dumps(wanted.to_dict())) == wanted
    block = '/* ours */ {"profile": "hermes", // by name\n "durability": "normal",}'
    assert load("ours.json", block) == Settings(profile="hermes", durability="normal")
    assert load("ours.json", "\ufeff{}") == load("ours.yaml", "") == load("ours.toml", "") == Settings()


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(profile="reeve", write=WritePolicy(), durability="normal"),
        Settings(profile=PROFILES["reeve"], write=WritePolicy(merge_strategy="replace", topic_cosine=0.92)),
        Settings(profile=PROFILES["hermes"].override({"halfLife": 3, "long_query_chars": None})),
        Settings(profile=PROFILES["default"].override({"mmr_lambda": 0.3, "spread": 0}), consolidation=Consolidation()),
    ],
    ids=["default", "named", "reeve", "hermes", "changed"],
)
def test_a_dict_is_read_back_as_it_was(settings):
    assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


def test_what_a_table_of_the_profile_leaves_out_stands_as_the_profile_has_it(load):
    settings = load("x.toml", '[profile]\nname = "hermes"\nrecency_half_life_days = 9\n[write]\nlink_cosine = 0.8')
    assert settings.profile == PROFILES["hermes"].override({"half_life_days": 9})
    assert settings.write_policy == WritePolicy(
        duplicate_cosine=0.98, recognise_recalled=True, contradiction_cosine=0.6, link_cosine=0.8
    )


def test_sections_of_other_systems_go_with_our_own(load):
    text = '{"durability": "normal", "profile": {"limit": 4}, "memorySearch": {"temporalDecay": {"halfLife": 9}}}'
    wanted = PROFILES["reeve"].override({"limit": 4, "halfLife": 9})
    assert load("reeve.json", text) == Settings(durability="normal", profile=wanted)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        # unknown keys
        ("a.toml", "colour = 3", ["'colour' is no setting", "3", "durability"]),
        ("a.toml", "[profile]\nspred = 0.5", ["'profile.spred'", "0.5", "spread"]),
        ("a.toml", "[write]\ntopic = 1", ["'write.topic'", "topic_cosine"]),
        ("a.toml", "[consolidation]\nevery = 1", ["'consolidation.every'", "threshold"]),
        ("a.json", '{"memorySearch": {"temporalDecay": {"halflife": 3}}}', ["'memorySearch.temporalDecay.halflife'"]),
        ("a.json", '{"memorySearch": {"merge": "latest"}}', ["'memorySearch.merge'", "'latest'", "mergeStrategy"]),
        ("a.yaml", "memory: {recall: {weight: 1}}", ["'memory.recall.weight'", "semantic_weight"]),
        ("a.yaml", "memory: {session: {}}", ["'memory.session'", "recall"]),
        ("a.yaml", "3: 4", ["'3' is no setting", "4"]),
        # wrong types and values
        ("a.toml", 'durability = "safe"', ["durability", "'safe'", "'full' or 'normal'"]),
        ("a.toml", "low_memory = 1", ["low_memory", "1", "True or False"]),
        ("a.toml", "busy_timeout_ms = -1", ["busy_timeout_ms", "-1"]),
        ("a.toml", "embedder = 3", ["embedder", "3"]),
        ("a.toml", 'profile = "zeus"', ["profile", "'zeus'", "hermes"]),
        ("a.toml", '[profile]\nname = "zeus"', ["profile.name", "'zeus'", "hermes"]),
        ("a.toml", "profile = 3", ["profile", "3"]),
        ("a.toml", 'write = "latest"', ["write is 'latest'", "merge_strategy"]),
        ("a.toml", "[write]\ntopic_cosine = 2", ["write.topic_cosine", "2", "0 to 1"]),
        ("a.toml", "[consolidation]\nthreshold = 0", ["consolidation.threshold", "0", "at least 1"]),
        ("a.json", '{"memorySearch": {"temporalDecay": {"halfLife": "x"}}}', ["temporalDecay.halfLife", "'x'"]),
        ("a.json", '{"memorySearch": {"temporalDecay": {"floor": 1.5}}}', ["memorySearch.temporalDecay.floor", "1.5"]),
        ("a.json", '{"memorySearch": {"temporalDecay": 30}}', ["memorySearch.temporalDecay is 30", "halfLife"]),
        ("a.json", '{"memorySearch": {"mergeStrategy": "newest"}}', ["mergeStrategy", "'newest'", "latest"]),
        ("a.json", '{"memorySearch": null}', ["memorySearch is None", "temporalDecay"]),
        ("a.yaml", "memory: {recall: {semantic_weight: yes}}", ["memory.recall.semantic_weight", "True"]),
        ("a.yaml", "memory: {recall: {recency_weight: -0.1}}", ["memory.recall.recency_weight", "-0.1", "at least 0"]),
        ("a.yaml", "memory: [recall]", ["memory is ['recall']", "recall"]),
        # numbers that are none
        ("a.json", '{"memorySearch": {"temporalDecay": {"halfLife": Infinity}}}', ["temporalDecay.halfLife", "inf"]),
        ("a.json", '{"memorySearch": {"temporalDecay": {"floor": NaN}}}', ["temporalDecay.floor", "nan"]),
        ("a.toml", "[profile]\nspread = nan", ["profile.spread", "nan", "finite"]),
        ("a.toml", "[profile]\nhalf_life_days = inf", ["profile.half_life_days", "inf"]),
        ("a.yaml", "memory: {recall: {semantic_weight: .inf}}", ["memory.recall.semantic_weight", "inf"]),
        # contradictions
        ("a.json", '{"profile": "default", "memorySearch": {}}', ["profile is 'default'", "'reeve'"]),
        ("a.json", '{"memory": {}, "memorySearch": {}}', ["memory and memorySearch"]),
        ("a.json", '{"write": {"merge_strategy": "append"}, "memorySearch": {"mergeStrategy": "latest"}}',
         ["memorySearch.mergeStrategy is 'latest'", "write.merge_strategy is 'append'"]),
        ("a.json", '{"profile": {"half_life_days": 3}, "memorySearch": {"temporalDecay": {"halfLife": 4}}}',
         ["half_life_days is 3", "halfLife is 4"]),
        ("a.toml", "[profile]\nsemantic_weight = 0.5", ["profile.semantic_weight", "weight of a sum"]),
        ("a.yaml", "memory: {recall: {semantic_weight: 0, recency_weight: 0, importance_weight: 0}}", ["all 0"]),
        # no settings at all
        ("a.json", "[1, 2]", ["[1, 2]", "table"]),
        ("a.json", "{", ["cannot be parsed"]),
        ("a.json", '{"durability": "full", "durability": "normal"}', ["cannot be parsed", "durability"]),
        ("a.toml", "a = ", ["cannot be parsed", "Invalid value"]),
        ("a.toml", "embedder = 'none'\nembedder = 'none'", ["cannot be parsed"]),
        ("a.yaml", "a: [", ["cannot be parsed", "line"]),
        ("a.yaml", "embedder: a\nembedder: b", ["'embedder' stands twice", "line 1"]),
        ("a.yaml", "&a [*a]", ["alias"]),
        ("a.yaml", "profile: !!python/object/apply:os.system ['true']", ["cannot be parsed"]),
        ("a.json", b"\xff\xfe", ["not UTF-8"]),
        ("a.ini", "[a]", [".toml", ".yaml"]),
    ],
)  # fmt: skip
def test_a_fault_names_the_file_the_key_the_value_and_what_is_allowed(load, tmp_path, name, text, said):
    with pytest.raises(InvalidInput) as raised:
        load(name, text)
    message = str(raised.value)
    assert message.startswith(str(tmp_path / name))
    assert [part for part in said if part not in message] == [], message


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidInput, match=r"nowhere\.toml cannot be read: No such file"):
        Settings.load(tmp_path / "nowhere.toml")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InvalidInput, match="cannot be read"):
        Settings.load(tmp_path / "folder.json")


def test_settings_themselves_are_checked():
    for bad in ({"write": 3}, {"consolidation": {}}, {"compile_kernels": 1}, {"token_codes": "yes"}, {"profile": 3}):
        with pytest.raises(InvalidInput, match=next(iter(bad))):
            Settings(**bad)


def test_a_memory_opened_with_a_file_recalls_by_it(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(HERMES + "embedder: none\n")
    with Memory(":memory:", settings=Settings.load(file)) as memory:
        memory.remember_many(f"apple {n}" for n in range(9))
        hits = memory.recall("apple")
        assert len(hits) == 5
        assert hits[0].score == pytest.approx(0.5 + 0.3 + 0.1, abs=1e-6)


def test_reading_settings_loads_only_the_parser_that_is_needed(tmp_path):
    (tmp_path / "a.toml").write_text("")
    code = (
        "import sys; from recollect import Settings; Settings.load(sys.argv[1]); "
        "print({'yaml', 'json5'} & set(sys.modules))"
    )
    assert run(code, tmp_path / "a.toml").strip() == "set()"
