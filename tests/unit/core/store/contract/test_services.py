"""What the services keep in any store."""

from __future__ import annotations

import msgspec

from recallite.model.checks import is_address
from recallite.model.filters import MESSAGE_KIND, Filter
from recallite.model.settings import Consolidation
from recallite.store.sql.services import CycleRow, SnapshotRow
from tests.unit.core.store.contract.support import EMBEDDER, NOW, parts, row, vector

DOCUMENT = {
    "title": "Notes", "media_type": "text/plain", "content_hash": b"hash", "chunking": "v1", "size_bytes": 9,
    "mtime_ns": 1, "inode": 2, "read_at": NOW, "metadata": None, "caller_metadata": None, "problem": None, "chunks": 2,
    "updated_at": NOW,
}  # fmt: skip


def put_document(writer, scope, source, public_id, texts=("one", "two")):
    chunks = [
        row(f"{public_id}-{place}", text, kind="chunk", scope=scope, source=source, position=place)
        for place, text in enumerate(texts)
    ]
    writer.records.insert(chunks, None)
    writer.documents.put(scope, source, public_id, DOCUMENT)
    return writer.documents.find(scope, source)


def test_documents_are_found_by_source_id_and_content(store):
    with store.atomic() as writer:
        first = put_document(writer, "/a", "a.md", "d1")
        put_document(writer, "/a/b", "b.md", "d2")
        assert first.title == "Notes"
        assert [chunk.text for chunk in writer.documents.chunks_of(first.source_id)] == ["one", "two"]
        assert list(writer.documents.find_many("/a")) == ["a.md"]
        assert [each.source for each in writer.documents.in_scope("/a")] == ["a.md", "b.md"]
        assert [each.source for each in writer.documents.in_scope("/a", limit=1)] == ["a.md"]
        assert writer.documents.with_id("d2", "/a").source == "b.md"
        assert writer.documents.with_id("d1", "/a/b") is None
        assert writer.documents.with_content("/a", b"hash") == [first]


def test_a_document_changes_moves_and_goes(store):
    with store.atomic() as writer:
        document = put_document(writer, "/", "a.md", "d1")
        writer.documents.put("/", "a.md", "ignored", DOCUMENT | {"title": "New"})
        writer.documents.rename_source(document, "b.md")
        moved = writer.documents.find("/", "b.md")
        assert (moved.public_id, moved.title) == ("d1", "New")
        writer.documents.note_read([(7, 8, moved.id, b"hash"), (9, 9, moved.id, b"other")])
        assert writer.documents.find("/", "b.md")[11:13] == (7, 8)
        first, second = writer.documents.chunks_of(moved.source_id)
        writer.documents.move_chunks([(first, 5, "{}", NOW + 1, ["t"]), (second, second.position, None, NOW, [])])
        again = writer.documents.chunks_of(moved.source_id)
        assert [(chunk.position, msgspec.json.decode(chunk.tags)) for chunk in again] == [(1, []), (5, ["t"])]
        assert writer.documents.delete([moved]) == 2
        assert writer.documents.in_scope("/") == []


def test_a_document_without_some_of_its_chunks_is_cut_anew_and_without_all_is_gone(store):
    with store.atomic() as writer:
        document = put_document(writer, "/", "a.md", "d1")
        first, second = (chunk.id for chunk in writer.documents.chunks_of(document.source_id))
        cut = writer.documents.sources_of([first])
        writer.records.delete([first])
        writer.documents.settle(cut)
        assert writer.documents.find("/", "a.md").chunking == ""
        writer.records.delete([second])
        writer.documents.settle(cut)
        assert writer.documents.find("/", "a.md") is None


