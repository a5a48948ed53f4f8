"""Spans: their names, attributes and parents, and a memory without OpenTelemetry."""

from __future__ import annotations

import asyncio

import pytest

from recallite import AsyncMemory
from recallite.errors import InvalidInput, NotFound
from recallite.model.records import NewRecord
from recallite.upkeep import MemoryStore
from tests.limits import LAST_RESORT_SECONDS
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, unit


def named(exporter):
    return {span.name: span for span in exporter.get_finished_spans()}


def attributes(span):
    return {name.removeprefix("recallite."): value for name, value in span.attributes.items()}


def test_a_recall_is_a_span_with_its_figures_and_stages(memory, traced):
    memory.remember_many(["red apple", "red berry", "green leaf"])
    hits = memory.recall("red", limit=5)
    found = attributes(named(traced[1])["recallite.recall"])
    stages = {f"{name}_ms": taken_ms for name, taken_ms in hits.stages.items()}
    assert found == {"queries": 1, "limit": 5, "mode": "hybrid", "hits": 2, **stages}


def test_recall_many_is_one_span_without_stages(memory, traced):
    memory.remember_many(["red apple", "green leaf"])
    memory.recall_many(["red", "green", "blue"], mode="keyword", limit=4)
    found = attributes(named(traced[1])["recallite.recall"])
    assert found == {"queries": 3, "limit": 4, "mode": "keyword", "hits": 2}


def test_writes_are_spans_with_their_counts(memory, traced):
    first = memory.remember("red apple")
    memory.remember("red apple")
    memory.remember_many(["a leaf", "a berry"])
    memory.forget(first.id)
    spans = traced[1].get_finished_spans()
    assert [(span.name, attributes(span)) for span in spans] == [
        ("recallite.remember", {"outcome": "created"}),
        ("recallite.remember", {"outcome": "duplicate"}),
        ("recallite.remember_many", {"memories": 2}),
        ("recallite.forget", {"memories": 1, "versions": 0}),
    ]


def test_spans_are_within_that_of_the_caller(memory, traced):
    tracer, exporter = traced
    with tracer.start_as_current_span("caller") as caller:
        memory.remember("red apple")
        memory.recall("red")
    memory.recall("red")
    parents = [(span.name, span.parent and span.parent.span_id) for span in exporter.get_finished_spans()]
    own = caller.get_span_context().span_id
    assert parents == [
        ("recallite.remember", own), ("recallite.recall", own), ("caller", None), ("recallite.recall", None),
    ]  # fmt: skip


def test_what_an_operation_calls_is_within_its_span(memory, traced, tmp_path):
    memory.remember("red apple")
    memory.store.rebuild()
    spans = named(traced[1])
    assert spans["recallite.verify"].parent.span_id == spans["recallite.rebuild"].get_span_context().span_id


def test_the_spans_of_tasks_are_each_within_their_own(path, traced):
    tracer, exporter = traced

    async def one(memory, number):
        with tracer.start_as_current_span(f"caller {number}"):
            await memory.remember(f"apple {number}")
            async with memory.transaction():
                await memory.remember(f"berry {number}")
            await memory.recall(f"apple {number}")

    async def main():
        async with AsyncMemory(path, settings=PLAIN) as memory:
            await asyncio.gather(*(one(memory, number) for number in range(5)))

    asyncio.run(asyncio.wait_for(main(), LAST_RESORT_SECONDS))
    spans = exporter.get_finished_spans()
    callers = {span.get_span_context().span_id: span.name for span in spans if span.name.startswith("caller")}
    inside = sorted((callers[span.parent.span_id], span.name) for span in spans if span.parent is not None)
    each = ["recallite.recall", "recallite.remember", "recallite.remember"]
    assert inside == [(f"caller {number}", name) for number in range(5) for name in each]


def test_an_error_is_told_by_its_class_alone(memory, traced):
    from opentelemetry.trace import StatusCode

    memory.remember(NewRecord("red apple", vector=unit(1)))
    with raises(InvalidInput, "vector"):
        memory.recall("red", limit=2, vector=[1.0])
    with pytest.raises(NotFound, match="no-such-id"):
        memory.forget("no-such-id")
    spans = named(traced[1])
    for name, error in (("recallite.recall", "InvalidInput"), ("recallite.forget", "NotFound")):
        span = spans[name]
        assert span.attributes["error.type"] == error
        assert (span.status.status_code, span.status.description, span.events) == (StatusCode.ERROR, None, ())
    assert attributes(spans["recallite.recall"]).keys() == {"queries", "limit", "mode", "error.type"}
    assert spans["recallite.remember"].status.status_code == StatusCode.UNSET


def test_a_span_ends_where_the_caller_interrupts(memory, traced):
    from opentelemetry import trace
    from opentelemetry.trace import StatusCode

    def interrupted():
        yield "red apple"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.remember_many(interrupted())
    (span,) = traced[1].get_finished_spans()
    assert (span.name, span.status.status_code) == ("recallite.remember_many", StatusCode.UNSET)
    assert not trace.get_current_span().get_span_context().is_valid


def test_a_span_that_is_not_sampled_passes_that_on(memory, traced, monkeypatch):
    from opentelemetry.sdk.trace import TracerProvider, sampling

    from recallite.system import telemetry

    provider = TracerProvider(sampler=sampling.ParentBased(sampling.ALWAYS_OFF))
    recorded = telemetry._telemetry._replace(tracer=provider.get_tracer("tests"))
    monkeypatch.setattr(telemetry, "_telemetry", recorded)
    seen = []

    def items():
        seen.append(recorded.trace.get_current_span())
        yield "red apple"

    memory.remember_many(items())
    assert seen[0].get_span_context().is_valid
    assert not seen[0].is_recording()


def test_the_method_of_a_memory_is_itself(memory):
    assert MemoryStore.verify.__doc__.startswith("Check the file")
    assert MemoryStore.verify.__name__ == "verify"
