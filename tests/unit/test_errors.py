"""Errors cross processes, machines and HTTP as what they are."""

import pickle

import msgspec
import pytest

from recallite.doors.operation import CODES, codes_of
from recallite.errors import CLASSES, DocumentError, EmbedderError, InvalidItem, NotFound, StoreError, plain
from recallite.model.reports import Remembered
from recallite_bulk.on_ray import _report
from recallite_documents.parser import Failure
from recallite_server import client

SIMPLE = [
    kind("m 'x' is wrong: mend it", reason)
    for kind in CLASSES.values()
    if kind is not InvalidItem
    for reason in kind.REASONS or (None,)
]
EVERY = [*SIMPLE, *(InvalidItem(7, 6, error, label="line 8") for error in SIMPLE), InvalidItem(1, 0, NotFound("m"))]


class OfAnEmbedder(EmbedderError):
    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


def as_told(error):
    item = (*as_told(error.error), error.position, error.stored, error.label) if isinstance(error, InvalidItem) else ()
    return type(error), error.reason, str(error), item


def name(error):
    return f"{type(error).__name__}-{error.reason}" + (
        f"-{name(error.error)}" if isinstance(error, InvalidItem) else ""
    )


def test_every_class_and_reason_has_its_codes():
    assert set(CODES) == {(type(error), error.reason) for error in EVERY}
    assert codes_of(OfAnEmbedder(1, 2)) == codes_of(EmbedderError("x"))


@pytest.mark.parametrize("error", EVERY, ids=name)
def test_an_error_is_pickled(error):
    assert as_told(pickle.loads(pickle.dumps(error))) == as_told(error)
    assert as_told(plain(error)) == as_told(error)


def test_an_error_of_a_class_elsewhere_is_one_of_the_class_that_it_is_derived_from():
    assert as_told(plain(OfAnEmbedder("a", "b"))) == as_told(EmbedderError("a b"))


@pytest.mark.parametrize("error", EVERY, ids=name)
def test_an_error_crosses_http(error):
    failures = pytest.importorskip("recallite_server.http.request_checks", reason="the extra server is not installed")
    answer = failures.error_response(error, ["m", "x"])
    told = msgspec.json.decode(answer.body)["error"]
    assert (told["type"], told["reason"]) == (type(error).__name__, error.reason)
    assert told["field"] == ("m" if not isinstance(error, InvalidItem) else None)
    with pytest.raises(type(error)) as raised:
        client.check_status(answer.status_code, answer.body)
    back = raised.value
    if isinstance(error, StoreError):  # whose message may name files of the server
        assert (type(back), back.reason, "the log of the server" in str(back)) == (type(error), error.reason, True)
    else:
        assert as_told(back) == as_told(error)


@pytest.mark.parametrize("error", EVERY, ids=name)
def test_an_error_crosses_ray(error):
    pytest.importorskip("pyarrow", reason="the extra bulk is not installed")
    (row,) = _report(Remembered(), failure=error).to_pylist()
    assert as_told(pickle.loads(row["failure"])) == as_told(error)


@pytest.mark.parametrize("reason", DocumentError.REASONS)
def test_an_error_of_the_reader_of_documents_crosses_its_pipe(reason):
    sent = msgspec.msgpack.encode(Failure("it is wrong", reason))
    assert msgspec.msgpack.decode(sent, type=Failure) == Failure("it is wrong", reason)