def test_sessions_are_appended_read_searched_and_purged(store):
    def said(text):
        (row_id,) = writer.records.insert([row(text, text, kind=MESSAGE_KIND, scope="/a")], None)
        return msgspec.json.encode({"text": text}).decode(), row_id

    with store.atomic() as writer:
        writer.sessions.create("/a", "s1", None, NOW)
        session = writer.sessions.find_id("/a", "s1")
        writer.sessions.append(session, 0, [said("tea in the morning"), said("coffee")], NOW)
        assert writer.sessions.next_position(session) == 2
        writer.sessions.append(session, 2, [said("more tea"), ("{}", None)], NOW + 1)
        writer.sessions.set_provider(session, "local")
        found = writer.sessions.find("/a", "s1")
        assert (found.provider, found.messages, found.updated_at) == ("local", 4, NOW + 1)
        assert [position for position, _ in writer.sessions.messages(session, limit=2)] == [2, 3]
        assert writer.records.count(Filter(kinds=MESSAGE_KIND), NOW) == 3
        assert writer.records.count(Filter(), NOW) == 0
        assert writer.sessions.remove_from(session, 2) == 2
        assert writer.records.count(Filter(sessions=True), NOW) == 2
        assert [each.name for each in writer.sessions.in_scope("/", limit=1)] == ["s1"]
        assert writer.sessions.unused_since("/", NOW) == []
        assert writer.sessions.unused_since("/", None) == [session]
        writer.sessions.delete([session])
        assert writer.sessions.find("/a", "s1") is None
        assert writer.records.count(Filter(sessions=True), NOW) == 0


def test_snapshots_come_newest_first(store):
    with store.atomic() as writer:
        for number in (1, 2):
            writer.sessions.put_snapshot(
                SnapshotRow(f"p{number}", "/a", None, "[]", "sum", "[]", "[]", None, NOW + number, 0.5, 7)
            )
        assert [each.public_id for each in writer.sessions.snapshots("/", 5)] == ["p2", "p1"]
        assert writer.sessions.snapshots("/b", 5) == []


def test_experience_is_counted_by_exact_scope(store):
    with store.atomic() as writer:
        key = ("/a", "sort", "ls,cat")
        for success in (True, False):
            writer.tiers.add_run(key, success=success, steps=4 if success else None, tokens=None, now=NOW)
        (pattern,) = writer.tiers.patterns(["/a"], None)
        assert (pattern.total_count, pattern.success_count, pattern.avg_steps, pattern.avg_tokens) == (2, 1, 4.0, None)
        assert writer.tiers.patterns(["/"], "sort") == []
        error = (key[0], "bash", "no such file")
        for recovery in ("look", "look", "create"):
            writer.tiers.add_recovery(error, error="No such file", recovery=recovery, now=NOW)
        (known,) = writer.tiers.recoveries(["/a"], "bash")
        assert (known.recovery, known.total_count) == ("create", 1)


def test_procedures_count_their_outcomes(store):
    with store.atomic() as writer:
        (row_id,) = writer.records.insert([row("p", kind="procedure", scope="/a", metadata='{"name":"deploy"}')], None)
        assert writer.tiers.procedure_named("/a", "deploy") == writer.tiers.procedure_with_id("/", "p") == row_id
        assert writer.tiers.procedure_named("/", "deploy") is None
        assert writer.tiers.uses(["p"]) == {}
        writer.tiers.set_rate(row_id, 0.5)
        writer.tiers.count_outcome(row_id, success=True, first_rate=0.9, weight=0.5)
        assert writer.tiers.uses(["p", "nobody"]) == {"p": (0.75, 1, 1)}


