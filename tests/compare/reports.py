#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a comparison in all its forms, checks the JSON against docs/compare.schema.json and the
others against the JSON, and opens the page in a browser.

    reports.py HEALCL FOLDER

FOLDER keeps the reports, and screenshots of the page where there is a browser: Chromium, headless.
Without it the page is read as it was written; without python3-jsonschema the schema is not used.
Both are said.
"""
import base64
import csv
import hashlib
import html
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from devices import use_device  # noqa: E402
FILES = ["transcripts/recognizer.json", "tests/bad/differs_in_last_value.json",
         "tests/bad/op_unknown.json"]
SCHEMA = json.loads((ROOT / "docs/compare.schema.json").read_text())


def nanoseconds(text):
    """Parses "3.81 ms"."""
    number, unit = re.match(r"([\d.]+)\s*(ns|µs|us|ms|s)", text).groups()
    return float(number) * {"ns": 1, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


def is_about(text, value):
    """Three digits."""
    return abs(nanoseconds(text) - value) <= 0.006 * value + 0.6


def median(values):
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2


def check_json(report, files):
    try:
        import jsonschema
        jsonschema.validate(report, SCHEMA)
    except ImportError:
        print("python3-jsonschema is missing: the schema was not used")
    device, figures, more = (SCHEMA["definitions"][name]["properties"] for name in ("device", "figures", "run"))
    assert [transcript["file"] for transcript in report["transcripts"]] == files
    assert len(report["runs"]) == len(files) * len(report["devices"])
    assert set().union(*report["devices"]) <= set(device), report["devices"]
    for run in report["runs"]:
        assert set(run) <= {*figures, *more}, set(run) - {*figures, *more}
        samples = run["samples_ns"]
        if not samples:
            continue
        assert run["median_ns"] == median(samples), run
        assert min(samples) <= run["low_ns"] <= run["median_ns"] <= run["high_ns"], run
        split, steady = run["split"], run.get("steady", {}).get("requests_ns", [])
        parts = list(zip(split["decode_ns"], split["transfer_ns"], split["compute_ns"]))
        assert [sum(part) for part in parts] == samples and min(map(min, parts)) >= 0, run
        assert run["outcome"] != "verified" or len(steady) == min(len(samples), 15), run
        for name, times in ("steady", steady), *((name, split[f"{name}_ns"]) for name in
                                                 ("compute", "transfer", "decode")):
            assert run.get(f"{name}_ns", 0) == (median(times) if times else 0), (name, run)
        # Segments' medians add up to about a run's; each operation belongs to one.
        assert sum(part["operations"] for part in run["segments"]) == \
            sum(part["count"] for part in run["ops"]), run


def check_csv(path, report):
    rows = list(csv.DictReader(path.open(newline="")))
    same = {"transcript", "device", "outcome", "message", "median_ns", "compute_ns", "steady_ns",
            "transfer_ns", "decode_ns", "p95_ns", "compile_ns", "host_memory_peak", "fault"}
    assert len(rows) == len(report["runs"])
    for row, run in zip(rows, report["runs"]):
        device = report["devices"][run["device_at"]]
        assert {key: row[key] for key in same} == {key: str(run.get(key, "")) for key in same}, row
        assert row["tuned"] == {True: "true", False: "false"}.get(device.get("tuned"), ""), row
        assert row["samples"] == str(len(run["samples_ns"])), row
        assert math.isclose(float(row["speedup"] or 0), run.get("speedup", {}).get("factor", 0), rel_tol=1e-5)


def cells_of(table):
    return [[html.unescape(cell) for cell in row.rstrip("</tr>\n").split("<td>")[1:]]
            for row in table.split("<tr>")[1:] if "<td>" in row]


def check_page(text, report):
    """Its one script is the one that its policy lets run; its data is the comparison; and a plain
    table has verdicts and times without it."""
    script, = re.findall(r"<script>(.*?)</script>", text, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'", \
        f"the hash in src/cli/page.html is not sha256-{digest}"
    assert text.count("<script") == 2 == text.count("</script>"), "a name is a script"
    assert "\x1b" not in text and "src=" not in text and "href=" not in text
    data, = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert "<" not in data and json.loads(data)["comparison"] == report
    _, *rows = cells_of(re.search(r"<table>(.*?)</table>", text, re.S).group(1))
    assert len(rows) == len(report["runs"]), rows
    for row, run in zip(rows, report["runs"]):
        assert row[0].startswith(run["transcript"]) and row[2].startswith(run["outcome"]), row
        assert row[1] == report["devices"][run["device_at"]]["label"], row
        if run.get("compute_ns"):
            assert is_about(row[3], run["compute_ns"]), row


class Browser:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, page, *options):
        return subprocess.run(
            [self.program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--allow-file-access-from-files", f"--user-data-dir={self.folder}/browser",
             *options, page.as_uri()],
            capture_output=True, text=True, check=True).stdout

    def in_frame(self, page, width, script):
        """Returns a script's result in the page, as inside, in a window of that width."""
        frame = self.folder / "frame.html"
        frame.write_text(
            f'<body style="margin:0"><iframe id="f" src="{page.name}" style="width:{width}px;'
            'height:5000px;border:0"></iframe><script>onload = () => {'
            "const inside = document.getElementById('f').contentDocument\n"
            f"document.title = JSON.stringify((() => {{ {script} }})()) }}</script>")
        dom = self.run(frame, "--dump-dom")
        return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", dom).group(1)))

    def check(self, page, report):
        """The script draws every run; nothing is wider than the window, folded or not; filters and
        sorts do what they say."""
        count = len(report["runs"])
        rows = "inside.querySelectorAll('.runs > tbody > tr:not(.group, .inside)')"
        for width in (400, 1280):
            drawn, cells, fits, wide = self.in_frame(page, width, f"""
                const root = inside.documentElement, fits = root.scrollWidth
                inside.querySelectorAll('details').forEach(details => details.open = true)
                return [{rows}.length, [...inside.querySelectorAll('[data-label=Compute]')].map(cell => cell.textContent),
                  fits, [...inside.querySelectorAll('.card')].map(card => card.scrollWidth - card.clientWidth)]""")
            assert drawn == count and fits <= width and max(wide) <= 0, (width, drawn, fits, wide)
            for cell, run in zip(cells, report["runs"]):
                assert not run.get("compute_ns") or is_about(cell, run["compute_ns"]), (cell, run)
        nothing, filtered, sorted_ones = self.in_frame(page, 1280, f"""
            const search = inside.querySelector('[type=search]'), sort = inside.querySelector('select')
            const enter = text => {{ search.value = text; search.dispatchEvent(new Event('input')) }}
            enter('no such device')
            const nothing = inside.querySelector('.runs').textContent
            enter('REFERENCE')
            const filtered = {rows}.length
            enter('')
            sort.value = 'compute_ns'
            sort.dispatchEvent(new Event('change'))
            return [nothing, filtered, [...{rows}].map(row => row.querySelector('[data-label=Compute]').textContent)]""")
        assert nothing == "Nothing matches.", nothing
        assert filtered == sum("reference" in report["devices"][run["device_at"]]["label"]
                               for run in report["runs"]), filtered
        of_first = [nanoseconds(text) for text in sorted_ones[:len(report["devices"])] if text != "–"]
        assert of_first == sorted(of_first), sorted_ones
        for name, options in (("light", ()), ("dark", ("--blink-settings=preferredColorScheme=0",))):
            self.run(page, "--window-size=1280,3000", *options, f"--screenshot={page.parent}/{name}.png")
        print(f"screenshots are in {page.parent}")


