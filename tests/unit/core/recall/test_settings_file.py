"""Settings from files, and what such files may not hold."""

from __future__ import annotations

import json

import pytest

from recallite import Settings
from recallite.errors import InvalidInput
from recallite.model.settings import Consolidation, WritePolicy, resolve_profile

OURS = """
embedder = "none"
index_snapshot = false
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


def test_our_own_names_in_each_format(load):
    wanted = Settings(
        embedder="none", index_snapshot=False, token_codes=False,
            profile=resolve_profile("memweave").override({"limit": 3, "mmr_lambda": 0.7}),
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
        Settings(profile=resolve_profile("reeve"), write=WritePolicy(merge_strategy="replace", topic_cosine=0.92)),
        Settings(profile=resolve_profile("hermes").override({"half_life_days": 3, "long_query_chars": None})),
        Settings(
            profile=resolve_profile("default").override({"mmr_lambda": 0.3, "neighbor_boost": 0}),
            consolidation=Consolidation(),
        ),
    ],
    ids=["default", "named", "reeve", "hermes", "changed"],
)
def test_a_dict_is_read_back_as_it_was(settings):
    assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


def test_what_a_table_of_the_profile_leaves_out_stands_as_the_profile_has_it(load):
    settings = load("x.toml", '[profile]\nname = "hermes"\nhalf_life_days = 9\n[write]\nlink_cosine = 0.8')
    assert settings.profile == resolve_profile("hermes").override({"half_life_days": 9})
    assert settings.write_policy == WritePolicy(supersede_confidence=None, recognise_recalled=True, link_cosine=0.8)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        # unknown keys
        ("a.toml", "colour = 3", ["'colour' is no setting", "3", "durability"]),
        ("a.toml", "[profile]\nneighbor_bost = 0.5", ["'profile.neighbor_bost'", "0.5", "neighbor_boost"]),
        ("a.toml", "[write]\ntopic = 1", ["'write.topic'", "topic_cosine"]),
        ("a.toml", "[consolidation]\nevery = 1", ["'consolidation.every'", "threshold"]),
        ("a.yaml", "3: 4", ["'3' is no setting", "4"]),
        # wrong types and values
        ("a.toml", 'durability = "safe"', ["durability", "'safe'", "'full' or 'normal'"]),
        ("a.toml", "index_snapshot = 1", ["index_snapshot", "1", "True or False"]),
        ("a.toml", "busy_timeout_ms = -1", ["busy_timeout_ms", "-1"]),
        ("a.toml", "embedder = 3", ["embedder", "3"]),
        ("a.toml", 'profile = "zeus"', ["profile", "'zeus'", "hermes"]),
        ("a.toml", '[profile]\nname = "zeus"', ["profile.name", "'zeus'", "hermes"]),
        ("a.toml", "profile = 3", ["profile", "3"]),
        ("a.toml", 'write = "latest"', ["write is 'latest'", "merge_strategy"]),
        ("a.toml", "[write]\ntopic_cosine = 2", ["write.topic_cosine", "2", "0 to 1"]),
        ("a.toml", "[consolidation]\nthreshold = 0", ["consolidation.threshold", "0", "at least 1"]),
        # numbers that are none
        ("a.toml", "[profile]\nneighbor_boost = nan", ["profile.neighbor_boost", "nan", "finite"]),
        ("a.toml", "[profile]\nhalf_life_days = inf", ["profile.half_life_days", "inf"]),
        # contradictions
        ("a.toml", "[profile]\nsemantic_weight = 0.5", ["profile.semantic_weight", "no setting"]),
        # no settings at all
        ("a.json", "[1, 2]", ["[1, 2]", "table"]),
        ("a.json", "{", ["cannot be parsed"]),
        ("a.json", '{"durability": "full", "durability": "normal"}', ["cannot be parsed", "durability"]),
        ("a.toml", "a = ", ["cannot be parsed", "Invalid value"]),
        ("a.toml", "embedder = 'none'\nembedder = 'none'", ["cannot be parsed"]),
        ("a.yaml", "a: [", ["cannot be parsed", "line"]),
        ("a.yaml", "embedder: a\nembedder: b", ["'embedder' is given twice", "line 1"]),
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
    for bad in ({"write": 3}, {"consolidation": {}}, {"index_snapshot": 1}, {"token_codes": "yes"}, {"profile": 3}):
        with pytest.raises(InvalidInput, match=next(iter(bad))):
            Settings(**bad)


def test_a_profile_is_a_table_in_code_as_in_a_file(tmp_path):
    settings = Settings(profile={"name": "hermes", "reading": 5})
    assert settings == Settings(profile=resolve_profile("hermes").override({"reading": 5}))
    assert settings.write_policy.recognise_recalled
    settings.save(tmp_path / "settings.toml")
    assert Settings.load(tmp_path / "settings.toml") == settings
    with pytest.raises(InvalidInput, match=r"Settings\.profile\.name is 'none': use one of default"):
        Settings(profile={"name": "none"})


def test_what_toml_cannot_say_is_refused_and_json_keeps_it(tmp_path):
    settings = Settings(write=WritePolicy(supersede_confidence=None))
    with pytest.raises(InvalidInput, match=r"write\.supersede_confidence is None, which TOML cannot say"):
        settings.save(tmp_path / "settings.toml")
    assert not (tmp_path / "settings.toml").exists()
    settings.save(tmp_path / "settings.json")
    assert Settings.load(tmp_path / "settings.json") == settings
