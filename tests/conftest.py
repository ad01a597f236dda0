"""What tests share: a running server, a browser page that knows whom it talked to, a GPU or a skip."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from engine import HuggingFaceModel
from engine.catalogue import load_huggingface

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WITNESSED = "hosts.txt"
IDLE = '[data-testid="stApp"][data-test-script-state="notRunning"]'


@dataclass(frozen=True)
class Server:
    """A running app: where it answers, where it logs, and its process."""

    url: str
    log: Path
    pid: int


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip GPU tests where there is no GPU."""
    if not any(item.get_closest_marker("gpu") for item in items):
        return
    import torch

    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture(scope="session")
def minilm() -> HuggingFaceModel:
    """The packaged MiniLM, loaded once for all tests; `make test` installs it."""
    return load_huggingface("minilm", device="cpu")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Chromium; without it browser tests skip on a person's machine and fail under CI."""
    for name in CHROMIUM_NAMES:
        if path := shutil.which(name):
            return path
    reason = f"no Chromium on the path (looked for {', '.join(CHROMIUM_NAMES)})"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def streamlit_server(script: Path, folder: Path, *options: str, start: Path | None = None) -> Iterator[Server]:
    """Run a script with Streamlit on a free port for as long as the block lasts; its log lies in `folder`.

    It is started from `start`, or from `folder`. Scripts other than the app's own find the repository through
    PYTHONPATH; the app has to find it itself.
    """
    own = script.is_relative_to(ROOT)
    environment = {**os.environ} if own else {**os.environ, "PYTHONPATH": str(ROOT)}
    port, log_file = _free_port(), folder / "log.txt"
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.headless", "true", *options]
    command += ["--server.port", str(port)]
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=start or folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        server = Server(f"http://127.0.0.1:{port}", log_file, process.pid)
        try:
            _wait_for(server, process)
            yield server
        finally:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def app_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app as a reader starts it, from another folder, on a free port; it logs whom it talks to in `WITNESSED`."""
    folder = tmp_path_factory.mktemp("server")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT / "tests" / "witness"))
        patch.setenv("WITNESS_LOG", str(folder / WITNESSED))
        with streamlit_server(ROOT / "app" / "main.py", folder, start=Path("/")) as server:
            yield server


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    """One Chromium for all tests."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=list(CHROMIUM_FLAGS))
        yield running
        running.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser window of its own, with nothing remembered and the clipboard open."""
    window = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    window.grant_permissions(["clipboard-read", "clipboard-write"])
    yield window
    window.close()


@pytest.fixture
def hosts(context: BrowserContext) -> set[str]:
    """Every host that the browser window asks for anything, filled while the test runs."""
    asked: set[str] = set()

    def note(url: str) -> None:
        if host := urlsplit(url).hostname:
            asked.add(host)

    context.on("request", lambda request: note(request.url))
    context.on("page", lambda opened: opened.on("websocket", lambda websocket: note(websocket.url)))
    return asked


@pytest.fixture
def page(context: BrowserContext, hosts: set[str]) -> Page:
    """A tab whose requests are recorded in `hosts`."""
    tab = context.new_page()
    tab.set_default_timeout(30_000)
    return tab


def settle(page: Page) -> None:
    """Wait until the script has run and the page stands still."""
    page.wait_for_timeout(100)
    page.wait_for_selector(IDLE)
    page.wait_for_timeout(100)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _wait_for(server: Server, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=1) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"the app did not start:\n{server.log.read_text(errors='replace')}")
