"""What .ci/release refuses; the build itself needs package registries."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / ".ci").is_dir(), reason="the sdist has no .ci")


@pytest.fixture(scope="module")
def release() -> ModuleType:
    loader = SourceFileLoader("release", str(ROOT / ".ci" / "release"))
    spec = spec_from_loader("release", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def commit(folder: Path, **files: str) -> None:
    """Write files, named with `__` for `/`, and commit them."""
    for name, text in files.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".py" if name.endswith("version") else ".md").write_text(text, "utf-8")
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "--quiet", "--message", "Files")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    files = {"README": "It remembers.\n", "CHANGELOG": "# Changelog\n\n## 1.2.3, 2027-01-31\n\n- All of it\n"}
    version = {"engine__recallite___version": '__version__ = "1.2.3"\n'}
    commit(tmp_path, **files, docs__limits="Few.\n", **version)
    return tmp_path


def test_a_checkout_that_says_one_version_everywhere_is_released(release: ModuleType, checkout: Path) -> None:
    assert list(release.problems(checkout)) == []


def test_what_still_speaks_of_an_unreleased_version_is_listed(release: ModuleType, checkout: Path) -> None:
    commit(
        checkout,
        CHANGELOG="# Changelog\n\n## 1.2.3, not released yet\n",
        README="It is Unreleased.\n",
        docs__limits="Few.\n\nIt may change until 1.2.3 is out.\n",
    )
    changelog, readme, limits = release.problems(checkout)
    assert changelog.startswith("CHANGELOG.md: the first heading is ['1.2.3, not released yet']")
    assert readme == "README.md:1: still says 'It is Unreleased.'"
    assert limits == "docs/limits.md:3: still says 'It may change until 1.2.3 is out.'"


@pytest.mark.parametrize("version", ["1.2.4", "1.2.3.dev0"])
def test_the_changelog_and_the_package_state_the_same_version(
    release: ModuleType, checkout: Path, version: str
) -> None:
    commit(checkout, engine__recallite___version=f'__version__ = "{version}"\n')
    assert any("CHANGELOG.md" in problem and f"'## {version}," in problem for problem in release.problems(checkout))


def test_changes_that_are_not_committed_and_a_tag_that_exists_are_refused(release: ModuleType, checkout: Path) -> None:
    (checkout / "new.py").touch()
    git(checkout, "tag", "v1.2.3")
    assert list(release.problems(checkout)) == [
        "git: the work tree has changes:\n?? new.py",
        "git: v1.2.3 is tagged already: raise the version",
    ]


def wheel(path: Path, files: dict[str, str], licences: tuple[str, ...], expression: str = "Apache-2.0") -> Path:
    metadata = [f"License-Expression: {expression}", *(f"License-File: {name}" for name in licences)]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("recallite-1.2.3.dist-info/METADATA", "\n".join(metadata) + "\n\n")
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_a_wheel_has_the_licences_of_its_models_and_nothing_to_train_them_with(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = {"recallite_models/minilm/recallite_minilm.json": "{}"}
    both = tuple(f"models/recallite_models/minilm/{name}" for name in ("LICENSE", "NOTICE"))
    assert list(release.wheel_problems(wheel(tmp_path / "a.whl", models, both))) == []
    files = {**models, "benchmarks/training/pairs.py": ""}
    assert list(release.wheel_problems(wheel(tmp_path / "b.whl", files, both[:1], "MIT"))) == [
        "b.whl states the licence MIT",
        "b.whl does not list recallite_models/minilm/NOTICE among its licence files",
        "b.whl has benchmarks/training/pairs.py",
    ]
    monkeypatch.setattr(release, "LARGEST_WHEEL_BYTES", 100)
    (problem,) = release.wheel_problems(tmp_path / "a.whl")
    assert problem.endswith("bytes, more than 100")


def test_a_bill_of_materials_has_few_packages(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bom = tmp_path / "bom.json"
    bom.write_text('{"components": [{"name": "numpy"}, {"name": "apsw"}]}', "utf-8")
    assert list(release.package_problems(bom)) == []
    monkeypatch.setattr(release, "MOST_PACKAGES", 1)
    assert list(release.package_problems(bom)) == ["2 packages are installed, more than 1: apsw, numpy"]


def test_sums_are_those_of_every_file(release: ModuleType, tmp_path: Path) -> None:
    for name in ("b.whl", "a.tar.gz"):
        (tmp_path / name).write_text(name)
    release.write_sums(tmp_path)
    release.write_sums(tmp_path)
    assert (tmp_path / "SHA256SUMS").read_text("utf-8") == "".join(
        f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in ("a.tar.gz", "b.whl")
    )


def test_this_checkout_is_checked_by_the_names_that_the_script_knows(release: ModuleType) -> None:
    assert f"## {release.version_of(ROOT)}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
