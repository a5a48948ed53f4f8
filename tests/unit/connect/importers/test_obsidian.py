"""Obsidian vaults."""

from __future__ import annotations

import os
import sys
import unicodedata
from datetime import UTC, datetime

import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite_connect.importers import import_from, notes

BILLING = """\
---
tags:
  - project
  - work/infra
aliases: [Invoices]
created: 2025-11-02T10:00
status: active
owner: "[[Ada]]"
---
Billing is written in Go. #golang

## On call
[[Ada Lovelace|Ada]] is on call, see [[2026-03-21#Standup]] and `[[Orders]]`.

| who | when |
|---|---|
| [[Ada\\|x]] | #1 |

## Empty
"""
ADA = """\
---
aliases: Ada Lovelace
---
# Ada
Lives in Oslo. Leads [billing](Projects/Billing.md#On%20call). ![[photo.png]] [[Nobody]]
"""


@pytest.fixture
def memory():
    with Memory(":memory:") as opened:
        yield opened


@pytest.fixture
def vault(tmp_path):
    files = {
        ".obsidian/templates.json": '{"folder": "Templates"}',
        ".obsidian/plugin.md": "no note",
        ".trash/old.md": "thrown away",
        "Templates/daily.md": "{{date}}",
        "Drawing.md": "---\nexcalidraw-plugin: parsed\n---\nN4KAkARALgngDgUwgLgAQQQDwMYEMA2AlgCYBOuA7hADTgQBuCp",
        "Projects/Billing.md": BILLING,
        "Ada.md": ADA,
        "Daily/2026-03-21.md": "## Standup\r\nWe chose Valkey for [[Invoices]].\r\n",
        "picture.png": "no text",
    }
    for name, text in files.items():
        path = tmp_path / "vault" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    os.utime(tmp_path / "vault/Ada.md", (1_774_096_200, 1_774_096_200))
    return tmp_path / "vault"


def test_a_section_is_a_memory_with_the_properties_of_its_note(memory, vault):
    done = import_from(memory, "obsidian", vault)
    assert (done.created, done.links, done.troubles) == (4, 5, ())
    billing = memory.get("obsidian:Projects/Billing.md")
    assert billing.text == "Billing is written in Go. #golang"
    assert billing.tags == ("project", "work/infra", "golang")
    said = "aliases: Invoices; status: active; owner: Ada"
    assert (billing.context, billing.source) == (f"Billing ({said})", "Projects/Billing.md")
    assert billing.created_at == datetime(2025, 11, 2, 10, tzinfo=UTC)
    assert billing.metadata == {
        "created": "2025-11-02T10:00", "status": "active", "owner": "[[Ada]]", "path": "Projects/Billing.md",
        "note": "Billing", "headings": [], "aliases": ["Invoices"],
    }  # fmt: skip
    standup = memory.get("obsidian:Daily/2026-03-21.md#Standup")
    assert (standup.context, standup.created_at) == ("2026-03-21 > Standup", datetime(2026, 3, 21, tzinfo=UTC))
    assert memory.get("obsidian:Ada.md#Ada").created_at == datetime(2026, 3, 21, 12, 30, tzinfo=UTC)


def test_links_lead_to_names_paths_aliases_and_headings(memory, vault):
    import_from(memory, "obsidian", vault)
    joined = {
        (link.source.removeprefix("obsidian:"), link.target.removeprefix("obsidian:"))
        for record in memory.list()
        for link in memory.neighbors(record.id, direction="out")
    }
    assert joined == {
        ("Projects/Billing.md", "Ada.md#Ada"),
        ("Projects/Billing.md#On call", "Ada.md#Ada"),
        ("Projects/Billing.md#On call", "Daily/2026-03-21.md#Standup"),
        ("Ada.md#Ada", "Projects/Billing.md#On call"),
        ("Daily/2026-03-21.md#Standup", "Projects/Billing.md"),
    }


