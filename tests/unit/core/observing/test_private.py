"""Nothing that is logged or traced tells what was stored or asked, and the guide lists all spans."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import recallite
import recallite_kernels
from tests.system.docs.snippets import ROOT
from tests.unit.core.observing.operations import WORD, run_everything

GUIDE = (ROOT / "docs" / "guides" / "observing.md").read_text("utf-8")


def rows(heading):
    """The cells of the rows of the table that has this first heading."""
    table = GUIDE.split(f"| {heading} |")[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_no_log_record_and_no_span_holds_a_text_id_scope_or_key(tmp_path, traced, logged):
    run_everything(tmp_path)
    spans, records = traced[1].get_finished_spans(), logged()
    assert len(spans) > 30
    assert {level for level, _, _ in records} >= {"DEBUG", "INFO", "WARNING"}
    warned = {logger for level, logger, _ in records if level == "WARNING"}
    assert warned >= {f"recallite.{part}" for part in ("system.turnstile", "embedding.handle", "recall.decomposition")}
    emitted = [*(each.to_json() for each in spans), *map(repr, records)]
    assert [each for each in emitted if WORD.lower() in each.lower()] == []


def test_the_guide_lists_the_spans_and_attributes_that_are_emitted(tmp_path, traced):
    run_everything(tmp_path)
    emitted = defaultdict(set)
    for span in traced[1].get_finished_spans():
        names = {name.removeprefix("recallite.").removesuffix("_ms") for name in span.attributes}
        emitted[span.name] |= names - {"error.type"}
    documented = {
        f"recallite.{name}": set(re.findall(r"`(\w+)`", attributes))
        for names, attributes in rows("span")
        for name in re.findall(r"`(?:recallite)?\.(\w+)`", names)
    }
    assert documented == dict(emitted)


def test_no_message_is_logged_that_may_quote_a_text():
    """`exception` logs the message of an error, which may have a text of a user in it."""
    for home in (Path(recallite.__file__).parents[1], Path(recallite_kernels.__file__).parents[1]):
        for file in home.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "_log":
                    assert node.attr != "exception", file
