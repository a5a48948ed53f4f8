"""remember, update, forget, link, and what they print."""

import json


def test_unicode_survives_a_process_and_an_ascii_locale(process):
    id = process("remember", "naïve 日本 🎉 שלום", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0").out.strip()
    shown = process("get", id, "--json", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert json.loads(shown.out)["text"] == "naïve 日本 🎉 שלום"
