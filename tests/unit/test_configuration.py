"""Settings as one system: each is declared once, and every reference is made from the declaration."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import recallite
import recallite_kernels
from recallite import Settings, WorkspaceConfig
from recallite.errors import InvalidInput
from recallite.model.configuration import Section, declared, list_settings
from recallite.model.environment import VARIABLES
from recallite.model.settings import Consolidation, Profile, WritePolicy

SECTIONS = (Settings, WorkspaceConfig, Profile, WritePolicy, Consolidation)


def sections(kind: type[Section]) -> set[type[Section]]:
    inside = [field.section for field in declared(kind).values() if field.section is not None]
    return {kind, *(each for section in inside for each in sections(section))}


ALL = sorted({each for kind in SECTIONS for each in sections(kind)}, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_setting_has_a_sentence_and_a_default_that_passes_its_own_check(kind):
    for name, field in declared(kind).items():
        assert field.doc.endswith("."), name
        assert field.check(field.default, name) == field.default
    assert kind() == kind.from_dict({}) == kind.from_dict(kind().to_dict())
    assert repr(kind()) == f"{kind.__name__}()"


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("wrong", [object(), b"x", {"x": 1}, float("nan")], ids=["object", "bytes", "table", "nan"])
def test_no_setting_takes_a_value_of_another_kind(kind, wrong):
    for name in declared(kind):
        with pytest.raises(InvalidInput, match=rf"\b{name}\b"):
            kind(**{name: wrong})


def test_the_list_names_every_setting_by_its_key_in_a_file():
    found = {each.name: each for each in list_settings(Settings)}
    assert {"embedder", "profile", "profile.limit", "write.topic_cosine", "consolidation.threshold"} <= set(found)
    assert found["busy_timeout_ms"].allowed == "a whole number from 0 to 2,147,483,647"
    assert found["durability"].allowed == "'full' or 'normal'"
    assert found["profile.mmr_lambda"].allowed == "a number from 0 to 1 or None"
    assert (found["embedder"].environment, found["embedder"].default) == ("RECALLITE_EMBEDDER", None)
    nested = [each.name for each in list_settings(WorkspaceConfig)]
    assert "query.hybrid.vector_weight" in nested
    assert "query.hybrid" not in nested
    assert len(nested) == len(set(nested))


def test_every_environment_variable_that_is_read_is_listed():
    read = set()
    for package in (recallite, recallite_kernels):
        for file in Path(package.__file__).parents[1].rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
                if text.startswith(("RECALLITE_", "EMBEDDING_", "OPENAI_")) and text.isupper() and " " not in text:
                    read.add(text)
    assert read == set(VARIABLES)
    variables = [each.environment for each in list_settings(Settings) if each.environment]
    assert set(variables) <= set(VARIABLES)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_a_field_that_there_is_not_is_refused_by_name_with_the_one_that_was_meant(kind):
    name = kind.__struct_fields__[0]
    with pytest.raises(InvalidInput, match=f"^{kind.__name__} has no field '{name}x': did you mean {name}"):
        kind(**{f"{name}x": 1})
