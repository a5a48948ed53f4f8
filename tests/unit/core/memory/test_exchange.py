"""Export and import: nothing is lost, nothing bad comes in, memory stays bounded."""

import io
import json
import tracemalloc

import pytest

from recallite import Filter, Memory
from recallite import transfer as exchange
from recallite.errors import InvalidInput, InvalidItem, RecalliteError
from recallite.model.records import NewRecord
from tests.unit.core.memory.support import PLAIN, WordEmbedder


def opened(path=":memory:", embedder=None):
    if embedder is None:
        return Memory(path, settings=PLAIN)
    return Memory(path, embedder=embedder)


def exported(memory, **options):
    stream = io.StringIO()
    memory.transfer.export(stream, **options)
    return stream.getvalue()


def fill(memory):
    """Records with every field, versions, links and access counts."""
    first = memory.remember(
        NewRecord(
            'an episode\nof "two" lines, 日本 🎉 שלום',
            kind="episode",
            scope="/a/b",
            tags=["x;y", " z", "[w"],
            importance=0.25,
            metadata={"k": [1, 2.0, None, {"n": "v"}]},
            context="Caroline",
            topic="t",
            source="s",
            position=3,
            created_at="1970-01-01T00:00:00Z",
            valid_from="0001-01-01T00:00:00.000001Z",
            expires_at="9999-12-31T23:59:59.999999Z",
            pinned=True,
        )
    )
    second = memory.remember("a fact about the sea", scope="/a", source="s", tags=["q"])
    third = memory.remember("long ago expired", created_at="2000-01-01T00:00:00Z", expires_at="2001-01-01T00:00:00Z")
    memory.update(first.id, text="the second text")
    memory.update(first.id, text="the third text", context=None)
    memory.update(second.id, importance=1.0)
    memory.link(second.id, first.id, type="causal", strength=0.25)
    memory.link(first.id, third.id)
    memory.remember("outside", scope="/apple")
    return first, second, third


def touched(memory, id):
    """Give a memory an access count, as recall does."""
    with memory._engine.store.read() as reader:
        accessed = [*reader.records.find_ids([id], "/").items()]
    memory._engine.accesses.add(accessed)
    memory._engine.accesses.add(accessed)


def lines(*objects):
    return io.StringIO("".join(json.dumps(each) + "\n" for each in objects))


@pytest.mark.parametrize("batch_size", [1, 2, 1024])
def test_jsonl_comes_back_byte_for_byte(batch_size):
    with opened() as memory, opened() as other:
        first, *_ = fill(memory)
        touched(memory, first.id)
        text = exported(memory)
        receipt = other.transfer.import_(io.StringIO(text), batch_size=batch_size)
        assert (receipt.records, receipt.skipped, receipt.links) == (4, 0, 2)
        assert exported(other) == text
        assert [each.text for each in other.history(first.id)] == [each.text for each in memory.history(first.id)]
        assert other.get(first.id).access_count == 2
        assert other.store.verify().ok


def test_vectors_come_back_byte_for_byte_and_are_not_made_again():
    embedder = WordEmbedder()
    with opened(embedder=embedder) as memory, opened(embedder=embedder) as other:
        fill(memory)
        text = exported(memory, vectors=True)
        assert '"vectors":["' in text
        embedded = len(embedder.texts)
        other.transfer.import_(io.StringIO(text))
        assert len(embedder.texts) == embedded
        assert exported(other, vectors=True) == text
        assert other.store.verify().ok


def test_vectors_of_another_embedder_are_made_anew():
    with opened(embedder=WordEmbedder()) as memory, opened(embedder=WordEmbedder("others")) as other:
        fill(memory)
        other.transfer.import_(io.StringIO(exported(memory, vectors=True)))
        assert json.loads(exported(other).splitlines()[0])["embedder"]["fingerprint"] == "others:16"
        assert other.store.stats().vectors == memory.store.stats().vectors
        assert other.store.verify().ok


def test_vectors_survive_a_store_without_an_embedder():
    with opened(embedder=WordEmbedder()) as memory, opened() as other:
        fill(memory)
        text = exported(memory, vectors=True)
        other.transfer.import_(io.StringIO(text))
        assert exported(other, vectors=True) == text