def test_consolidation_fades_and_purges_episodes_of_one_scope(store):
    policy = Consolidation(decay_factor=0.5, prune_threshold=0.2, cycles_a_recall=1)
    with store.atomic() as writer:
        kept, faint, pinned, elsewhere = writer.records.insert(
            [
                row("a", kind="episode", importance=0.8),
                row("b", kind="episode", importance=0.3),
                row("c", kind="episode", importance=0.3, pinned=True),
                row("d", kind="episode", importance=0.3, scope="/s"),
            ],
            None,
        )
        assert writer.tiers.last_episode("/") == pinned
        assert writer.tiers.new_episodes("/", 2) == 2
        assert writer.tiers.episodes_between("/", kept, pinned) == [faint, pinned]
        assert writer.tiers.compress("/", pinned, policy) == (2, 1)
        assert [writer.records.get(each).importance for each in (kept, pinned, elsewhere)] == [0.4, 0.3, 0.3]
        assert writer.records.get(kept).base_importance == 0.8
        writer.tiers.add_cycle(CycleRow(0, "/", pinned, 0, NOW, 2, 1, 0, 0, None))
        cycle = writer.tiers.last_cycle("/")
        assert (cycle.trigger_id, cycle.compressed, cycle.pruned) == (pinned, 2, 1)
        writer.tiers.change_cycle(cycle._replace(promoted=3))
        assert [each.promoted for each in writer.tiers.cycles("/", 5)] == [3]
        assert writer.tiers.new_episodes("/", 2) == 0


def test_the_embedding_cache_forgets_what_was_used_the_longest_time_ago(store):
    with store.atomic() as writer:
        embedder = writer.vectors.register_embedder(**EMBEDDER)
        writer.embedding_cache.keep(embedder, {b"a": parts(1), b"b": parts(2, 3)}, None)
        writer.embedding_cache.touch(embedder, [b"a"], None)
        writer.embedding_cache.keep(embedder, {b"c": parts(4)}, 2)
        assert writer.embedding_cache.look_up(embedder, [b"a", b"b", b"c"]) == {b"a": parts(1), b"c": parts(4)}
        assert writer.embedding_cache.count() == 2


def test_a_purged_scope_takes_along_what_services_keep_below_it(store):
    with store.atomic() as writer:
        for scope in ("/a", "/a/b", "/c"):
            writer.tiers.save_working(scope, '{"n":1}', NOW)
            writer.tiers.save_working(scope, '{"n":2}', NOW)
            writer.sessions.create(scope, "s", None, NOW)
            put_document(writer, scope, "d.md", f"doc{scope}")
        assert writer.scopes.purge_services("/a") == 6
        assert [writer.tiers.working(scope) for scope in ("/a", "/a/b", "/c")] == [None, None, '{"n":2}']
        assert [each.scope for each in writer.documents.in_scope("/")] == ["/c"]


def test_a_store_keeps_its_identity_and_its_role(store):
    with store.atomic() as writer:
        assert writer.meta.identity() is None
        writer.meta.put_identity("first")
        writer.meta.put_identity("second")
        assert writer.meta.identity() == "first"
        assert not writer.meta.is_index()
        assert writer.meta.claim_as_index()
        assert writer.meta.is_index()
        writer.records.insert([row("a")], None)
        assert not writer.meta.is_index()
        assert not writer.meta.claim_as_index()


def test_an_erasure_is_proven(store):
    with store.atomic() as writer:
        embedder = writer.vectors.register_embedder(**EMBEDDER)
        ids = writer.records.insert(
            [row("gone", "Zaphod Beeblebrox", vectors=(vector(5),)), row("kept", "Arthur Dent")], embedder
        )
        erased = writer.erasure.begin(ids[:1], ())
        writer.records.delete(ids[:1])
        writer.erasure.finish(erased)
    receipt = store.prove_erasure(erased)
    if is_address(store.path):  # what a server keeps outside of its tables cannot be searched
        assert [problem.split(",")[0] for problem in receipt.problems] == [
            "PostgreSQL keeps what was deleted in its WAL"
        ]
    else:
        assert receipt.complete, receipt.problems
    assert receipt.ids == ("gone",)
    assert receipt.removed["record"] == receipt.removed["vector"] == 1
    with store.read() as reader:
        assert reader.lexicon.lookup(["zaphod", "arthur"]).keys() == {"arthur"}
