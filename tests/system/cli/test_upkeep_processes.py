"""stats, verify, rebuild, vacuum, backup, reembed, warmup, demo, version and help."""


def test_help_loads_nothing_heavy(process):
    done = process("--help", PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.err.splitlines()}
    assert not {"numpy", "numba", "apsw", "onnxruntime", "tokenizers", "rich"} & loaded


def test_a_command_compiles_nothing(process, empty):
    done = process("stats", "--json", RECALLITE_KERNELS="", PYTHONPROFILEIMPORTTIME="1", XDG_CACHE_HOME="/nonexistent",
                   RECALLITE_EMBEDDER="none")  # fmt: skip
    assert done.json["kernels"] == "python"
    assert "numba.core" not in done.err
