# SPDX-License-Identifier: BSD-3-Clause
"""A build of the sources without mutants, and test programs with one in them.

The tree is a copy of the sources, built once. A mutant changes nothing in it:
its file is compiled to an object elsewhere, each library that has its object is
made again as a thin archive with the new one in it, and the programs are linked
with that library. So no mutant can get into the build of the next.
"""
import contextlib
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

SOURCES = ("src", "tests", "docs", "contrib", "meson.build", "meson_options.txt")
# A mutant may allocate or talk for ever.
LIMITS = ("prlimit", f"--as={4 << 30}", f"--fsize={16 << 20}", "--core=0")


# Of each command that runs now: its process group.
groups = set()
# Held while a command is started and its group is not known yet, and for ever by what ends all.
starting = threading.Lock()
# The signal that came, if one did.
ended_by = 0


def end_all():
    """Nothing that was started is left. With `starting` held."""
    for group in list(groups):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, 9)
    sys.stdout.flush()
    os._exit(128 + ended_by)


def on_signal(number, _frame):
    """Ends all now, or leaves it to the thread that is starting a command."""
    global ended_by
    ended_by = number
    if starting.acquire(blocking=False):
        end_all()


def end_on_signals():
    """In the main thread, once. A command has a session of its own, which nobody else ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)


def start(args, cwd, out, **more):
    """A command in a process group of its own, which is among `groups`; its output goes to `out`."""
    try:
        with starting:
            child = subprocess.Popen(args, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=subprocess.STDOUT, start_new_session=True, **more)
            groups.add(child.pid)
    finally:
        if ended_by:
            starting.acquire()
            end_all()
    return child


def run(args, cwd, timeout=600):
    """Returns (status, output); a timeout is status -1."""
    with start(args, cwd, subprocess.PIPE, text=True, errors="replace") as child:
        try:
            return (child.communicate(timeout=timeout)[0], child.returncode)[::-1]
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            return -1, child.communicate()[0]
        finally:
            groups.discard(child.pid)


def ends_within(pid, seconds):
    """A child has ended; its number stays its own until it is waited for."""
    end = time.monotonic() + seconds  # Criterion's own --timeout does not end a loop
    while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class Tree:
    """The sources as they are now, built below `work`."""

    def __init__(self, top, work):
        self.top, self.src, self.dir = top, work / "src", work / "build"

    def copy(self, old, new):
        """Makes `new` what `old` is; what did not change keeps its time, and its object."""
        if old.is_dir():
            new.mkdir(parents=True, exist_ok=True)
            for path in list(new.iterdir()):
                if not (old / path.name).exists():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            for path in old.iterdir():
                if path.name != "__pycache__":
                    self.copy(path, new / path.name)
        elif not new.exists() or new.read_bytes() != old.read_bytes():
            shutil.copy(old, new)

    def configure(self):
        """Copies the sources and configures; then reads which program has which sources."""
        self.src.mkdir(parents=True, exist_ok=True)
        for name in SOURCES:
            self.copy(self.top / name, self.src / name)
        if not (self.dir / "build.ninja").exists():
            self.must(["meson", "setup", "--buildtype=plain", "-Doptimization=1",
                       "-Dwerror=false", str(self.dir), str(self.src)])
        else:
            self.must(["ninja", "-C", str(self.dir), "build.ninja"])
        targets = json.loads(self.must(["meson", "introspect", "--targets", str(self.dir)]))
        self.programs, self.libraries = {}, {}
        for t in targets:
            files = [s for group in t["target_sources"] for s in group["sources"]]
            files = [str(Path(f).relative_to(self.src)) for f in files if f.startswith(str(self.src))]
            out = str(Path(t["filename"][0]).relative_to(self.dir))
            if t["type"] == "executable" and out.startswith(("tests/unit/", "tests/sim/")):
                self.programs[out] = files
            elif t["type"] == "static library" and out.startswith("src/"):
                self.libraries.update({f: out for f in files})

    def must(self, args):
        """Runs a step of the build; raises RuntimeError with its output."""
        status, out = run(args, self.src, 3600)
        if status:
            raise RuntimeError(f"{shlex.join(args)}:\n{out[-4000:]}")
        return out

    def program_with(self, source):
        """The program that a test's source is compiled into."""
        for program, files in self.programs.items():
            if str(source) in files:
                return program
        raise RuntimeError(f"no program has {source}")

    def program_named(self, name):
        """test_fs_writeback, or test_nfs4_state of tests/sim as sim_nfs4_state."""
        for path in (f"tests/unit/{name}", f"tests/sim/{name}", f"tests/sim/test_{name}"):
            if path in self.programs:
                return path
        raise RuntimeError(f"there is no test program {name}")

    def build(self, programs, jobs):
        """Builds them, and reads the commands by which they were made."""
        self.must(["ninja", "-C", str(self.dir), f"-j{jobs}", *programs])
        commands = json.loads((self.dir / "compile_commands.json").read_text())
        self.compile = {}
        for c in commands:
            file = os.path.normpath(os.path.join(c["directory"], c["file"]))
            file = str(Path(file).relative_to(self.src))
            if self.libraries.get(file, "?") + ".p/" in c["output"]:
                self.compile[file] = c
        self.link, self.ar = {}, {}
        for program in programs:
            self.link[program] = self.command(program)
        for library in set(self.libraries.values()):
            # rm -f LIB && gcc-ar csrDT LIB OBJECTS
            self.ar[library] = shlex.split(self.command(library).rpartition("&& ")[2])

    def command(self, target):
        """The last command that ninja would run for it."""
        out = self.must(["ninja", "-C", str(self.dir), "-t", "commands", target])
        return out.strip().split("\n")[-1]

    def hash(self):
        """Of all sources and objects: the same after a run as before."""
        h = hashlib.sha256()
        for base in (self.src, self.dir):
            for path in sorted(base.rglob("*.[cho]")):
                h.update(str(path).encode() + path.read_bytes())
        return h.hexdigest()