def test_vectors_are_embedded_where_the_file_has_none():
    with opened() as memory, opened(embedder=WordEmbedder()) as other:
        fill(memory)
        other.transfer.import_(io.StringIO(exported(memory)))
        assert other.store.stats().pending == 0
        assert other.store.stats().vectors == 6
        assert other.store.verify().ok


def test_given_vectors_are_taken():
    with opened() as memory:
        memory.transfer.import_(lines({"text": "a", "vector": [3, 4]}))
        assert memory.store.stats().dimension == 2
        with pytest.raises(InvalidItem, match=r"line 2: vector has shape \(3,\)"):
            memory.transfer.import_(lines({"text": "b", "vector": [1, 0]}, {"text": "c", "vector": [1, 2, 3]}))
        assert memory.count() == 1


def test_a_scoped_handle_reads_back_what_it_wrote():
    with opened() as memory, opened() as other:
        first, second, _ = fill(memory)
        text = exported(memory.scoped("/a"))
        assert first.id in text
        assert "outside" not in text
        assert "expired" not in text
        other.scoped("/a").transfer.import_(io.StringIO(text))
        assert {each.id: each.scope for each in other.list()}.keys() == {first.id, second.id}
        assert other.neighbors(second.id)[0].target == first.id


def test_scopes_are_written_as_the_handle_sees_them():
    with opened() as memory, opened() as other:
        fill(memory)
        stream = io.StringIO()
        chosen = Filter().within("/a")
        exchange.export(memory._engine, stream, chosen, format="jsonl", vectors=False, on_progress=None)
        assert [json.loads(line).get("scope") for line in stream.getvalue().splitlines()] == [
            None, "/b", "/b", "/b", "/", None,
        ]  # fmt: skip
        other.scoped("/elsewhere").transfer.import_(io.StringIO(stream.getvalue()))
        assert sorted(each.scope for each in other.list()) == ["/elsewhere", "/elsewhere/b"]


def test_filters_choose_what_is_exported():
    with opened() as memory:
        first, second, _ = fill(memory)
        assert [json.loads(line)["id"] for line in exported(memory, kinds=["episode"]).splitlines()[1:]] == [
            first.id
        ] * 3
        assert second.id in exported(memory, tags=["q"])
        assert memory.transfer.export(io.StringIO(), scope="/a") == 2
        assert memory.transfer.export(io.StringIO(), where={"importance": {"eq": 1.0}}) == 1


def test_what_is_here_already_is_skipped_and_kept():
    with opened() as memory:
        first, *_ = fill(memory)
        text = exported(memory)
        memory.update(first.id, text="newer than the file")
        again = memory.transfer.import_(io.StringIO(text))
        assert (again.records, again.skipped, again.links) == (0, 4, 0)
        assert memory.get(first.id).text == "newer than the file"
        twice = memory.transfer.import_(lines({"id": "n", "text": "once"}, {"id": "n", "text": "twice"}))
        assert (twice.records, twice.skipped) == (1, 1)
        assert memory.get("n").text == "once"


