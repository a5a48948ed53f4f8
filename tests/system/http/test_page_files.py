"""What the files of the page may hold, read without a browser."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

PAGE = files("recallite_server") / "http" / "page"
TEXTS = {each.name: each.read_text("utf-8") for each in PAGE.iterdir()}
SVG = "http://www.w3.org/2000/svg"


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_file_of_the_page_parses_no_markup_and_names_no_other_host(name):
    text = TEXTS[name].replace(SVG, "")
    assert re.findall(r"(?:inner|outer)HTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc|\beval\(", text) == []
    assert re.findall(r"new Function|set(?:Timeout|Interval)\(['\"`]|javascript:", text) == []
    assert re.findall(r"(?:https?:)?//[\w.-]+\.\w+|@import|url\(", text) == []
    assert len(text.splitlines()) <= 400


def test_the_document_has_no_inline_script_style_or_handler():
    text = TEXTS["index.html"]
    assert re.findall(r"<script[^>]*>(?!</script>)|<style|\sstyle=|\son\w+=", text) == []
    assert set(re.findall(r'(?:src|href)="page/([^"]+)"', text)) <= TEXTS.keys()


def test_every_module_that_is_imported_is_there_and_every_file_is_used():
    imported = {name for text in TEXTS.values() for name in re.findall(r'from "\./([^"]+)"', text)}
    named = set(re.findall(r'"page/([^"]+)"', TEXTS["index.html"])) | {"index.html"}
    assert imported | named == TEXTS.keys()
