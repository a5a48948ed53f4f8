"""What is recorded while a test runs: spans in memory, and log records at every level."""

from __future__ import annotations

import logging

import pytest

from recallite.system import telemetry


@pytest.fixture
def traced(monkeypatch):
    """A tracer of the caller, and the exporter that keeps its spans and those of Recallite."""
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed")
    from opentelemetry import context, trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("tests")
    monkeypatch.setattr(telemetry, "_telemetry", telemetry._Telemetry(tracer, context, trace))
    yield tracer, exporter
    provider.shutdown()


@pytest.fixture
def logged(caplog):
    """The (level, logger, message) of what Recallite logged so far; give a level to have those of it alone."""
    caplog.set_level(logging.DEBUG, logger="recallite")

    def told(level=None):
        records = [each for each in caplog.records if each.name.split(".")[0] == "recallite"]
        return [
            (each.levelname, each.name, each.getMessage())
            for each in records
            if level is None or each.levelname == level
        ]

    return told