class Bench:
    """A worker's place: links programs with one file changed, and runs them."""

    def __init__(self, tree, work):
        self.tree, self.work = tree, work
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        self.changed, self.linked = {}, {}

    def change(self, file, text):
        """Compiles the file with this text; returns "" or what the compiler says."""
        t = self.tree
        entry, self.linked = t.compile[file], {}
        path = self.work / Path(file).name
        path.write_text(text)
        args = shlex.split(entry["command"])
        obj = self.work / "changed.o"
        args[args.index("-o") + 1] = str(obj)
        args[args.index("-c") + 1] = str(path)
        if "-MF" in args:
            args[args.index("-MF") + 1] = str(self.work / "changed.d")
        args += ["-iquote", str((t.src / file).parent), "-Wno-error",
                 "-Werror=int-conversion", "-Werror=incompatible-pointer-types"]
        status, out = run(args, t.dir)
        if status:
            return out or "the compiler failed"
        # Its room's, and the one that this goes into as a whole.
        self.changed = {}
        for library in [name for name, ar in t.ar.items() if entry["output"] in ar]:
            archive = self.work / f"changed{len(self.changed)}.a"
            archive.unlink(missing_ok=True)
            # the members of a thin archive are found relative to it
            ar = [str(archive) if a == library else str(obj) if a == entry["output"] else
                  str(t.dir / a) if a.endswith(".o") else a for a in t.ar[library]]
            status, out = run(ar, t.dir)
            if status:
                raise RuntimeError(f"{shlex.join(ar)}: {out}")
            self.changed[library] = archive
        if not self.changed:
            raise RuntimeError(f"no library has {entry['output']}")
        return ""

    def program(self, program):
        """The program with the change in it; its own if the change is not linked into it."""
        if not self.changed:
            return self.tree.dir / program
        if program not in self.linked:
            exe = self.work / Path(program).name
            args = shlex.split(self.tree.link[program])
            args = [str(exe if a == program else self.changed.get(a, a)) for a in args]
            status, out = run(args, self.tree.dir)
            if status:
                raise RuntimeError(f"{shlex.join(args)}:\n{out[-2000:]}")
            self.linked[program] = exe
        return self.linked[program]

    def test(self, program, names, seconds):
        """Runs these tests of a program (None: all), up to the first that fails.

        Returns (how many ran, the name of one that failed or "").
        """
        exe, tap, log = self.program(program), self.work / "tap", self.work / "log"
        args = [*LIMITS, str(exe), "-j1", "--fail-fast", f"--tap={tap}"]
        if names is not None:
            suites = {name.split("::")[0] for name in names}
            tests = {name.split("::")[1] for name in names}
            args += ["--filter", f"@({'|'.join(sorted(suites))})/@({'|'.join(sorted(tests))})"]
        tap.unlink(missing_ok=True)
        with open(log, "w") as out:
            child = start(args, self.work, out)
            hangs = not ends_within(child.pid, seconds)
            # Also the rest of its tests, and what they forked; not waited for yet, it has the
            # number, which is no other group's.
            os.killpg(child.pid, 9)
            groups.discard(child.pid)
            status = child.wait()
        lines = tap.read_text(errors="replace").split("\n") if tap.exists() else []
        ran = sum(line.startswith(("ok", "not ok")) for line in lines)
        failed = [line.split()[3] for line in lines if line.startswith("not ok - ")]
        if hangs:
            return ran, "hangs"
        if status != 0:
            return ran, failed[0] if failed else f"{Path(program).name} ended with {status}"
        return ran, ""
