"""The house rules, checked in the source itself; each check is shown to be able to fail."""

import ast
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOP_LEVEL = {
    "app",
    "engine",
    "pages",
    "tests",
    "assets",
    "requirements.txt",
    "requirements-models.txt",
    "requirements-dev.txt",
    "README.md",
    "pyproject.toml",
    "Makefile",
    "LICENSE",
}
HOUSE = {"app", "engine", "pages", "tests"}
LOADERS = {"pickle", "cPickle", "dill", "joblib", "cloudpickle", "shelve", "marshal"}
PAGE_LINES = 80


def sources(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Give every Python file under these folders as its path from the root and its syntax tree."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module, package: str = "") -> set[str]:
    """Give the dotted names a module imports, `from a import b` as both a and a.b, relative ones resolved."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names |= {base} | {f"{base}.{alias.name}".strip(".") for alias in node.names}
        elif isinstance(node, ast.Call) and dotted(node.func).endswith("import_module"):
            names |= {str(name.value) for name in node.args[:1] if isinstance(name, ast.Constant)}
    return names - {""}


def roots(names: set[str]) -> set[str]:
    """Give the top-level package of each dotted name."""
    return {name.split(".")[0] for name in names}


def dotted(node: ast.expr) -> str:
    """Write a name or attribute chain as dotted text; anything else as nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else node.attr
    return ""


def package_of(path: str) -> str:
    """Give the package that relative imports in this file start from."""
    return ".".join(Path(path).parent.parts)


def forbidden_imports(path: str, tree: ast.Module, page_names: set[str]) -> set[str]:
    """Name what this file imports against the arrows pages -> app -> engine."""
    top = roots(imported(tree, package_of(path)))
    if path.startswith("engine/"):
        return top & {"streamlit", "plotly", "altair", "app", "pages", "tests"}
    if path.startswith("app/charts"):
        return top & {"streamlit", "pages", "tests"}
    if path.startswith("app/"):
        return top & {"pages", "tests"}
    if path.startswith("pages/"):
        return top & ({"pages", "tests", "transformers"} | page_names)
    return set()


def cache_uses(tree: ast.Module) -> set[str]:
    """Name every use of Streamlit's caches."""
    names = {dotted(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Name)}
    return {name for name in names | imported(tree) if name.split(".")[-1] in {"cache_data", "cache_resource"}}


def unsafe_loads(tree: ast.Module) -> set[str]:
    """Name whatever could run code found in a file of weights."""
    found = roots(imported(tree)) & LOADERS
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = dotted(node.func)
        if name == "torch.load" or (isinstance(node.func, ast.Name) and name in {"eval", "exec"}):
            found.add(name)
        for keyword in node.keywords:
            if keyword.arg == "trust_remote_code" and not (
                isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            ):
                found.add("trust_remote_code")
    return found


def undocumented(tree: ast.Module) -> set[str]:
    """Name the public functions, methods and classes without a docstring; the module itself counts."""
    found = set() if ast.get_docstring(tree) else {"the module"}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if node.name.startswith("_"):
                    continue
                overload = any(dotted(mark).endswith("overload") for mark in node.decorator_list)
                if not ast.get_docstring(node) and not overload:
                    found.add(prefix + node.name)
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")

    visit(tree.body, "")
    return found


def code_lines(text: str) -> int:
    """Count the lines that are neither blank nor comment."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("#"))


def page_names() -> set[str]:
    """Give the names of the page scripts."""
    return {path.stem for path in (ROOT / "pages").glob("*.py")}


def importable_elsewhere() -> set[str]:
    """Give every name that importing could mean besides this repository."""
    return set(sys.stdlib_module_names) | set(packages_distributions())


def clashes(names: set[str]) -> set[str]:
    """Name the modules that would hide, or be hidden by, an importable package."""
    return (names - {"__init__"}) & importable_elsewhere()


def test_imports_run_from_pages_to_app_to_engine():
    """Engine works without a browser, charts without Streamlit, and no page knows another."""
    wrong = {
        path: bad
        for path, tree in sources("engine", "app", "pages")
        if (bad := forbidden_imports(path, tree, page_names()))
    }
    assert wrong == {}


def test_only_the_cache_module_caches():
    """One file decides what is kept between runs, and how much of it."""
    wrong = {
        path: bad
        for path, tree in sources("engine", "app", "pages")
        if path != "app/cache.py" and (bad := cache_uses(tree))
    }
    assert wrong == {}


def test_nothing_loads_code_with_weights():
    """No pickle, no torch.load, no remote code, anywhere that ships."""
    wrong = {path: bad for path, tree in sources("engine", "app", "pages") if (bad := unsafe_loads(tree))}
    assert wrong == {}


def test_every_public_name_of_the_engine_is_documented():
    """The engine is read by students and from notebooks: nothing public goes unexplained."""
    wrong = {path: bad for path, tree in sources("engine") if (bad := undocumented(tree))}
    assert wrong == {}


def test_the_view_alone_touches_the_address():
    """Widgets bound to the address and a view that writes it would overwrite each other."""
    wrong = set()
    for path, tree in sources("app", "pages"):
        bound = any(isinstance(node, ast.keyword) and node.arg == "bind" for node in ast.walk(tree))
        touched = any(dotted(node).endswith("query_params") for node in ast.walk(tree) if isinstance(node, ast.expr))
        if path != "app/state.py" and (bound or touched):
            wrong.add(path)
    assert wrong == set()


def test_no_module_of_the_app_hides_a_package():
    """Streamlit puts the entrypoint's folder on the path, where a file named json.py would be json."""
    names = {path.stem for path in (ROOT / "app").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert clashes(names - {"main"}) == set()
    assert clashes(HOUSE - {"tests"}) == set()


def test_streamlit_finds_no_second_set_of_pages():
    """A folder app/pages would switch on Streamlit's own page list."""
    assert not (ROOT / "app" / "pages").exists()


def test_pages_stay_short():
    """A page is a script of controls, one call, one picture and a sentence."""
    lengths = {path.name: code_lines(path.read_text(encoding="utf-8")) for path in (ROOT / "pages").glob("*.py")}
    assert {name: count for name, count in lengths.items() if count > PAGE_LINES} == {}


def test_the_top_level_holds_only_what_was_agreed():
    """Dot-files aside, the root has the agreed names and nothing else."""
    names = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    assert names - TOP_LEVEL == set()


@pytest.mark.parametrize(
    ("path", "code", "bad"),
    [
        ("engine/x.py", "import streamlit as st", {"streamlit"}),
        ("engine/x.py", "def f():\n    from plotly.graph_objects import Figure", {"plotly"}),
        ("engine/x.py", "from app import state", {"app"}),
        ("engine/x.py", "from .. import app", {"app"}),
        ("engine/x.py", "import torch, transformers", set()),
        ("app/charts_axes.py", "from streamlit import write", {"streamlit"}),
        ("app/state.py", "from pages import explore", {"pages"}),
        ("app/state.py", "import importlib\nimportlib.import_module('pages.explore')", {"pages"}),
        ("app/state.py", "import streamlit\nfrom engine.errors import EngineError", set()),
        ("pages/explore.py", "from transformers import AutoModel", {"transformers"}),
        ("pages/explore.py", "import masks", {"masks"}),
        ("pages/explore.py", "from engine import Mask\nfrom app import state", set()),
    ],
)
def test_a_wrong_import_is_caught(path: str, code: str, bad: set[str]):
    """The rule sees plain, local, relative and computed imports, and lets the right ones pass."""
    assert forbidden_imports(path, ast.parse(code), {"explore", "masks"}) == bad


@pytest.mark.parametrize(
    ("code", "bad"),
    [
        ("import streamlit as st\n@st.cache_data\ndef f(): ...", {"st.cache_data"}),
        ("from streamlit import cache_resource", {"streamlit.cache_resource"}),
        ("import streamlit as st\nst.write('cache_data')", set()),
    ],
)
def test_a_cache_elsewhere_is_caught(code: str, bad: set[str]):
    """Both spellings are seen; the mere word is not."""
    assert cache_uses(ast.parse(code)) == bad


@pytest.mark.parametrize(
    ("code", "bad"),
    [
        ("import pickle", {"pickle"}),
        ("from joblib import load", {"joblib"}),
        ("import torch\ntorch.load('x')", {"torch.load"}),
        ("load('x', trust_remote_code=True)", {"trust_remote_code"}),
        ("load('x', trust_remote_code=flag)", {"trust_remote_code"}),
        ("load('x', trust_remote_code=False)", set()),
        ("eval('1')", {"eval"}),
        ("build().eval()", set()),
    ],
)
def test_an_unsafe_load_is_caught(code: str, bad: set[str]):
    """Only a literal False is no remote code."""
    assert unsafe_loads(ast.parse(code)) == bad


def test_a_missing_docstring_is_caught():
    """Methods count, private names don't."""
    code = '"""m"""\nclass A:\n    """a"""\n    def f(self): ...\n    def _g(self): ...\ndef h(): ...'
    assert undocumented(ast.parse(code)) == {"A.f", "h"}
    assert undocumented(ast.parse("x = 1")) == {"the module"}


def test_a_clashing_name_is_caught():
    """The standard library and installed packages both count."""
    assert clashes({"json", "torch", "controls"}) == {"json", "torch"}


def test_long_pages_are_counted_without_blanks_and_comments():
    """A page may breathe; only code counts."""
    assert code_lines("a = 1\n\n# why\nb = 2\n") == 2