def test_lines_of_plain_arguments_are_accepted_below_a_scope():
    with opened() as memory:
        receipt = memory.transfer.import_(
            lines(
                {"text": "one"},
                {"text": "two", "scope": "/x", "tags": ["t"], "created_at": "2020-01-01T01:00:00+01:00"},
            ),
            scope="/in",
        )
        assert receipt.records == 2
        two, one = memory.list()
        assert (one.scope, two.scope, two.tags) == ("/in", "/in/x", ("t",))
        assert two.created_at.isoformat() == "2020-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "is not JSON"),
        ('{"text": "a"} {"text": "b"}', "is not JSON"),
        ("[1]", "a line is one JSON object, this is `array`"),
        ("{}", "has no 'text'"),
        ('{"text": null}', "has no 'text'"),
        ('{"text": " "}', "nothing to remember"),
        ('{"text": "a\\u0000b"}', "NUL character at 1"),
        ('{"text": "a\\ud800"}', "half of a surrogate pair"),
        ('{"text": 5}', "got `int` at `text`"),
        ('{"text": "a", "tags": "t"}', "at `tags`"),
        ('{"text": "a", "importance": 2}', "importance is 2.0"),
        ('{"text": "a", "importance": true}', "at `importance`"),
        ('{"text": "a", "colour": "red"}', "unknown field `colour`: use text, scope"),
        ('{"text": "a", "scope": "x"}', "not absolute"),
        ('{"text": "a", "created_at": "2020-01-01T00:00"}', "no time zone"),
        ('{"text": "a", "created_at": 5}', "at `created_at`"),
        ('{"text": "a", "position": -1}', "position is -1"),
        ('{"text": "a", "access_count": -1}', "access_count is -1"),
        ('{"text": "a", "vector": [0, 0]}', "all zeros"),
        ('{"text": "a", "vectors": ["AAAA"]}', "no header"),
        ('{"text": "a", "id": ""}', "id is ''"),
        ('{"text": "a", "metadata": [1]}', "at `metadata`"),
        ('{"text": "a", "recorded_until": "2020-01-01T00:00:00Z"}', "needs the id"),
        ('{"id": "i", "text": "a", "recorded_from": "2020-01-01T00:00:00Z", "recorded_until": "2021-01-01T00:00:00Z"}',
         "no open version follows it"),
        ('{"id": "i", "text": "a", "recorded_from": "2020-01-01T00:00:00Z", "recorded_until": "2019-01-01T00:00:00Z"}',
         "recorded_until is before recorded_from"),
        ('{"link": {"source": "a", "target": "b"}}', "the link's end 'a' is no memory"),
        ('{"link": {"source": "a", "target": "a"}}', "linked to itself"),
        ('{"link": {"source": "a", "target": "b", "type": "odd"}}', "type is 'odd'"),
        ('{"link": {"source": "a", "target": "b", "strength": 2}}', "strength is 2"),
        ('{"link": 5}', "at `link`"),
        ('{"format": "other", "version": 1}', "names the format 'other'"),
        ('{"format": "recallite", "version": 2}', "upgrade recallite"),
        ('{"text": "a", "metadata": {"a": ' + "[" * 50_000, "nested too deeply"),
        ('{"text": "\udcff"}', "the byte 0xff at character 11 is not UTF-8"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named_and_nothing_of_its_batch_stays(line, reason):
    with opened() as memory:
        with pytest.raises(InvalidItem) as refused:
            memory.transfer.import_(io.StringIO('{"text": "good"}\n\n' + line + "\n"))
        assert "line 3: " in str(refused.value) or "line 4: " in str(refused.value)
        assert reason in str(refused.value)
        assert refused.value.stored == 0
        assert memory.count() == 0


def test_vectors_that_were_changed_are_refused():
    with opened(embedder=WordEmbedder()) as memory, opened(embedder=WordEmbedder()) as other:
        memory.remember("a text")
        head, line = exported(memory, vectors=True).splitlines()
        changed = json.loads(line)
        changed["vectors"] = ["AAAA" + changed["vectors"][0][4:8]]
        with pytest.raises(InvalidItem, match="line 2: a vector has 6 bytes: 16 float32 are 64"):
            other.transfer.import_(io.StringIO(head + "\n" + json.dumps(changed)))
        changed["vectors"] = ["A" * 86 + "=="]
        with pytest.raises(InvalidItem, match="line 2: a vector is not of length 1"):
            other.transfer.import_(io.StringIO(head + "\n" + json.dumps(changed)))
        assert other.count() == 0


def test_the_batches_before_a_bad_line_stay():
    with opened() as memory:
        source = io.StringIO("".join(f'{{"text": "memory {n}"}}\n' for n in range(5)) + "oops\n")
        with pytest.raises(InvalidItem, match=r"^line 6: .* \(4 memories before it are stored") as refused:
            memory.transfer.import_(source, batch_size=2)
        assert (refused.value.stored, refused.value.position, memory.count()) == (4, 5, 4)


def test_csv_keeps_what_remember_takes():
    with opened() as memory, opened() as other:
        first, *_ = fill(memory)
        text = exported(memory, format="csv")
        assert other.transfer.import_(io.StringIO(text), format="csv").records == 4
        assert exported(other, format="csv") == text
        kept, was = other.get(first.id), memory.get(first.id)
        for name in (
            "text",
            "tags",
            "importance",
            "metadata",
            "source",
            "position",
            "created_at",
            "valid_from",
            "pinned",
        ):
            assert getattr(kept, name) == getattr(was, name)


def test_csv_with_a_byte_order_mark_and_quoted_line_breaks(tmp_path):
    path = tmp_path / "notes.csv"
    path.write_bytes(
        '\ufefftext,tags,metadata,pinned\r\n"a, ""b""\r\nc",x; y,"{""k"": 1}",TRUE\r\n\r\nd,,,\r\n'.encode()
    )
    with opened() as memory:
        assert memory.transfer.import_(path).records == 2
        second, first = memory.list()
        assert (first.text, first.tags, first.metadata, first.pinned) == ('a, "b"\r\nc', ("x", "y"), {"k": 1}, True)
        assert (second.text, second.tags, second.metadata, second.pinned) == ("d", (), {}, False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "line 0: the header row has no column 'text'"),
        ("body\nx\n", "line 1: the header row has the column 'body'"),
        ("text;tags\nx;y\n", "line 1: the header row has the column 'text;tags'"),
        ("text,text\nx,y\n", "a column twice"),
        ("text,tags\nx\n", "line 2: the row has 1 cells and the header 2"),
        ("text,importance\na,0.5\nb,high\n", "line 3: importance is 'high': give a number"),
        ("text,importance\na,nan\n", "line 2: importance is nan"),
        ("text,position\na,1.5\n", "line 2: position is '1.5': give a whole number"),
        ("text,pinned\na,maybe\n", "line 2: pinned is 'maybe': give true or false"),
        ("text,metadata\na,[1]\n", "line 2: metadata is '[1]': give a JSON object"),
        ('text,tags\na,"[1]"\n', "line 2: tags is '[1]'"),
        ('text\n"a\n', "is not CSV"),
        ('text\n"a"b\n', "line 2: the row is not CSV"),
        ("text,tags\n,x\n", "line 2: text is ''"),
        ("text\na\x00b\n", "line 2: text holds a NUL"),
    ],
)
def test_a_bad_row_is_named(text, reason):
    with opened() as memory:
        with pytest.raises(InvalidItem) as refused:
            memory.transfer.import_(io.StringIO(text, newline=""), format="csv")
        assert reason in str(refused.value)
        assert memory.count() == 0


