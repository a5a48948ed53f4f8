"""Notes of basic-memory."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recallite import Memory
from recallite_connect.importers import import_from

COFFEE_ID = "basic-memory:main/notes/coffee-brewing-methods"
COFFEE = """\
---
title: Coffee Brewing Methods
type: note
permalink: main/notes/coffee-brewing-methods
tags:
- coffee
created: '2026-03-21T14:30:00+02:00'
---

# Coffee Brewing Methods

Ada keeps her notes on coffee here, see [[Tea]].

## Observations
- [method] Pour over provides more clarity than French press #brewing#taste
- [tip] Water at 92 °C
  extracts best (measured in 2024)
- [ ] buy filters
- [x] clean grinder
- [00:00:11] a line of a transcript

```
- [code] not an observation
```

## Relations
- relates_to [[Tea]]
- requires [[Proper Grinding]] (for pour over)
- "is better than" [[notes/tea]]
- improves [[Nothing There]]
"""
TEA = "---\ntitle: Tea\ntype: note\npermalink: main/notes/tea\n---\n# Tea\n\n- [fact] Ada drinks it at night\n"
GRINDING = "---\ntitle: Proper Grinding\npermalink: main/notes/proper-grinding\n---\nBurr grinders only.\n"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "notes").mkdir()
    for name, text in {"coffee": COFFEE, "tea": TEA, "grinding": GRINDING}.items():
        (tmp_path / "notes" / f"{name}.md").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def memory(project):
    with Memory(":memory:") as opened:
        done = import_from(opened, "basic-memory", project)
        assert (done.created, done.troubles) == (9, ())
        yield opened


def test_observations_are_memories_of_their_note(memory):
    said = {
        record.text: (record.topic, record.tags, record.metadata.get("category"))
        for record in memory.list()
        if "category" in record.metadata
    }
    assert said == {
        "method: Pour over provides more clarity than French press #brewing#taste": (
            "Coffee Brewing Methods", ("coffee", "brewing", "taste"), "method",
        ),
        "tip: Water at 92 °C extracts best (measured in 2024)": ("Coffee Brewing Methods", ("coffee",), "tip"),
        "fact: Ada drinks it at night": ("Tea", (), "fact"),
    }  # fmt: skip


def test_relations_say_what_they_relate(memory):
    said = {record.text: record for record in memory.list() if "relation_type" in record.metadata}
    assert set(said) == {
        "Coffee Brewing Methods requires Proper Grinding (for pour over)",
        "Coffee Brewing Methods is better than tea",
        "Coffee Brewing Methods improves Nothing There",
    }
    section = memory.get(f"{COFFEE_ID}#Coffee Brewing Methods")
    better = said["Coffee Brewing Methods is better than tea"]
    (tea,) = memory.list(where={"topic": "Tea"})
    assert {link.target for link in memory.neighbors(better.id, direction="out")} == {tea.id, section.id}
    missing = said["Coffee Brewing Methods improves Nothing There"]
    assert [link.target for link in memory.neighbors(missing.id, direction="out")] == [section.id]
    assert [link.target for link in memory.neighbors(section.id, direction="out")] == [tea.id]


def test_prose_is_a_memory_without_the_observations(memory):
    prose = memory.get(f"{COFFEE_ID}#Coffee Brewing Methods")
    assert prose.text == "# Coffee Brewing Methods\n\nAda keeps her notes on coffee here, see [[Tea]]."
    assert prose.created_at == datetime(2026, 3, 21, 12, 30, tzinfo=UTC)
    assert prose.metadata["type"] == "note"
    tasks = memory.get(f"{COFFEE_ID}#Coffee Brewing Methods#Observations")
    assert "[ ] buy filters" in tasks.text
    assert "- [code] not an observation" in tasks.text


def test_a_second_run_takes_what_is_new(memory, project):
    with (project / "notes/tea.md").open("a") as more:
        more.write("- [fact] Bo drinks it too\n")
    done = import_from(memory, "basic-memory", project)
    assert (done.created, done.updated, done.unchanged) == (1, 0, 9)


def test_properties_are_said_by_the_first_memory_of_a_note_or_are_one(tmp_path):
    head = "---\ntitle: {0}\ntype: note\npermalink: {0}\nmaker: {1}\n---\n"
    (tmp_path / "pump.md").write_text(head.format("pump", "Grundfos") + "- [limit] 4 bar\n- [seal] rubber\n")
    (tmp_path / "valve.md").write_text(head.format("valve", "Danfoss"))
    (tmp_path / "pipe.md").write_text("---\ntitle: pipe\ntype: note\npermalink: pipe\n---\n<!-- later -->\n")
    with Memory(":memory:") as memory:
        done = import_from(memory, "basic-memory", tmp_path)
        assert (done.created, done.left_out) == (3, {"comments": 1})
        assert {(record.text, record.context) for record in memory.list()} == {
            ("limit: 4 bar", "pump (maker: Grundfos)"),
            ("seal: rubber", "pump"),
            ("maker: Danfoss", "valve"),
        }
