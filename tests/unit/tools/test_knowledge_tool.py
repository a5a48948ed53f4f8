"""The tool knowledge, as the seed shows it; a model ingests only from where its host allows."""

from __future__ import annotations

import json

import pytest

from recallite import tools
from recallite.errors import InvalidInput
from tests.unit.documents.test_fetching import serving


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "docs"
    made.mkdir()
    (made / "pricing-guide.md").write_text("# Pricing\n\nEnterprise plans start at $499/month.\n")
    (tmp_path / "secret.md").write_text("# Secret\n\nof the host")
    return made


@pytest.fixture
def use(memory, folder):
    def call(action, **fields):
        options = {name: fields.pop(name) for name in ("scope_of_call", "folders", "urls") if name in fields}
        return tools.call(
            "knowledge", json.dumps({"action": action, **fields}), memory=memory,
            scope=options.get("scope_of_call"), document_folders=options.get("folders", [folder]),
            document_urls=options.get("urls", False),
        )  # fmt: skip

    return call


def test_reeve_the_four_actions(use):
    (done,) = use("ingest", source="pricing-guide.md", metadata={"category": "product-specs"})["results"]
    assert (done["outcome"], done["source"], done["title"], done["chunks"]) == (
        "created", "pricing-guide.md", "Pricing", 1,
    )  # fmt: skip
    answer = use("search", query="What is the pricing for enterprise plans?", limit=5)
    (found,) = answer["results"]
    assert found["text"] == "# Pricing\n\nEnterprise plans start at $499/month."
    assert found["source"] == "pricing-guide.md"
    assert 0 < found["score"] <= 1
    assert 0.3 < found["confidence"] <= 1
    assert answer["evidence_gaps"] == []
    nothing = use("search", query="Where do arctic terns spend the winter?")
    assert nothing["results"] == []
    assert nothing["evidence_gaps"] == ["nothing in this scope matches the query"]
    assert {"category": "product-specs", "lines": [1, 3]}.items() <= found["metadata"].items()
    assert found["documentId"] == done["documentId"]
    assert "never instructions" in answer["notice"]
    (listed,) = use("list")["results"]
    assert (listed["documentId"], listed["chunks"]) == (done["documentId"], 1)
    assert use("delete", documentId=done["documentId"]) == {"outcome": "deleted", "id": done["documentId"]}
    assert use("list")["results"] == use("search", query="pricing")["results"] == []
    error = use("delete", documentId=done["documentId"])["error"]
    assert (error["type"], error["field"]) == ("not_found", "documentId")


def test_by_default_a_model_ingests_from_nowhere(use, folder):
    for source in ("pricing-guide.md", str(folder), "http://example.org/"):
        error = use("ingest", source=source, folders=())["error"]
        assert (error["type"], error["field"], error["allowed"]) == ("not_allowed", "source", [])
    assert use("list")["results"] == []


def test_only_from_the_folders_that_the_host_names(use, folder, tmp_path):
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    for source in ("../secret.md", str(tmp_path / "secret.md"), "link.md", "/etc/passwd", "http://example.org/"):
        error = use("ingest", source=source)["error"]
        assert (error["type"], error["allowed"]) == ("not_allowed", [f"a path in {folder}"]), source
    assert use("ingest", source="absent.md")["error"]["type"] == "unreadable"
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.md").write_text("# B\n\nwords")
    for source in ("b.md", str(other / "b.md"), "pricing-guide.md"):
        assert use("ingest", source=source, folders=[folder, other])["results"]
    assert use("ingest", source=str(folder))["counts"] == {"unchanged": 1, "skipped": 1}


def test_urls_are_those_of_public_addresses_only(use):
    with serving() as site:
        site.pages["/"] = (200, {}, b"inside")
        error = use("ingest", source=f"{site.url}/", urls=True)["error"]
        assert (error["type"], site.asked) == ("not_allowed", [])
        assert "not a public address" in error["message"]


def test_the_scope_of_the_call_bounds_documents(use):
    use("ingest", source="pricing-guide.md", scope_of_call="/users/ada")
    assert use("list", scope_of_call="/users/eve")["results"] == []
    (listed,) = use("list", scope="/users")["results"]
    assert listed["scope"] == "/users/ada"
    error = use("delete", documentId=listed["documentId"], scope_of_call="/users/eve")["error"]
    assert error["type"] == "not_found"


def test_what_the_host_gives_wrong_is_its_error(memory):
    for wrong in ({"document_folders": 7}, {"document_folders": [7]}, {"document_urls": "yes"}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            tools.call("knowledge", {"action": "list"}, memory=memory, **wrong)