def test_text_is_a_memory_a_line(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes("\ufefffirst\r\n\r\n  second \u2028 line \n   \nthird".encode())
    with opened() as memory:
        assert memory.transfer.import_(path).records == 3
        assert [each.text for each in memory.list(order="oldest")] == ["first", "second \u2028 line", "third"]
        memory.remember("with\n a break")
        assert memory.transfer.export(tmp_path / "out.txt") == 4
        assert (tmp_path / "out.txt").read_text(encoding="utf-8").split("\n")[2:] == ["third", "with a break", ""]


def test_long_texts_fit_into_every_format():
    text = "word " * 150_000 + "end"
    with opened() as memory, opened() as other:
        memory.remember(text)
        for count, format in enumerate(("jsonl", "csv", "text"), 1):
            stored = exported(memory, format=format)
            other.transfer.import_(io.StringIO(stored.replace(memory.list()[0].id, f"id{count}")), format=format)
            assert other.list(order="newest")[0].text == text


def test_bytes_that_are_not_utf8_are_named_by_line(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes(b"fine\ncaf\xe9\n")
    with opened() as memory:
        with pytest.raises(InvalidItem, match="line 2: the byte 0xe9 at character 4 is not UTF-8"):
            memory.transfer.import_(path)
        path.write_bytes("wide".encode("utf-16"))
        with pytest.raises(InvalidItem, match="line 1: the byte 0xff at character 1 is not UTF-8"):
            memory.transfer.import_(path)
        strict = io.TextIOWrapper(io.BytesIO(b"fine\ncaf\xe9\n"), encoding="utf-8")
        with pytest.raises(InvalidItem, match="is not UTF-8"):
            memory.transfer.import_(strict, format="text")


def test_paths_that_cannot_be_used_are_refused(tmp_path):
    store = tmp_path / "memory.db"
    with opened(store) as memory:
        memory.remember("kept")
        (tmp_path / "again.jsonl").symlink_to(store)
        for place in (tmp_path / "missing.jsonl", tmp_path, store, tmp_path / "again.jsonl", "", "a\0b.csv"):
            with pytest.raises(InvalidInput):
                memory.transfer.import_(place, format="jsonl")
        for place in (tmp_path / "no" / "x.jsonl", tmp_path, store, tmp_path / "again.jsonl", str(store) + "-wal", ""):
            with pytest.raises(InvalidInput):
                memory.transfer.export(place, format="jsonl")
        with pytest.raises(InvalidInput, match="not clear from its ending"):
            memory.transfer.export(tmp_path / "x.dat")
        with pytest.raises(InvalidInput, match="format is 'xml'"):
            memory.transfer.export(tmp_path / "x.xml", format="xml")
        assert memory.get(memory.list()[0].id).text == "kept"


def test_a_failed_export_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "out.jsonl"
    target.write_text("old")
    target.chmod(0o600)

    def stop(done, total):
        raise KeyboardInterrupt

    with opened() as memory:
        memory.remember("a")
        with pytest.raises(KeyboardInterrupt):
            memory.transfer.export(target, on_progress=stop)
        assert target.read_text() == "old"
        assert [each.name for each in tmp_path.iterdir()] == ["out.jsonl"]
        memory.transfer.export(target)
        assert target.read_text().count("\n") == 2
        assert target.stat().st_mode & 0o777 == 0o600


def test_a_device_is_written_to_and_not_replaced():
    with opened() as memory:
        memory.remember("a")
        assert memory.transfer.export("/dev/null", format="text") == 1


def test_progress_counts_lines_in_and_memories_out(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("\n".join(f"memory {n}" for n in range(1200)))
    seen = []
    with opened() as memory:
        memory.transfer.import_(path, batch_size=500, on_progress=lambda *each: seen.append(each))
        assert seen == [(500, 1200), (1000, 1200), (1200, 1200)]
        seen.clear()
        memory.transfer.export(tmp_path / "out.jsonl", on_progress=lambda *each: seen.append(each))
        assert seen == [(500, 1200), (1000, 1200), (1200, 1200)]


def test_both_ways_are_streamed(tmp_path):
    class Endless(io.TextIOBase):
        """Lines made as they are read."""

        def __init__(self, count):
            self.left = count

        def readline(self, size=-1):
            self.left -= 1
            return "" if self.left < 0 else json.dumps({"text": f"memory {self.left} " + "of some length " * 60}) + "\n"

    class Nothing(io.TextIOBase):
        def write(self, text):
            return len(text)

    def peak_bytes(call):
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before

    with opened(tmp_path / "m.db") as memory:
        tracemalloc.start()
        try:
            memory.transfer.import_(Endless(200), batch_size=100)
            few = peak_bytes(lambda: memory.transfer.import_(Endless(500), batch_size=100))
            many = peak_bytes(lambda: memory.transfer.import_(Endless(1500), batch_size=100))
            assert many < 2 * few + 500_000
            memory.store.catch_up()
            assert peak_bytes(lambda: memory.transfer.export(Nothing())) < 2_000_000  # 2,200 records of 900 characters
        finally:
            tracemalloc.stop()


def test_an_import_beside_another_writer_skips_what_came_meanwhile(tmp_path, monkeypatch):
    from recallite.transfer import streaming

    with opened(tmp_path / "m.db") as memory, opened(tmp_path / "m.db") as other:
        real = streaming.embed_rows

        def slow(*arguments):
            monkeypatch.setattr(streaming, "embed_rows", real)
            other.transfer.import_(lines({"id": "same", "text": "theirs"}))
            real(*arguments)

        monkeypatch.setattr(streaming, "embed_rows", slow)
        receipt = memory.transfer.import_(lines({"id": "same", "text": "ours"}, {"id": "new", "text": "ours too"}))
        assert (receipt.records, receipt.skipped) == (1, 1)
        assert memory.get("same").text == "theirs"


def test_every_failure_is_one_of_ours():
    with opened() as memory:
        for junk in (
            "\x00",
            "\ufeff\ufeff",
            '"',
            "null",
            "1e999",
            '{"text":"a","importance":1e999}',
            "{" * 9,
            "\\",
            '{"":1}',
        ):
            with pytest.raises(RecalliteError):
                memory.transfer.import_(io.StringIO(junk))
        assert memory.count() == 0


def test_a_link_to_a_foreign_memory_is_told_as_one_to_an_unknown():
    with opened() as memory:
        foreign = memory.remember("Secret", scope="/b").id
        mine = memory.remember("Mine", scope="/a").id
        told = []
        for target in (foreign, "01a00000-0000-7000-8000-000000000000"):
            with pytest.raises(InvalidItem) as raised:
                memory.scoped("/a").transfer.import_(lines({"link": {"source": mine, "target": target}}))
            told.append(str(raised.value).replace(target, "…"))
        assert told[0] == told[1]
