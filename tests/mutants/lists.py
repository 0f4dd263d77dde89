# SPDX-License-Identifier: BSD-3-Clause
"""Lists of mutants: how they are read, and what must hold for them.

A list is a file NAME.mutants. Lines that begin with `#` are comments. In it

    file src/rpcrdma/rpcrdma_win.c       the mutants below are of this file
    mutant window_is_used_again_soon     a name, used once in all lists
    why a stale key may be valid again   what goes wrong
    test rpcrdma_win::goes_round         tests that must notice it, one or more lines
    -list_push_back(&x->win_free,        the anchor: a text that occurs once in the file,
    +list_push_front(&x->win_free,       and what stands there instead; several lines each

The anchor begins right after the `-` and may be part of a line; without a `+`
line it is removed. `equivalent REASON` in place of `test` says that no test can
notice it. One with neither was made by `generate`: the table `programs` tells
which tests it has.
"""
import fnmatch
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]

TEST = re.compile(r"^(?:ParameterizedTest\([^,]*, *|Test\()(\w+), *(\w+)", re.M)


class Mutant:
    """A small defect: `old` in `file` becomes `new`."""

    def __init__(self, name, file, where):
        self.name, self.file, self.where = name, file, where
        self.why = self.equivalent = ""
        self.tests, self.old, self.new = [], [], []

    def apply(self, text):
        """The text with the defect; ValueError if the anchor does not occur once."""
        old, new = "\n".join(self.old), "\n".join(self.new)
        count = text.count(old) if old else 0
        if count != 1:
            raise ValueError(f"the anchor occurs {count} times in {self.file}")
        return text.replace(old, new)

    def as_text(self):
        """As it stands in a list, without its file."""
        lines = [f"mutant {self.name}"]
        lines += [f"why {self.why}"] if self.why else []
        lines += [f"equivalent {self.equivalent}"] if self.equivalent else []
        lines += [f"test {test}" for test in self.tests]
        lines += [f"-{line}" for line in self.old] + [f"+{line}" for line in self.new]
        return "\n".join(lines) + "\n"


def read(path):
    """The mutants of a list; ValueError where it cannot be understood."""
    mutants, file, name = [], None, Path(path).name
    for nr, line in enumerate(Path(path).read_text().split("\n"), 1):
        where = f"{name}:{nr}"
        word, _, rest = line.partition(" ")
        if not line or line.startswith("#"):
            continue
        if word == "file":
            file = rest
            continue
        if word == "mutant":
            if not file:
                raise ValueError(f"{where}: no file yet")
            mutants.append(Mutant(rest, file, where))
            continue
        if not mutants:
            raise ValueError(f"{where}: no mutant yet")
        m = mutants[-1]
        if line[0] == "-":
            m.old.append(line[1:])
        elif line[0] == "+":
            m.new.append(line[1:])
        elif word == "why":
            m.why = rest
        elif word == "equivalent":
            m.equivalent = rest
        elif word == "test":
            m.tests += rest.split()
        else:
            raise ValueError(f"{where}: not understood: {line}")
    return mutants


def lists():
    """The lists written by hand."""
    return sorted(HERE.glob("*.mutants"))


def tests_in(top):
    """suite::test -> the source files that define it, relative to top."""
    found = {}
    for part in ("unit", "sim"):
        for path in sorted((top / "tests" / part).rglob("*.c")):
            for suite, name in TEST.findall(path.read_text()):
                found.setdefault(f"{suite}::{name}", []).append(path.relative_to(top))
    return found


def programs_table():
    """Lines `PATTERN PROGRAM...` of the table `programs`: for generated mutants."""
    table = []
    for line in (HERE / "programs").read_text().split("\n"):
        line = line.partition("#")[0].split()
        if line:
            table.append((line[0], line[1:]))
    return table


def fits(file, pattern):
    """A pattern is of the names of files in a folder, or in one below it."""
    folder, _, name = pattern.rpartition("/")
    return Path(file).is_relative_to(folder) and fnmatch.fnmatch(Path(file).name, name)


def programs_of(file, table):
    """Test programs for a mutant of the file: its own unit test, then its room's."""
    stem = Path(file).stem
    programs = []
    own = sorted((TOP / "tests/unit").rglob(f"test_{stem}*.c"), key=lambda p: p.name)
    for program in [path.stem for path in own]:
        if program == f"test_{stem}" or program.startswith(f"test_{stem}_"):
            programs.append(program)
    for pattern, more in table:
        if fits(file, pattern):
            programs += more
    return list(dict.fromkeys(programs))
