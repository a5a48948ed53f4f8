from __future__ import annotations

import subprocess
import sys


def test_importing_recallite_does_not_read_it():
    program = (
        "import recallite, recallite.memory; from recallite.text import words as vocabulary;"
        "assert vocabulary._shares.cache_info().currsize == 0"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
