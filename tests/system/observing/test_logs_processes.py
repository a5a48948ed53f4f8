"""What is logged, by whom and at which level; nothing is shown where the program does not ask."""

from __future__ import annotations

import json

import pytest

from tests.unit.core.memory.support import run

KERNELS = """
import json, logging
told = []
handler = logging.Handler()
handler.emit = lambda record: told.append((record.levelname, record.name, record.getMessage().split(" in ")[0]))
logging.getLogger("recallite").addHandler(handler)
logging.getLogger("recallite").setLevel("INFO")
import recallite_kernels
recallite_kernels.warmup()
print(json.dumps(told))
"""


@pytest.mark.usefixtures("compiled_kernels")
def test_kernels_that_are_loaded_are_told():
    assert json.loads(run(KERNELS, RECALLITE_KERNELS="numba")) == [["INFO", "recallite.kernels", "kernels ready"]]


SILENT = """
import sys
sys.modules["sqlite_vec"] = None
from recallite import Memory
class Broken:
    name = fingerprint = "broken"
    dimension = 4
    def embed(self, texts):
        raise RuntimeError("down")
with Memory(":memory:", embedder=Broken()) as memory:
    memory.remember("red apple")
{after}
"""


def test_nothing_is_shown_unless_the_program_asks():
    after = "import logging; print(logging.getLogger('recallite').handlers, logging.root.handlers, file=sys.stdout)"
    code = SILENT.format(after=after).replace("import sys\n", "import sys; sys.stderr = sys.stdout\n", 1)
    assert run(code) == "[<NullHandler (NOTSET)>] []\n"


SERVER = """
import logging, sys
sys.stderr = sys.stdout
from recallite_cli.run import debug_log, server_log
with debug_log():
    server_log()
    for name in ("recallite.engine", "another"):
        for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
            logging.getLogger(name).log(level, "said")
"""


@pytest.mark.parametrize(
    ("debug", "own", "others"),
    [
        ("0", ["WARNING", "ERROR"], ["ERROR"]),
        ("1", ["DEBUG", "INFO", "WARNING", "ERROR"], ["INFO", "WARNING", "ERROR"]),
    ],
)
def test_a_server_shows_warnings_and_the_errors_of_others_and_with_debug_more(debug, own, others):
    told = [
        f"{level} {name}: said" for name, levels in (("recallite.engine", own), ("another", others)) for level in levels
    ]
    assert run(SERVER, RECALLITE_DEBUG=debug).splitlines() == told