def test_of_notes_with_one_name_a_link_takes_the_nearest(memory, tmp_path):
    for name, text in {
        "a/Todo.md": "in a", "b/Todo.md": "in b", "b/x.md": "[[Todo]]", "c/d/y.md": "[[Todo]] [[b/Todo]]",
        "z.md": "[[../b/Todo]] [z](z.md) [[#Here]]",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    import_from(memory, "obsidian", tmp_path)
    targets = {
        name: [link.target for link in memory.neighbors(f"obsidian:{name}", direction="out")]
        for name in ("b/x.md", "c/d/y.md", "z.md")
    }
    assert targets["b/x.md"] == ["obsidian:b/Todo.md"]
    assert sorted(targets["c/d/y.md"]) == ["obsidian:a/Todo.md", "obsidian:b/Todo.md"]
    assert targets["z.md"] == ["obsidian:b/Todo.md"]


def test_an_edited_section_is_a_version_and_the_others_stay(memory, vault):
    import_from(memory, "obsidian", vault)
    path = vault / "Projects/Billing.md"
    path.write_text(path.read_text().replace("in Go", "in Rust"))
    done = import_from(memory, "obsidian", vault)
    assert (done.created, done.updated, done.unchanged) == (0, 1, 3)
    versions = [version.text for version in memory.history("obsidian:Projects/Billing.md")]
    assert versions == ["Billing is written in Go. #golang", "Billing is written in Rust. #golang"]


def test_a_dry_run_counts_the_same(memory, vault):
    dry = import_from(memory, "obsidian", vault, dry_run=True)
    assert memory.count() == 0
    assert (dry.created, dry.links) == (4, 5)


def test_long_sections_are_cut_and_repeated_headings_have_ids(memory, tmp_path):
    words = " ".join(f"word{n}" for n in range(3000))
    (tmp_path / "long.md").write_text(f"## A\n\n{words}\n\n## A\n\nshort\n")
    assert import_from(memory, "obsidian", tmp_path).created > 3
    assert memory.get("obsidian:long.md#A").text.startswith("## A\n\nword0")
    assert "short" in {record.text.removeprefix("## A\n\n") for record in memory.list()}


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links and FIFOs")
def test_nothing_outside_of_the_vault_is_read(memory, tmp_path, monkeypatch):
    monkeypatch.setattr(notes, "_MAX_BYTES", 100)
    outside = tmp_path / "secret.md"
    outside.write_text("a secret")
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "link.md").symlink_to(outside)
    (vault / "folder").symlink_to(tmp_path)
    os.mkfifo(vault / "fifo.md")
    (vault / "large.md").write_text("x" * 101)
    (vault / "bad.md").write_bytes(b"caf\xe9 \x00")
    done = import_from(memory, "obsidian", vault)
    assert [record.text for record in memory.list()] == ["caf\ufffd \ufffd"]
    assert {each.path: each.reason.split(":")[0] for each in done.troubles} == {
        "fifo.md": "it is a FIFO, which is not followed",
        "link.md": "it is a symbolic link, which is not followed",
        "large.md": "it has 101 bytes",
        "bad.md": "byte 3 is not UTF-8",
    }


def test_a_single_note_is_taken_too(memory, vault):
    assert import_from(memory, "obsidian", vault / "Ada.md").created == 1


def test_a_missing_vault_is_named(memory, tmp_path):
    with pytest.raises(InvalidInput, match="there is no"):
        import_from(memory, "obsidian", tmp_path / "none")


def test_a_file_that_is_no_markdown_is_refused(memory, tmp_path):
    (tmp_path / "vault.zip").write_bytes(b"PK\x03\x04 notes")
    with pytest.raises(InvalidInput, match="is no Markdown"):
        import_from(memory, "obsidian", tmp_path / "vault.zip")


