"""The steps of the Dockerfile, run on this machine without Docker: python -m tests.container.

Paths of the image are below a temporary folder. The server runs as its user and in a network of its own, which leads
nowhere, if this process is the superuser's; then its health is checked, and a memory stored and recalled.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

ROOT = Path(__file__).parent.parent
_OUTSIDE = re.compile(r"(?<![\w.])/(opt|data|src)\b")
_PATIENCE_SECONDS = 120.0


class Step(NamedTuple):
    """An instruction of a Dockerfile, and what follows it."""

    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        """Its arguments: those of the form in JSON, or of a shell, without options."""
        if self.rest.startswith("["):
            return [str(word) for word in json.loads(self.rest)]
        return [word for word in shlex.split(self.rest) if not word.startswith("--")]


def stages() -> list[list[Step]]:
    """The steps of each stage."""
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    steps = [Step(*line.split(maxsplit=1)) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    begins = [place for place, step in enumerate(steps) if step.name == "FROM"]
    return [steps[begin:end] for begin, end in zip(begins, [*begins[1:], None], strict=True)]


def main() -> None:
    """Build and serve, or with arguments the part that runs in a network of its own."""
    if len(sys.argv) > 1:
        _serve(Path(sys.argv[1]), json.loads(sys.argv[2]))
        return
    build, image = stages()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        root = Path(folder)
        root.chmod(0o755)
        (root / "src").mkdir()
        # Another user may not enter the folder of this interpreter.
        public = shutil.which("python3", path="/usr/local/bin:/usr/bin") or sys.executable
        (root / "bin").mkdir()
        (root / "bin" / "python").symlink_to(public)
        environment = {**os.environ, "PATH": f"{root / 'bin'}:{os.environ['PATH']}"}
        environment.pop("PYTHONPATH", None)
        for step in build:
            if step.name == "COPY":
                _copy(step, root / "src")
            elif step.name == "RUN":
                subprocess.run(_inside(step.rest, root), shell=True, check=True, cwd=root / "src", env=environment)
        settings = {step.name: step.rest for step in image}
        command = [sys.executable, "-m", "tests.container", folder, json.dumps(settings)]
        alone = ["unshare", "--net"] if os.geteuid() == 0 else []
        subprocess.run([*alone, *command], check=True, cwd=ROOT)
    print("built, healthy, stored and recalled")


def _inside(text: str, root: Path) -> str:
    """A text in which paths of the image are below the folder."""
    return _OUTSIDE.sub(lambda path: f"{root}{path[0]}", text)


def _copy(step: Step, target: Path) -> None:
    *sources, last = step.words
    for source in sources:
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, target / last, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, target / last)


def _serve(root: Path, settings: dict[str, str]) -> None:
    """Run the server as the image does, and ask it."""
    user = int(settings["USER"]) if os.geteuid() == 0 else None
    if user is not None:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    data = root / "data"
    data.mkdir(mode=0o700)
    if user is not None:
        os.chown(data, user, user)
    variables = dict(entry.split("=", 1) for entry in shlex.split(_inside(settings["ENV"], root)))
    variables["PATH"] = variables["PATH"].replace("$PATH", os.environ["PATH"])
    run = {"env": variables, "cwd": data, "user": user, "group": user}
    words = [word for name in ("ENTRYPOINT", "CMD") for word in Step(name, settings[name]).words]
    # `env` finds the program by the PATH of the image.
    made = subprocess.run(
        ["env", *words[:1], "token", "create", "--json"], capture_output=True, check=True, encoding="utf-8", **run
    )  # type: ignore[call-overload]
    token = json.loads(made.stdout)["secret"]
    server = subprocess.Popen(["env", *words], **run)  # type: ignore[call-overload]
    try:
        health = Step("CMD", settings["HEALTHCHECK"].partition("CMD ")[2]).words
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while subprocess.run(["env", *health], capture_output=True, **run).returncode:  # type: ignore[call-overload]
            if server.poll() is not None or time.monotonic() > deadline:
                sys.exit("the server is not healthy")
            time.sleep(0.5)
        _ask("memories", {"text": "Ada prefers green tea"}, token)
        hits = _ask("recall", {"query": "What does Ada drink?"}, token)["hits"]
        assert hits[0]["text"] == "Ada prefers green tea"
    finally:
        server.terminate()
        server.wait(_PATIENCE_SECONDS)


def _ask(path: str, fields: dict[str, str], token: str) -> dict[str, list[dict[str, str]]]:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    with urlopen(Request(f"http://127.0.0.1:7333/v1/{path}", json.dumps(fields).encode(), headers)) as answer:
        return json.loads(answer.read())  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
