"""The API as any HTTP client sees it: requests, answers, errors, and its own description."""

from __future__ import annotations

import inspect
import json

import httpx2
import pytest

pytest.importorskip("starlette", reason="the extra server is not installed")

from recallite import Memory
from recallite.doors.operations import every_operation, served

# What works on the whole file or in this process alone, or is served in another form.
ELSEWHERE = {"close", "embed", "scoped", "transaction"}
SENTINEL_FOLDER = "/"


def test_every_method_of_a_memory_is_an_operation_or_known_to_be_none():
    methods = {name for name in dir(Memory) if not name.startswith("_") and inspect.isfunction(getattr(Memory, name))}
    served = {operation.name for operation in every_operation()}
    assert methods - served - ELSEWHERE == set()


def test_the_description_names_every_operation_with_its_fields_and_schemas_that_resolve(http):
    described = http.get("/openapi.json").json()
    assert {each["operationId"] for path in described["paths"].values() for each in path.values()} == {
        operation.id for operation in served()
    }
    assert "requestBody" in described["paths"]["/v1/documents"]["post"]
    for operation in served():
        found = described["paths"]["/v1" + operation.path][operation.method.lower()]
        assert found["operationId"] == operation.id
        assert str(operation.status) in found["responses"]
        assert "default" in found["responses"]
    written = json.dumps(described)
    names = {part.split('"')[0] for part in written.split("#/components/schemas/")[1:]}
    assert names <= described["components"]["schemas"].keys()
    fields = described["paths"]["/v1/recall"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    request = described["components"]["schemas"][fields["$ref"].rsplit("/", 1)[1]]
    assert request["required"] == ["query"]
    assert {"query", "limit", "where", "purpose", "token_budget"} <= request["properties"].keys()


def test_a_memory_from_its_writing_to_its_end(http):
    written = http.post("/v1/memories", json={"text": "Ada likes green tea", "tags": ["drink"], "expires_at": "P30D"})
    assert written.status_code == 201
    record = written.json()
    assert (record["outcome"], record["tags"], record["expires_after"]) == ("created", ["drink"], "P30D")
    path = f"/v1/memories/{record['id']}"
    assert http.get(path).json()["text"] == "Ada likes green tea"
    assert http.patch(path, json={"text": "Ada likes black tea"}).json()["text"] == "Ada likes black tea"
    assert [each["text"] for each in http.get(f"{path}/history").json()] == [
        "Ada likes green tea",
        "Ada likes black tea",
    ]
    hits = http.post("/v1/recall", json={"query": "tea", "limit": 3, "purpose": "explain"}).json()
    assert [hit["id"] for hit in hits["hits"]] == [record["id"]]
    assert http.post("/v1/explain", json={"query": "tea", "id": record["id"]}).json()["returned"] is True
    listed = http.get("/v1/memories", params={"tags": ["drink", "food"], "limit": 5}).json()
    assert (listed["memories"][0]["id"], listed["left_out"]) == (record["id"], 0)
    assert http.get("/v1/count", params={"where": '{"tags": "drink"}'}).json() == 1
    assert http.delete(path).json()["records"] == 1
    assert http.get(path).status_code == 404


def test_content_is_another_name_of_text_and_query(http):
    record = http.post("/v1/memories", json={"content": "Ada likes green tea"}).json()
    assert record["text"] == "Ada likes green tea"
    assert http.post("/v1/recall", json={"content": "green tea"}).json()["hits"][0]["id"] == record["id"]
    assert (
        http.patch(f"/v1/memories/{record['id']}", json={"content": "Ada likes tea"}).json()["text"] == "Ada likes tea"
    )
    ids = http.post("/v1/memories/batch", json={"items": [{"content": "Bo cycles"}, "Cy swims"]}).json()
    assert [http.get(f"/v1/memories/{id}").json()["text"] for id in ids] == ["Bo cycles", "Cy swims"]
    for path, body in (
        ("memories", {"content": "a", "text": "b"}),
        ("recall", {"content": "a", "query": "b"}),
        ("memories/batch", {"items": [{"content": "a", "text": "b"}]}),
    ):
        refused = http.post(f"/v1/{path}", json=body)
        assert (refused.status_code, refused.json()["error"]["field"]) == (422, "content")
    assert http.post("/v1/memories/get", json={"content": "a"}).json()["error"]["field"] == "content"


def test_an_id_may_be_any_text(http):
    for id in ("a/b", "50%", "?q=1#x", "ä ö", "count", "history", "..", "%2F"):
        made = http.post("/v1/memories", json={"text": f"the memory {id}", "id": id}).json()
        assert made["id"] == id
    from urllib.parse import quote

    for id in ("a/b", "50%", "?q=1#x", "ä ö", "count", "history", "%2F"):
        assert http.get(f"/v1/memories/{quote(id, safe='')}").json()["id"] == id


@pytest.mark.parametrize(
    ("method", "target", "body", "status", "kind", "field", "says"),
    [
        ("POST", "/v1/recall", {"query": "x", "limt": 3}, 422, "InvalidInput", "limt", "query, limit"),
        ("POST", "/v1/recall", {"query": 5}, 422, "InvalidInput", "query", "query is 5"),
        ("POST", "/v1/recall", {"query": "x", "limit": "3"}, 422, "InvalidInput", "limit", "limit is '3'"),
        ("POST", "/v1/recall", {"query": "x", "limit": 0}, 422, "InvalidInput", "limit", "at least 1"),
        ("POST", "/v1/recall", {"query": "x", "limit": True}, 422, "InvalidInput", "limit", "limit is True"),
        ("POST", "/v1/recall", {}, 422, "InvalidInput", "query", "query is missing"),
        ("POST", "/v1/recall", [], 422, "InvalidInput", None, "give a JSON object"),
        ("POST", "/v1/recall", {"query": "x", "where": {"kind": {"like": 1}}}, 422, "filter", "where", "'like'"),
        ("POST", "/v1/recall", {"query": "x", "scope": "a b"}, 422, "filter", "scope", "scope"),
        (
            "POST",
            "/v1/recall",
            {"query": "x", "filter": {"sinze": "2026-01-01"}},
            422,
            "InvalidInput",
            "filter",
            "since",
        ),
        ("POST", "/v1/recall", {"query": "x", "profile": "fast"}, 422, "InvalidInput", "profile", "fast"),
        ("POST", "/v1/memories", {"text": " "}, 422, "text", "text", "text"),
        ("POST", "/v1/memories", {"text": "x", "tags": "a"}, 422, "InvalidInput", "tags", "tags"),
        ("POST", "/v1/memories", {"text": "x", "created_at": "some day"}, 422, "InvalidInput", "created_at", "a time"),
        ("POST", "/v1/memories", {"text": "x", "policy": {"x": 1}}, 422, "InvalidInput", "policy", "policy"),
        ("POST", "/v1/memories", {"text": "x", "expires_at": "soon"}, 422, "InvalidInput", "expires_at", "soon"),
        ("POST", "/v1/memories", {"text": "\ud800"}, 422, "text", "text", "text"),
        ("POST", "/v1/memories", {"text": "x", "policy": {"duplicates": "\ud800"}}, 422, "text", None, "valid"),
        (
            "POST",
            "/v1/memories/batch",
            {"items": [{"text": "x", "expires_at": "x"}]},
            422,
            "InvalidItem",
            None,
            "a time",
        ),
        ("POST", "/v1/recall", {"query": "x", "scope": "/\ud800"}, 422, "filter", "scope", "scope"),
        ("POST", "/v1/recall", {"query": "x", "tags": ["\ud800"]}, 422, "text", None, "surrogate"),
        ("POST", "/v1/recall", {"query": "x", "profile": {"neighbor_boost": 1e308}}, 422, "KernelError", None, ""),
        ("GET", "/v1/count?scope=", None, 422, "filter", "scope", "scope"),
        ("GET", "/v1/export?tags=", None, 422, "InvalidInput", None, "tag"),
        ("POST", "/v1/memories/forget", {}, 422, "InvalidInput", None, "forget needs an id"),
        ("GET", "/v1/memories?limit=x", None, 422, "InvalidInput", "limit", "limit is 'x'"),
        ("GET", "/v1/memories?where=x", None, 422, "InvalidInput", "where", "where"),
        ("GET", "/v1/memories?kind=x", None, 422, "InvalidInput", "kind", "kinds"),
        ("GET", "/v1/memories/none", None, 404, "NotFound", None, "none"),
        ("PATCH", "/v1/memories/none", {"text": "x"}, 404, "NotFound", None, "none"),
        ("GET", "/v1/nothing", None, 404, "ServerError", None, "/openapi.json"),
        ("PUT", "/v1/memories", {"text": "x"}, 405, "ServerError", None, "/openapi.json"),
        ("POST", "/v1/sessions/none/pop", {}, 404, "NotFound", None, "none"),
    ],
)
def test_a_bad_request_is_told_its_field_and_changes_nothing(
    http, on_disk, method, target, body, status, kind, field, says
):
    sent = {} if body is None else {"content": json.dumps(body), "headers": {"Content-Type": "application/json"}}
    answer = http.request(method, target, **sent)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert kind in (error["type"], error["reason"])
    assert error["field"] == field
    assert says in error["message"]
    assert "Traceback" not in answer.text
    assert on_disk.path.rpartition("/")[0] not in answer.text
    assert on_disk.count() == 0


@pytest.mark.parametrize("body", [b'{"query": ', b"", b"\xff\xfe", b'{"query": "x"} {"y": 1}', b"null", b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(http, body):
    answer = http.post("/v1/recall", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]["type"] == "InvalidInput"


def test_a_batch_is_stored_whole_or_not_at_all(http, on_disk):
    items = [{"text": "one", "expires_at": "PT1H"}, "two", {"text": "three", "importance": 2}]
    answer = http.post("/v1/memories/batch", json={"items": items})
    assert (answer.status_code, answer.json()["error"]["type"]) == (422, "InvalidItem")
    assert on_disk.count() == 0
    stored = http.post("/v1/memories/batch", json={"items": items[:2]}).json()
    assert on_disk.get(stored[0]).expires_after.total_seconds() == 3600
    assert len(stored) == 2


def test_documents_are_sent_as_they_are(http, on_disk):
    made = http.post(
        "/v1/documents", params={"name": "notes.md", "metadata": '{"team": "a"}'}, content=b"# Tea\n\nGreen."
    )
    assert (made.status_code, made.json()["outcome"]) == (201, "created")
    hits = http.post("/v1/documents/search", json={"query": "green", "where": {"metadata.team": "a"}}).json()["hits"]
    assert hits[0]["source"]["path"] == "notes.md"
    assert http.get("/v1/documents").json()[0]["id"] == made.json()["id"]
    for name in ("../notes.md", "/etc/passwd", "a\\b", "", "."):
        refused = http.post("/v1/documents", params={"name": name}, content=b"x")
        assert (refused.status_code, refused.json()["error"]["field"]) == (422, "name")
    assert http.post("/v1/documents", params={"name": "x.md"}).status_code == 422
    assert http.post("/v1/documents", params={"name": "x.md", "metadata": "["}, content=b"x").status_code == 422
    assert http.delete(f"/v1/documents/{made.json()['id']}").json()["chunks"] == 1


def test_an_export_comes_back_by_an_import(http, on_disk, tmp_path):
    ids = on_disk.remember_many([f"fact number {number}" for number in range(3_000)])
    exported = http.get("/v1/export", params={"vectors": True})
    assert exported.headers["content-type"] == "application/jsonl"
    assert exported.text.count("fact number") == 3_000
    with Memory(tmp_path / "other.db", settings=on_disk.settings) as other:
        from tests.system.http.serving import serving

        with serving(other) as address:
            there = http.post(f"{address}/v1/import", content=exported.content)
            assert there.json()["records"] == 3_000
            broken = exported.content.replace(b'"text"', b'"txet"', 1)
            assert http.post(f"{address}/v1/import", content=broken).status_code == 422
        assert other.get(ids).keys() == set(ids)
    assert http.get("/v1/export", params={"format": "xml"}).json()["error"]["field"] == "format"
    assert http.get("/v1/export", params={"format": "csv", "kinds": "none"}).text.count("\n") <= 1


def test_a_half_good_import_stores_nothing(http, on_disk):
    on_disk.remember("one")
    good = http.get("/v1/export").content
    on_disk.forget(scope="/")
    answer = http.post("/v1/import", content=good + b'{"text": 5}\n')
    assert (answer.status_code, answer.json()["error"]["type"]) == (422, "InvalidItem")
    assert on_disk.count() == 0


def test_what_was_there_already_is_not_created(http):
    assert http.post("/v1/memories", json={"text": "one"}).status_code == 201
    again = http.post("/v1/memories", json={"text": "one"})
    assert (again.status_code, again.json()["outcome"]) == (200, "duplicate")


def test_the_state_of_the_server(http, on_disk):
    assert http.get("/healthz").json() == {"status": "ok"}
    on_disk.remember("one")
    http.post("/v1/recall", json={"query": "one"})
    http.post("/v1/recall", json={"query": ""})
    figures = dict(line.rsplit(" ", 1) for line in http.get("/metrics").text.splitlines() if not line.startswith("#"))
    assert float(figures['recallite_requests_total{operation="recall",status="200"}']) >= 1
    assert float(figures['recallite_records{kind="memory"}']) == 1
    assert float(figures["recallite_recall_batch_queries_count"]) >= 1
    assert float(figures["recallite_index_bytes"]) > 0
    assert float(figures['recallite_requests_total{operation="healthz",status="200"}']) == 1
    stats = http.get("/v1/stats").json()
    assert stats["path"] == "agent.db"
    http.get("/v1/nothing")
    on_disk.forget(scope="/")
    figures = http.get("/metrics").text
    assert 'recallite_requests_total{operation="other",status="404"} 1.0' in figures
    assert 'recallite_records{kind="memory"}' not in figures
    assert http.head("/healthz").status_code == 200


def test_it_is_ready_when_it_is_warm(http):
    from tests.limits import until

    until(lambda: http.get("/readyz").status_code == 200)
    assert http.get("/readyz").json() == {"status": "ready"}


def test_the_timeline_and_the_versions_of_a_memory(http, on_disk):
    on_disk.remember("one", created_at="2026-01-31T12:00:00Z")
    id = on_disk.remember("Ada lives in Oslo", created_at="2026-02-01T12:00:00Z").id
    on_disk.update(id, text="Ada lives in Bergen")
    months = http.get("/v1/timeline", params={"bucket": "month"}).json()
    assert [(each["start"][:7], each["memories"]) for each in months] == [("2026-01", 1), ("2026-02", 1)]
    assert http.get("/v1/timeline", params={"bucket": "year"}).json()["error"]["field"] == "bucket"
    [diff] = http.get(f"/v1/memories/{id}/diffs").json()
    assert "".join(text for kind, text in diff["parts"] if kind != "delete") == "Ada lives in Bergen"
    assert "".join(text for kind, text in diff["parts"] if kind != "insert") == "Ada lives in Oslo"


def test_the_map_shows_a_token_its_scope(path):
    from recallite_server.http.access_tokens import Tokens
    from tests.system.http.serving import serving
    from tests.unit.core.memory.support import WordEmbedder

    with Memory(path, embedder=WordEmbedder()) as memory:
        memory.remember_many(
            [{"text": f"{word} {n}", "scope": f"/{word}"} for n in range(8) for word in ("tea", "van")]
        )
        scoped = Tokens(memory).create(scope="/tea").secret
        with serving(memory) as url, httpx2.Client(base_url=url, trust_env=False) as http:
            points = http.get("/v1/map").json()
            assert (points["total"], points["sampled"], len(points["ids"])) == (16, False, 16)
            assert all(0 <= value <= 1 for value in points["x"] + points["y"])
            part = http.get("/v1/map", headers={"Authorization": f"Bearer {scoped}"}).json()
            assert (part["total"], len(part["ids"]), part["scopes"]) == (8, 8, ["/"])


def test_a_wrong_body_costs_no_more_than_its_first_fault(http):
    for target, body in (
        ("/v1/memories/batch", {"items": [1] * 400_000}),
        ("/v1/recall/batch", {"queries": [1] * 400_000}),
        ("/v1/recall", {f"field{n}": 1 for n in range(200_000)}),
    ):
        answer = http.post(target, json=body)
        assert answer.status_code == 422
        assert len(answer.content) < 1_000