def test_bytes_that_are_not_utf_8_are_reported_and_the_rest_is_taken(memory, tmp_path):
    (tmp_path / "Old.md").write_bytes("Die Brücke ist gesperrt".encode("latin-1"))
    done = import_from(memory, "obsidian", tmp_path)
    assert done.created == 1
    assert [(each.path, "byte 6 is not UTF-8" in each.reason) for each in done.troubles] == [("Old.md", True)]


def noted(folder, **files):
    """A vault of these notes, by their names."""
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder


def test_a_note_that_has_only_properties_is_a_memory_that_links(memory, tmp_path):
    noted(tmp_path, Ibsen="---\ntrade: carpenter\nknows:\n  - '[[Holm|the smith]]'\ntags: [person]\n---\n")
    noted(tmp_path, Holm="---\nforge: Nygata 4\n---\n", Empty="---\ntags: [person]\nborn:\n---\n")
    done = import_from(memory, "obsidian", tmp_path)
    assert (done.created, done.links, done.troubles) == (2, 1, ())
    (hit, *_) = memory.recall("Who is a carpenter?", limit=1)
    assert (hit.text, hit.context, hit.tags) == ("trade: carpenter; knows: the smith", "Ibsen", ("person",))
    assert import_from(memory, "obsidian", tmp_path).unchanged == 2


def test_properties_that_are_long_are_a_memory_beside_the_first_section(memory, tmp_path):
    summary = "how the ferry is moored when the wind is from the south " * 8
    noted(tmp_path, Ferry=f"---\nsummary: {summary}\n---\nAsk the harbour master.\n")
    import_from(memory, "obsidian", tmp_path)
    said = {record.id: record.text for record in memory.list()}
    assert said["obsidian:Ferry.md"] == "Ask the harbour master."
    assert said["obsidian:Ferry.md~properties"].startswith("summary: how the ferry")


def test_a_property_that_cannot_be_read_spoils_no_other(memory, tmp_path):
    noted(tmp_path, Trip="---\nsubject: Ferry: the night boat\ncreated: 2025-02-03\ntags: [sea]\n---\nIt rolled.\n")
    import_from(memory, "obsidian", tmp_path)
    (record,) = memory.list()
    assert (record.text, record.tags, record.created_at) == ("It rolled.", ("sea",), datetime(2025, 2, 3, tzinfo=UTC))
    assert record.metadata["subject"] == "Ferry: the night boat"


def test_comments_queries_embeds_and_templates_are_no_memories_and_are_counted(memory, tmp_path):
    noted(
        tmp_path,
        Stall="We sell rope.\n\n%%\nperhaps nets\n%%\n<!-- or hooks -->\n\n```dataview\nLIST FROM #sale\n```\n",
        Board="## Map\n\n![[harbour.canvas]]\n\n![](chart.png)\n",
        Form="# {{title}}\n\nDay: {{date}}\nWho: <% tp.user.name() %>\n",
        Code="Write `%% so %%`:\n\n```\n<!-- kept -->\n```\n",
    )
    done = import_from(memory, "obsidian", tmp_path)
    assert {record.text for record in memory.list()} == {
        "We sell rope.",
        "Write `%% so %%`:\n\n```\n<!-- kept -->\n```",
    }
    assert done.left_out == {"comments": 2, "queries": 1, "notes without words of their own": 2}


def test_the_folder_of_templates_of_a_plug_in_is_skipped(memory, vault):
    settings = vault / ".obsidian/plugins/templater-obsidian/data.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"templates_folder": "Forms"}')
    (vault / "Forms").mkdir()
    (vault / "Forms/day.md").write_text("What did you do today?")
    assert import_from(memory, "obsidian", vault).created == 4