def hostile(report):
    """A saved comparison whose every string is an attack."""
    attack = "<script>alert(1)</script>\"'&|`\x1b]0;x\x07\n\\x{{json}}<!--"
    numbers = itertools.count() # names distinguish kinds of operations

    def spoil(value, key=None):
        if isinstance(value, dict):
            return {name: spoil(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [spoil(item) for item in value]
        keep = ("digest", "outcome", "date") # what makes it a comparison of the same file
        return f"{attack}{next(numbers)}" if isinstance(value, str) and key not in keep else value
    return spoil(report)


def check_home(healcl, folder):
    """The home folder's name is in no report for people, and commands work without it."""
    folder = folder.resolve()
    home = folder / "home of o'user"
    (home / "in it").mkdir(parents=True)
    shutil.copy(ROOT / "transcripts/memory.json", home / "in it/memory.json")
    environment = {**os.environ, "HOME": f"{home}/", "LD_LIBRARY_PATH": f"{home}/a b:/usr/lib:{home}/c",
                   "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    environment.pop("HEALCL_DEVICE", None)  # it would be among what the commands begin with
    (folder / "bin").mkdir()
    (folder / "bin/healcl").symlink_to(Path(healcl).resolve())
    command = json.loads(subprocess.run(
        ["healcl", "compare", "-d", "reference", "--json=-", f"--csv={home}/out.csv",
         f"{home}/in it/memory.json"],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=True).stdout)["command"]
    assert "o'user" not in command and command.startswith("LD_LIBRARY_PATH="), command
    (home / "out.csv").unlink()
    subprocess.run(["sh", "-e", "-c", command], cwd=folder, check=True, timeout=100,
                   env={**environment, "HOME": str(home), "LD_LIBRARY_PATH": ""},
                   stdout=subprocess.DEVNULL)
    assert (home / "out.csv").exists()
    shutil.rmtree(home)
    shutil.rmtree(folder / "bin")


def main():
    healcl, folder = sys.argv[1], Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = {kind: folder / f"report.{kind}" for kind in ("json", "csv", "markdown", "html")}
    devices = ["-d", "", "-d", "reference"] if use_device(healcl) else ["-d", "reference"]

    def compare(code, files, *options):
        command = [healcl, "compare", *options, *files]
        for kind, path in paths.items():
            command += [f"--{kind}", str(path)]
        start = time.monotonic_ns()
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        outside = time.monotonic_ns() - start
        assert not run.stderr and run.returncode == code, (run.returncode, run.stderr)
        report = json.loads(paths["json"].read_text())
        assert all(row["process_ns"] <= outside for row in report["runs"]
                   if "baseline" not in report["devices"][row["device_at"]]), (outside, report)
        return report

    def check(files, report):
        check_json(report, files)
        check_csv(paths["csv"], report)
        check_page(paths["html"].read_text(), report)

    report = compare(0, FILES[:1], *devices, "--no-measure")
    check(FILES[:1], report)
    # Several transcripts, of which some go wrong, beside a saved run full of markup.
    told = compare(1, FILES, *devices, "--no-measure")
    check(FILES, told)
    assert {run["fault"] for run in told["runs"]} == {"", "transcript"}, told["runs"]
    if "" in devices: # the default: nobody named the reference
        told = compare(1, FILES[1:2], "-d", "", "--no-measure")
        assert told["runs"][0]["fault"] == "transcript", told["runs"]
        check(FILES[1:2], told)
    check_home(healcl, folder)

    # A hostile file contributes to the remaining page.
    saved = folder / "saved.json"
    saved.write_text(json.dumps(hostile(report)))
    report = compare(0, FILES[:1], *devices, "--repeat", "20", "--baseline", str(saved))
    check(FILES[:1], report)
    assert sum("baseline" in device for device in report["devices"]) == len(report["devices"]) / 2
    for run in report["runs"]:
        device = report["devices"][run["device_at"]]
        is_cold = device["index"] != "reference" and "baseline" not in device
        assert ("cold_result_ns" in run) == is_cold, run
    assert all(run["p95_ns"] >= run["median_ns"] and "p99_ns" not in run for run in report["runs"]
               if len(run["samples_ns"]) == 20)
    program = shutil.which("chromium") or shutil.which("chromium-browser") or \
        shutil.which("google-chrome")
    if program:
        Browser(program, folder).check(paths["html"], report)
    else:
        print("there is no Chromium: the page was not opened in a browser")
    shutil.rmtree(folder / "browser", ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
