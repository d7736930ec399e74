"""The package from outside: public names, a light import, one version."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import memlane


def modules_after(code: str) -> set[str]:
    code += "\nimport sys; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_the_public_names_are_sorted_complete_and_there() -> None:
    assert memlane.__all__ == sorted(memlane.__all__)
    assert set(memlane.__all__) == {*memlane._HOME, "__version__"}
    assert all(getattr(memlane, name) is not None for name in memlane.__all__)
    assert dir(memlane) == memlane.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(memlane, "Nothing")


def test_importing_memlane_imports_nothing_heavy() -> None:
    assert modules_after("import memlane").isdisjoint({"yaml", "click", "sqlite3", "dataclasses", "memlane.bank"})


def test_opening_a_bank_needs_no_yaml_and_no_command_line() -> None:
    assert modules_after("from memlane import Bank").isdisjoint(
        {"yaml", "click", "dataclasses", "subprocess", "memlane.gate.secrets"}
    )


def test_indexing_and_searching_load_no_more_of_numpy_than_it_loads_itself(tmp_path: Path) -> None:
    """Some of its functions load a part of it that takes a fifth of the time of all the others."""
    plain = modules_after("import numpy")
    found = modules_after(
        "from memlane import Bank\n"
        f"with Bank.init({str(tmp_path)!r}) as bank:\n"
        "    bank.add('Deploys go out on Tuesdays.', tags=['release'])\n"
        "    bank.search('deploys')\n"
        "    bank.add('The cache is cleared at night.')\n"
        "    bank.search('cache', tags=['release'])\n"
    )
    assert {name for name in found - plain if name.startswith("numpy.")} == set()


def test_the_version_is_written_once() -> None:
    assert version("memlane") == memlane.__version__


def test_the_command_ends_at_once_and_still_calls_who_asked_to_be_called() -> None:
    code = (
        "import atexit, sys; atexit.register(print, 'bye'); sys.argv[1:] = {}; "
        "from memlane.__main__ import script; script()"
    )
    done = subprocess.run([sys.executable, "-c", code.format(["--version"])], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"memlane {memlane.__version__}\nbye\n", "")
    done = subprocess.run([sys.executable, "-c", code.format(["lst"])], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "bye\n")
    assert "Did you mean 'list'?" in done.stderr


def test_a_command_that_says_a_few_plain_words_loads_no_rules_for_secrets() -> None:
    code = "import sys\nfrom memlane.surfaces.cli import main\nsys.argv[1:] = ['--version']\n"
    assert "memlane.gate.secrets" not in modules_after(f"{code}try:\n    main()\nexcept SystemExit:\n    pass")
