"""Spans: their names, attributes and parents, and a memory without OpenTelemetry."""

from __future__ import annotations

import pytest

from tests.unit.core.memory.support import run


def attributes(span):
    return {name.removeprefix("recallite."): value for name, value in span.attributes.items()}


WITHOUT = """
import sys
{before}
from recallite import Memory, Settings
with Memory(":memory:", settings=Settings(embedder="none")) as memory:
    memory.remember("red apple")
    assert [hit.text for hit in memory.recall("red")] == ["red apple"]
{after}
"""
MISSING = """
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
"""


@pytest.mark.parametrize("before", ["", MISSING], ids=["as it is", "missing"])
def test_a_memory_works_without_opentelemetry_and_does_not_import_it(before):
    after = "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    assert run(WITHOUT.format(before=before, after=after)) == "[]\n"


LATE = """
from opentelemetry import trace
from recallite import Memory, Settings
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
with Memory(":memory:", settings=Settings(embedder="none")) as memory:
    memory.remember("red apple")
    memory.recall("red")
    trace.set_tracer_provider(provider)
    memory.recall("red")
(span,) = exporter.get_finished_spans()
print(span.name, span.instrumentation_scope.name)
"""


def test_a_provider_that_is_set_late_gets_the_spans_from_then_on():
    pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")
    assert run(LATE) == "recallite.recall recallite\n"