def test_a_section_that_is_written_several_times_is_one_memory_with_as_many_occurrences(memory, tmp_path):
    pump = "## Pump\n\nThe pump runs at night.\n\n"
    noted(tmp_path, Log=f"# Log\n\n{pump}## Valve\n\nIt is shut.\n\n{pump}{pump}## Pump\n\nIt runs at noon.\n")
    assert import_from(memory, "obsidian", tmp_path).created == 3
    counted = {record.id: record.occurrences for record in memory.list()}
    assert counted == {
        "obsidian:Log.md#Log#Pump": 3, "obsidian:Log.md#Log#Valve": 1, "obsidian:Log.md#Log#Pump~2": 1,
    }  # fmt: skip
    noted(tmp_path, Log=(tmp_path / "Log.md").read_text() + f"\n{pump}")
    assert import_from(memory, "obsidian", tmp_path).unchanged == 3
    assert memory.get("obsidian:Log.md#Log#Pump").occurrences == 4
    assert import_from(memory, "obsidian", tmp_path).unchanged == 3
    assert memory.get("obsidian:Log.md#Log#Pump").occurrences == 4


@pytest.mark.parametrize(("file", "link"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_names_of_files_and_links_are_one_name_however_their_marks_are_written(memory, tmp_path, file, link):
    def named(form, name):
        return unicodedata.normalize(form, name)

    noted(tmp_path, **{named(file, "Smørbrød på Blåøya"): "Open.\n\n## " + named(file, "Étage") + "\n\nTwo.\n"})
    noted(tmp_path, Plan=named(link, "See [[smørbrød på blåøya]].\n\n# B\n\n[x](Smørbrød%20på%20Blåøya.md#Étage)\n"))
    assert import_from(memory, "obsidian", tmp_path).links == 2
    assert len(memory.neighbors("obsidian:Plan.md#B", direction="out")) == 1


def test_a_date_is_read_as_the_vault_writes_it(memory, tmp_path):
    values = ["date created: Friday, July 9th 2021, 9:12:44 am", "created: 202107091430", 'created: "[[2021-07-09]]"',
              "created:\n  - 2021-07-09", "dateCreated: 9. Juli 2021", "created: soon\ndate: 2021-07-09",
              "modified: 2021-07-09"]  # fmt: skip
    for number, value in enumerate(values):
        (tmp_path / f"{number}.md").write_text(f"---\n{value}\n---\nPear tree {number} was planted.\n", "utf-8")
    for name in ("2021_07_09.md", "Visit 2021-07-09.md", "202107091605 Idea.md"):
        (tmp_path / name).write_text(f"{name} is a good name.\n")
    done = import_from(memory, "obsidian", tmp_path)
    assert done.troubles == ()
    assert {f"{record.created_at:%Y-%m-%d}" for record in memory.list(limit=20)} == {"2021-07-09"}
    assert memory.count() == 10


def test_a_date_that_names_no_day_is_reported_with_its_line_and_not_guessed(memory, tmp_path):
    for name, value in {"2020-05-06.md": "2021-02-30", "Plan.md": "02/07/2021"}.items():
        path = tmp_path / name
        path.write_text(f"---\nstatus: open\ncreated: {value}\n---\nThe plan of {name}.\n")
        os.utime(path, (1_774_096_200, 1_774_096_200))
    done = import_from(memory, "obsidian", tmp_path)
    assert [(each.path, each.line) for each in done.troubles] == [("2020-05-06.md", 3), ("Plan.md", 3)]
    assert "it may be 2021-07-02 or 2021-02-07" in done.troubles[1].reason
    assert memory.get("obsidian:2020-05-06.md").created_at == datetime(2020, 5, 6, tzinfo=UTC)
    assert memory.get("obsidian:Plan.md").created_at == datetime(2026, 3, 21, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(("other", "day"), [("25/12/2021", (2021, 7, 2)), ("12/25/2021", (2021, 2, 7))])
def test_other_dates_of_the_vault_tell_whether_the_day_comes_first(memory, tmp_path, other, day):
    for name, value in {"a.md": "02/07/2021", "b.md": other}.items():
        (tmp_path / name).write_text(f"---\ncreated: {value}\n---\nThe plan of {name}.\n")
    assert import_from(memory, "obsidian", tmp_path).troubles == ()
    assert memory.get("obsidian:a.md").created_at == datetime(*day, tzinfo=UTC)
