#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what healcl does on a terminal: progress and colour there, and nowhere else.

    terminal.py HEALCL

Exits with 77, skipped, where no terminal can be opened.
"""
import os
import pty
import resource
import select
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ESCAPE = b"\x1b"


def on_terminal(command, term="xterm", no_color=None):
    """Exit code and output of a command whose standard streams are a terminal of 80 columns."""
    environment = dict(os.environ, TERM=term, COLUMNS="")
    environment.pop("NO_COLOR", None)
    if no_color is not None:
        environment["NO_COLOR"] = no_color
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        os.execvpe("sh", ["sh", "-c", "stty cols 80 -echo; " + command], environment)
    output = b""
    while True:
        ready, _, _ = select.select([terminal], [], [], 600)
        try:
            part = os.read(terminal, 65536) if ready else b""
        except OSError:  # Linux reports that the last writer is gone
            part = b""
        if not part:
            break
        output += part
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), output


def screen(output):
    """The lines that are left when every \\r and erasing has taken effect."""
    lines = []
    for line in output.replace(b"\r\n", b"\n").split(b"\n"):
        shown = b""
        for part in line.split(b"\r"):
            shown = part if ESCAPE + b"[K" in part or len(part) >= len(shown) else shown
        lines.append(shown.replace(ESCAPE + b"[K", b""))
    return b"\n".join(lines)


PATIENCE = 0.3  # seconds before the progress line appears


def repetitions(healcl):
    """How often to run so that it takes about four times PATIENCE, also if nothing else runs: by the
    processor time of those that come on top of the first ones."""
    few, more, times = 20, 520, []
    for count in few, more:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([healcl, "run", "-q", "--reference", "--repeat", str(count),
                        ROOT / "transcripts/recognizer.json"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return int(4 * PATIENCE * (more - few) / max(times[1] - times[0], 0.05))


def has_terminals():
    """Some chroots have none."""
    try:
        for descriptor in pty.openpty():
            os.close(descriptor)
    except OSError as error:
        print(f"no terminal can be opened: {error}")
        return False
    return True


def main():
    if not has_terminals():
        return 77
    healcl = f"'{Path(sys.argv[1]).resolve()}'"
    quick = f"{healcl} run --reference transcripts/memory.json"
    repeat = repetitions(sys.argv[1])
    slow = f"{healcl} run --reference --repeat {repeat} transcripts/recognizer.json"
    faults = []

    def check(condition, what, output):
        if not condition:
            faults.append(what)
            print(f"{what}: {output!r}")

    code, output = on_terminal(quick)
    check(code == 0 and ESCAPE + b"[1;32mverified" in output, "a verdict is green", output)

    code, output = on_terminal(f"{healcl} run --reference tests/bad/differs_scalar.json")
    check(code == 1 and ESCAPE + b"[1;31mdifferent" in output, "a difference is red", output)

    code, output = on_terminal(quick, no_color="1")
    check(code == 0 and ESCAPE not in output, "NO_COLOR is honoured", output)
    code, output = on_terminal(quick + " | cat")
    check(code == 0 and ESCAPE not in output, "a pipe gets plain text", output)

    code, output = on_terminal(slow)
    progress = [part for part in output.split(b"\r") if part.endswith(b"\x1b[K")]
    check(code == 0 and len(progress) >= 2, "a long run shows progress", output)
    check(b" of %d, segment " % repeat in output, "progress tells the repetition", output)
    check(all(len(part) < 80 + 3 for part in progress), "progress fits into a line", progress)
    check(b"segment 1 of" not in screen(output), "progress is taken away", screen(output))
    check(screen(output).lstrip().startswith(b"transcript "), "only the report stays", screen(output))
    code, output = on_terminal(slow + " -q")
    check(code == 0 and output == b"", "a quiet run shows nothing", output)

    piped = subprocess.run(["sh", "-c", slow], cwd=ROOT, capture_output=True)
    check(piped.returncode == 0 and ESCAPE not in piped.stdout and piped.stderr == b"",
          "without a terminal there is no progress", piped)

    for command in ("run -v --kernels transcripts/recognizer.json", "inspect --steps transcripts/ntt.json",
                    "inspect --passes --ranks 2 transcripts/recognizer.json",
                    "inspect --kernels transcripts/modular.json", "devices", "devices --measure", "ops",
                    "diagnose tests/bad/differs_in_last_value.json", "check --quick --op abs",
                    "bench --op abs --repeat 3", "tune --dry-run --op copy",
                    "compare --no-measure --repeat 2 -d 0:0 -d reference transcripts/sums.json"
                    " transcripts/encrypted_sentiment.json.gz"):
        code, output = on_terminal(f"{healcl} {command}")
        lines = [line.decode() for line in screen(output).split(b"\n")]
        wide = [line for line in lines if len(line) > 80 and not line.startswith("  healcl ")]
        check(code == 4 or not wide, f"{command} fits 80 columns", wide)
        check(len(set(lines)) > 1, f"{command} prints something", output)
    helps = subprocess.run(f"for c in '' run compare inspect devices check diagnose ops bench tune compile"
                           f" pack; do {healcl} $c --help; done", shell=True, capture_output=True, text=True)
    check(all(len(line) < 80 for line in helps.stdout.splitlines()), "help fits 79 columns", helps.stdout)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
