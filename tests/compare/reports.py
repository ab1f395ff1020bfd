#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a comparison in all its forms, checks the JSON against docs/compare.schema.json and the
others against the JSON, and opens the page in a browser.

    reports.py HEALCL FOLDER

FOLDER keeps the reports, and screenshots of the page where there is a browser: Chromium, headless.
Without it the page is read as it was written; without python3-jsonschema the schema is not used.
Both are said.
"""
import csv
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
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from devices import use_device  # noqa: E402
FILES = ["transcripts/recognizer.json", "tests/bad/differs_in_last_value.json",
         "tests/bad/op_unknown.json"]
VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Elements as (name, attributes, text of everything inside, ids and classes of those around it),
    and whether all are closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements = [], []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def around(self):
        return {element[1].get(key) for element in self.open for key in ("id", "class")}

    def handle_starttag(self, tag, attributes):
        element = [tag, dict(attributes), "", self.around()]
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.elements.append([tag, dict(attributes), "", self.around()])

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, f"</{tag}> ends {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element[2] += data

    def all(self, tag, **attributes):
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        return [element for element in self.elements if element[0] == tag and
                all(key in element[1] and value in (None, element[1][key])
                    for key, value in wanted.items())]


def nanoseconds(text):
    """Of "3.81 ms"."""
    number, unit = re.fullmatch(r"([\d.]+)\s*(ns|µs|us|ms|s)", text).groups()
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
        jsonschema.validate(report, json.loads((ROOT / "docs/compare.schema.json").read_text()))
        print("the JSON is as the schema says")
    except ImportError:
        print("python3-jsonschema is missing: the schema was not used")
    assert [transcript["file"] for transcript in report["transcripts"]] == files
    assert len(report["runs"]) == len(files) * len(report["devices"])
    for device in report["devices"]:
        known = "tuning" in device
        assert known == ("tuned" in device), device
        assert known == (device["index"] != "reference") or "baseline" in device, device
    for run in report["runs"]:
        samples = run["samples_ns"]
        if samples:
            assert run["median_ns"] == median(samples), run
            assert min(samples) <= run["low_ns"] <= run["median_ns"] <= run["high_ns"], run
            split, steady = run["split"], run.get("steady", {}).get("requests_ns", [])
            parts = list(zip(split["decode_ns"], split["transfer_ns"], split["compute_ns"]))
            assert [sum(part) for part in parts] == samples and min(map(min, parts)) >= 0, run
            assert min(split["decode_ns"]) > 0, run
            if run["outcome"] == "verified":
                assert min(split["compute_ns"] + steady) > 0, run
                assert len(steady) == min(report["repeat"], 15), run
            for name, times in ("steady", steady), *((name, split[f"{name}_ns"]) for name in
                                                     ("compute", "transfer", "decode")):
                assert run.get(f"{name}_ns", 0) == (median(times) if times else 0), (name, run)
            known = sum(samples) + sum(steady) + sum(run["profile"]["runs_ns"]) + \
                sum(run[f"{part}_ns"] for part in
                    ("open_device", "open_transcript", "compile", "warm_up"))
            assert known <= run["process_ns"], run
            # Segments' medians add up to about a run's; each operation belongs to one.
            assert sum(part["operations"] for part in run["segments"]) == \
                sum(part["count"] for part in run["ops"]), run


def check_first_results(report, measured):
    """Cold and warm times to a first result, of what is right; cold ones hold all that is built."""
    for run in report["runs"]:
        if "baseline" in report["devices"][run["device_at"]]:
            continue
        first = run.get("first_result")
        assert bool(first) == (measured and run["outcome"] in ("verified", "nothing to verify")), run
        if first:
            assert first["cold_ns"] > first.get("compile_cold_ns", 0), first
            assert first["warm_ns"] > first.get("compile_warm_ns", 0), first
            on_device = report["devices"][run["device_at"]]["index"] != "reference"
            assert on_device == ("compile_cold_ns" in first), first


CSV_PATHS = {  # columns that are keys of a run in the JSON
    "compute_ns": "compute_ns", "compute_low_ns": "compute_low_ns", "steady_ns": "steady_ns",
    "transfer_ns": "transfer_ns", "decode_ns": "decode_ns", "compared": "results.compared", "p95_ns": "p95_ns", "p99_ns": "p99_ns",
    "compile_ns": "compile_ns", "programs_built": "programs_built",
    "programs_loaded": "programs_loaded", "first_cold_ns": "first_result.cold_ns",
    "first_warm_ns": "first_result.warm_ns", "compile_cold_ns": "first_result.compile_cold_ns",
    "host_memory_peak": "host_memory_peak", "fault": "fault",
}


def check_csv(path, report):
    rows = [row for row in csv.DictReader(path.open(newline="")) if not row.get("rank")]
    for row, run in zip(rows, report["runs"]):
        for column, keys in CSV_PATHS.items():
            value = run
            for key in keys.split("."):
                value = value.get(key, {})
            assert row[column] == ("" if value == {} else str(value)), (column, row, run)
        device = report["devices"][run["device_at"]]
        assert row["tuned"] == {True: "true", False: "false"}.get(device.get("tuned"), ""), row
    assert len(rows) == len(report["runs"])
    for row, run in zip(rows, report["runs"]):
        assert row["transcript"] == run["transcript"] and row["outcome"] == run["outcome"]
        assert row["median_ns"] == str(run.get("median_ns", "")), (row, run)
        assert row["message"] == run["message"]
        if "speedup" in run:
            assert abs(float(row["speedup"]) / run["speedup"]["factor"] - 1) < 1e-5
        profile = run.get("profile", {})
        assert row["profile_clock"] == (profile["clock"] if profile.get("runs_ns") else ""), row
        assert (row["profile_overhead"] != "") == ("overhead" in profile), (row, run)
        if "overhead" in profile:
            assert abs(float(row["profile_overhead"]) / profile["overhead"] - 1) < 1e-5


def check_markdown(path, report):
    text, _, _ = path.read_text().partition("\n### Ranks\n")
    runs, _, means = text.partition("\n### Speed-up\n")
    assert bool(means) == (len(report["transcripts"]) > 1 and
                           any("mean_speedup" in device for device in report["devices"]) and
                           len(report["devices"]) > 1)
    rows = [re.split(r"(?<!\\)\|", line) for line in runs.splitlines()
            if line.startswith("| ") and not line.startswith("| Device")]
    assert len(rows) == len(report["runs"]), rows
    for row, run in zip(rows, report["runs"]):
        assert row[2].strip().replace("\\", "").startswith(run["outcome"]), row
        if run["samples_ns"]:
            assert is_about(row[3].strip().replace(" (noisy)", ""), run["compute_ns"]), row
        if "steady_ns" in run:
            assert is_about(row[6].strip(), run["steady_ns"]), row


def check_means(page, report):
    """What a mean is over, and that it is one."""
    for (at, device), name in itertools.product(enumerate(report["devices"]),
                                                ("speedup", "steady_speedup")):
        mean = device.get(f"mean_{name}")
        if not mean:
            continue
        factors = [run[name]["factor"] for run in report["runs"] if run["device_at"] == at and
                   report["transcripts"][run["transcript_at"]]["in_mean"]]
        assert abs(mean["factor"] / math.prod(factors) ** (1 / len(factors)) - 1) < 1e-6, device
        assert abs(mean["least"] / min(factors) - 1) < 1e-6, device
        assert abs(mean["most"] / max(factors) - 1) < 1e-6, device
    shown = [cell for cell in page.all("th", scope="col") if cell[2].startswith("Mean, ")]
    assert len(shown) == 2 * (len(report["transcripts"]) > 1 and len(report["devices"]) > 1 and
                          any("mean_speedup" in device for device in report["devices"]))


def check_contents(page, report):
    places = [element[1]["id"] for element in page.elements if "id" in element[1]]
    assert len(places) == len(set(places)), places
    links = [element[1]["href"][1:] for element in page.all("a")]
    assert set(links) <= set(places), set(links) - set(places)
    # Every heading but those of a transcript's parts, where there are several, can be gone to.
    assert len(page.all("nav")) == 1
    several = len(report["transcripts"]) > 1
    wanted = [element[1]["id"] for element in page.all("section") + page.all("h3", id=None)
              if element[0] == "section" or not several]
    assert set(wanted) <= set(links), set(wanted) - set(links)


def check_commands(page, report):
    """One box in which nothing repeats, and which is all that the runs' commands say."""
    text, = [element[2] for element in page.all("pre") if "commands" in element[3]]
    lines = text.strip().splitlines()
    assert len(lines) == len(set(lines)), lines
    environment = [line[len("export "):] + " " for line in lines if line.startswith("export ")]
    assert len(environment) <= 1, lines
    commands = {"".join(environment) + line for line in lines if line.startswith("healcl ")}
    # Commands out of a saved file are not for people to copy.
    own = {run["command"] for run in report["runs"]
           if "baseline" not in report["devices"][run["device_at"]]}
    assert commands == own | {report["command"]}, commands ^ own


def check_charts(text):
    """Labels of axes in the middle of their lines and with room where the axis has 312 pixels;
    marks not on each other."""
    for chart in re.findall(r'<svg class="chart".*?</svg>', text, re.DOTALL):
        ticks = re.findall(r'<line class="(?:grid|one)" x1="([\d.]+)%" x2="([\d.]+)%"[^>]*>'
                           r'<text class="axis" x="([\d.]+)%" y="\d+" text-anchor="(\w+)">', chart)
        assert 0 < len(ticks) == chart.count('class="axis"'), chart
        assert all(a == b == c and anchor == "middle" for a, b, c, anchor in ticks), ticks
        places = [float(tick[0]) for tick in ticks]
        assert all(b - a > 16.9 for a, b in itertools.pairwise(places)), places
        marks = [(float(x), int(y)) for x, y in
                 re.findall(r'<use class="mark-on[^>]* x="([\d.]+)%" y="(\d+)"', chart)]
        assert all(abs(a[0] - b[0]) > 4.9 or abs(a[1] - b[1]) >= 14
                   for a, b in itertools.combinations(marks, 2)), marks


def check_page(text, report):
    page = Page(text)
    check_means(page, report)
    check_contents(page, report)
    check_commands(page, report)
    check_charts(text)
    assert "local, local, scroll, scroll" in text  # shades where a table goes on
    assert not page.all("script") and not page.all("link") and not page.all("img")
    for element in page.elements:
        for key in ("src", "href"):
            assert element[1].get(key, "#").startswith("#"), element
    verdicts = page.all("td", data_outcome=None)
    assert [cell[1]["data-outcome"] for cell in verdicts] == \
        [run["outcome"] for run in report["runs"]]
    computes = page.all("td", data_label="Compute")
    speedups = page.all("td", data_label="Speed-up")[::2]  # the others are of steady requests
    assert len(computes) == len(speedups) == len(report["runs"])
    for label, key in (("Compute", "compute"), ("Steady", "steady"), ("Transfer", "transfer"),
                       ("Decode", "decode"), ("Whole run", "median")):
        assert [int(cell[1]["data-ns"]) for cell in page.all("td", data_label=label)] == \
            [run.get(f"{key}_ns", 0) for run in report["runs"]], label
    for cell, speedup, run in zip(computes, speedups, report["runs"]):
        if run["samples_ns"]:
            assert is_about(cell[2].strip().replace(" noisy", ""), run["compute_ns"]), (cell, run)
        factor = run.get("speedup", {}).get("factor")
        assert speedup[1].get("data-factor", factor) == factor or \
            abs(float(speedup[1]["data-factor"]) / factor - 1) < 1e-6, (speedup, run)
    # Every time of a segment and of a kind of operation is in a table.
    # A red cross is for what a device does wrong.
    crosses = [element[2].startswith("✗") for element in page.all("span", class_=None)
               if element[1]["class"].startswith("verdict") and "verdicts" in element[3]]
    assert crosses == [run["fault"] == "device" for run in report["runs"]], crosses
    told = {int(element[1]["data-ns"]) for element in page.all("td", data_ns=None)}
    for run in report["runs"]:
        for part in run["segments"] + run["ops"]:
            assert part["time_ns"] in told or part["time_ns"] == 0, part
        for phase in ("open_device", "open_transcript", "compile", "warm_up", "process"):
            assert run[f"{phase}_ns"] in told, phase
        assert set(run.get("first_result", {}).values()) <= told, run
        assert run.get("p95_ns", 0) in told | {0}, run
    for chart in page.all("svg", role="img"):
        assert chart[2].strip()
    assert len(page.all("title")) > len(page.all("svg", role="img"))
    assert len(page.all("desc")) == len(page.all("svg", role="img")) > 0


# ---------------------------------------------------------------- ranks

# What healcl-mpi serve and run write, as far as a comparison reads it (docs/JSON.md).
SERVED = {
    "healcl": "0.1.0", "transcript": "model.json", "results": "answers",
    "requests": 40, "left_out": 0, "failed": 1, "ns": 2_000_000_000, "requests_per_second": 20.0,
    "latency_ns": {"median": 95_000_000, "p95": 130_000_000, "p99": 140_000_000,
                   "longest": 150_000_000},
    "longest_wait_ns": 310_000, "bytes_uploaded": 4_000_000, "bytes_written": 40_000,
    "device_bytes": 90_000_000, "sessions": 4, "batch": 2, "batches": 21, "failures": [],
    "ranks": [
        {"rank": rank, "host": f"node{rank}", "device": "pthread-Intel(R) Xeon(R) Platinum 8488C",
         "requests": 19 + 2 * rank, "left_out": 0, "failed": 1 - rank, "ns": 1_900_000_000 + rank * 10**8,
         "latency_ns": {"median": 95_000_000, "p95": 130_000_000, "p99": 140_000_000,
                        "longest": 150_000_000},
         "longest_wait_ns": 310_000 * rank, "bytes_uploaded": 2_000_000, "bytes_written": 20_000,
         "device_bytes": 45_000_000, "sessions": 2, "batch": 2, "batches": 10 + rank}
        for rank in (0, 1)]}
SPLIT = {
    "healcl": "0.1.0", "transcript": "<b>digits</b>.json", "rank_count": 2, "repeat": 9,
    "ranks": [{"rank": rank, "host": "node|0", "device": "reference", "ns": 80_000_000 + rank,
               "exchange_ns": 5_000_000 - rank, "bytes_sent": 2_620_000, "bytes_foreseen": 2_620_000,
               "bytes_uploaded": 12_000_000, "tensor_bytes": 83_800_000,
               "device_bytes_peak": 89_000_000} for rank in (0, 1)]}


def write_ranks(folder):
    """-> the options of a comparison with both"""
    options = []
    for name, report in ("serve", SERVED), ("split", SPLIT):
        (folder / f"{name}.json").write_text(json.dumps(report))
        options += ["--ranks", str(folder / f"{name}.json")]
    return options


def check_ranks(paths, report):
    served, split = report["ranks"]
    assert (served["command"], split["command"]) == ("serve", "run")
    for told, asked in (served, SERVED), (split, SPLIT):
        assert told["transcript"] == asked["transcript"] and len(told["ranks"]) == 2
        for one, of in zip([*told["ranks"], told["all"]], [*asked["ranks"], asked]):
            for key, value in one.items():
                if key in of:
                    assert value == of[key], (key, one)
    assert split["all"] == {"ns": 80_000_001, "exchange_ns": 5_000_000, "bytes_sent": 5_240_000,
                            "bytes_uploaded": 24_000_000, "device_bytes_peak": 178_000_000}, split
    rows = [row for row in csv.DictReader(paths["csv"].open(newline="")) if row["rank"]]
    assert [row["rank"] for row in rows] == ["0", "1", "all"] * 2
    assert [row["host"] for row in rows] == ["node0", "node1", "", "node|0", "node|0", ""]
    assert rows[1]["latency_p95_ns"] == "130000000" and rows[2]["requests"] == "40"
    assert rows[4]["exchange_ns"] == "4999999" and rows[4]["requests"] == ""
    assert rows[0]["transcript"] == "model.json" and rows[0]["median_ns"] == ""
    assert rows[0]["device"] == "pthread-Intel(R) Xeon(R) Platinum 8488C"
    _, first, second = paths["markdown"].read_text().split("\n### Ranks\n")
    assert first.startswith("\nhealcl-mpi serve model.json, in ") and "| node0 |" in first, first
    assert "| all | - | - | 40 |" in first and "*Longest wait*: " in second, (first, second)
    assert "&lt;b&gt;digits" in second and "node\\|0" in second, second
    page = Page(paths["html"].read_text())
    tables = page.all("table", class_="verdicts ranks")
    assert len(tables) == 2, tables
    waits = page.all("td", data_label="Longest wait")
    assert [int(cell[1]["data-ns"]) for cell in waits] == [0, 310_000, 310_000], waits
    rates = page.all("td", data_label="Requests/s")
    assert [cell[2] for cell in rates] == ["10.0", "10.5", "20.0"], rates
    assert len(page.all("td", data_label="Exchange")) == 3


def check_ranks_alone(healcl, folder):
    """On a terminal; and what is no report of ranks."""
    def run(code, *options):
        done = subprocess.run([healcl, "compare", "-d", "reference", "--no-measure", *options, FILES[0]],
                              cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == code, done
        return done
    told = run(0, *write_ranks(folder)).stdout
    assert "ranks       healcl-mpi serve model.json, in " in told, told
    assert re.search(r"^rank +host +device +requests", told, re.M), told
    assert re.search(r"^all +- +- +40 +1 +21 +2\.00 s +20\.0 ", told, re.M), told
    assert "longest wait: the longest that a rank waited" in told, told
    for text, words in (("{}", "is no JSON of healcl-mpi"), ("[1", "other.json"),
                        ('{"ranks": {}, "requests": 1}', "is no JSON of healcl-mpi")):
        (folder / "other.json").write_text(text)
        assert words in run(2, "--ranks", f"{folder}/other.json").stderr, text
    (folder / "other.json").write_text('{"ranks": [7, null, {"rank": -1, "host": 5, "ns": 1e300}], '
                                       '"requests": "all", "rank_count": 2}')
    run(0, "--ranks", f"{folder}/other.json")
    (folder / "other.json").unlink()


class Browser:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, page, *options):
        return subprocess.run(
            [self.program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--allow-file-access-from-files", f"--user-data-dir={self.folder}/browser",
             *options, page.as_uri()],
            capture_output=True, text=True, check=True).stdout

    def width_of(self, page, width):
        """How wide the page is in a window of that width: more is a scroll bar."""
        frame = self.folder / "frame.html"
        frame.write_text(
            f'<iframe id="f" src="{page.name}" style="width:{width}px;height:900px;border:0">'
            "</iframe><script>onload = () => document.title = document.getElementById('f')"
            ".contentDocument.documentElement.scrollWidth</script>")
        return int(re.search(r"<title>(\d+)</title>", self.run(frame, "--dump-dom")).group(1))


    def faults_of_charts(self, page, width):
        """Letters of charts that lie on each other, and labels of axes that are beside their lines:
        how the browser lays them out in a window of that width."""
        frame = self.folder / "frame.html"
        frame.write_text(
            f'<iframe id="f" src="{page.name}" style="width:{width}px;height:900px;border:0">'
            """</iframe><script>onload = () => {
            const faults = [], inside = document.getElementById("f").contentDocument
            const middle = box => (box.left + box.right) / 2
            const meet = (a, b) => a.left < b.right && b.left < a.right &&
                                   a.top < b.bottom && b.top < a.bottom
            for (const chart of inside.querySelectorAll("svg.chart")) {
              const texts = [...chart.querySelectorAll(":scope > text")]
              const boxes = texts.map(text => text.getBoundingClientRect())
              boxes.forEach((a, i) => boxes.slice(0, i).forEach((b, j) => {
                if (meet(a, b)) faults.push(texts[i].textContent + " on " + texts[j].textContent)
              }))
              texts.forEach((text, i) => {
                const line = text.previousElementSibling
                if (text.matches(".axis") &&
                    Math.abs(middle(boxes[i]) - middle(line.getBoundingClientRect())) > 1)
                  faults.push(text.textContent + " is beside its line")
                if (boxes[i].left < 0 || boxes[i].right > innerWidth)
                  faults.push(text.textContent + " is cut")
              })
            }
            document.title = JSON.stringify(faults) }</script>""".replace("innerWidth", str(width)))
        dom = self.run(frame, "--dump-dom")
        return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", dom).group(1)))


def check_in_browser(browser, page, report):
    # The browser's own idea of the page, mended where it was wrong.
    dom = browser.run(page, "--dump-dom")
    shown = re.findall(r'data-label="Compute" data-ns="(\d+)"', dom)
    assert [int(value) for value in shown] == [run.get("compute_ns", 0) for run in report["runs"]]
    for width in (320, 400, 768, 1280):
        needed = browser.width_of(page, width)
        assert needed <= width, f"{needed} pixels in a window of {width}"
    faults = browser.faults_of_charts(page, 400)
    assert not faults, faults
    for name, width, options in (("desktop", 1280, ()), ("tablet", 768, ()),
                                 ("dark", 1280, ("--blink-settings=preferredColorScheme=0",))):
        browser.run(page, f"--window-size={width},4000", *options,
                    f"--screenshot={page.parent}/{name}.png")
    # Chromium's windows are not as narrow as a phone: a frame is.
    frame = browser.folder / "frame.html"
    frame.write_text('<body style="margin:0"><iframe src="report.html" style="width:400px;'
                     'height:5000px;border:0"></iframe>')
    browser.run(frame, "--window-size=500,5000", f"--screenshot={page.parent}/phone.png")
    browser.run(page, f"--print-to-pdf={page.parent}/print.pdf", "--no-pdf-header-footer")
    for name in ("desktop.png", "tablet.png", "dark.png", "phone.png", "print.pdf"):
        assert (page.parent / name).stat().st_size > 10000, name
    print(f"screenshots are in {page.parent}")


def hostile(report):
    """A saved comparison whose every string is an attack."""
    attack = "<script>alert(1)</script>\"'&|`\x1b]0;x\x07\n\\x"
    numbers = itertools.count() # kinds of operations are told apart by their names

    def spoil(value, key=None):
        if isinstance(value, dict):
            return {name: spoil(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [spoil(item) for item in value]
        keep = ("digest", "outcome", "date") # what makes it a comparison of the same file
        return f"{attack}{next(numbers)}" if isinstance(value, str) and key not in keep else value
    return spoil(report)


def misshapen(report):
    """Objects where lists should be, and the other way round."""
    def bend(value):
        if isinstance(value, list):
            return {f"{place}": bend(item) for place, item in enumerate(value)}
        return [value, [value], None, -1, 1e300] if isinstance(value, int) else value
    runs = [{key: run[key] if key.endswith("_at") else bend(run[key]) for key in run}
            for run in report["runs"]]
    return {**report, "runs": runs}


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
    told = {}
    for kind in ("html", "markdown", "json"):
        told[kind] = subprocess.run(
            ["healcl", "compare", "-d", "reference", f"--{kind}=-", f"--csv={home}/out.csv",
             f"{home}/in it/memory.json"],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=True).stdout
    page = Page(told["html"])
    assert "o'user" not in html.unescape(told["html"]), told["html"]
    text, = [element[2] for element in page.all("pre") if "commands" in element[3]]
    lines = text.splitlines()
    assert lines[0] == "export LD_LIBRARY_PATH=~/'a b:/usr/lib':~/c", lines
    assert "--csv=\"$HOME\"/out.csv" in lines[1] and "~/'in it/memory.json'" in lines[1], lines
    (home / "out.csv").unlink()
    subprocess.run(["sh", "-e", "-c", text + 'test "$LD_LIBRARY_PATH" = "$1"', "sh",
                    environment["LD_LIBRARY_PATH"]], cwd=folder, check=True, timeout=100,
                   env={**environment, "HOME": str(home), "LD_LIBRARY_PATH": ""},
                   stdout=subprocess.DEVNULL)
    assert (home / "out.csv").exists()
    assert "o'user" not in json.loads(told["json"])["command"]
    shutil.rmtree(home)
    shutil.rmtree(folder / "bin")


def main():
    healcl, folder = sys.argv[1], Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = {kind: folder / f"report.{kind}" for kind in ("json", "csv", "markdown", "html")}

    def compare(files, *options):
        command = [healcl, "compare", *options, *files]
        for kind, path in paths.items():
            command += [f"--{kind}", str(path)]
        start = time.monotonic_ns()
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        outside = time.monotonic_ns() - start
        assert not run.stderr, run.stderr
        report = json.loads(paths["json"].read_text())
        assert all(row["process_ns"] <= outside for row in report["runs"]), (outside, report)
        return run.returncode, report

    devices = ["-d", "", "-d", "reference"] if use_device(healcl) else ["-d", "reference"]

    def check(files, report, measured=False):
        check_json(report, files)
        check_first_results(report, measured)
        check_csv(paths["csv"], report)
        check_markdown(paths["markdown"], report)
        check_page(paths["html"].read_text(), report)

    code, report = compare(FILES[:1], *devices, "--no-measure")
    assert code == 0, code
    check(FILES[:1], report)
    (folder / "saved.json").write_text(json.dumps(hostile(report)))

    # Several transcripts, of which some go wrong, beside a saved run full of markup.
    code, report = compare(FILES, *devices, "--no-measure")
    assert code == 1, code
    check(FILES, report)
    assert {run["fault"] for run in report["runs"]} == {"", "transcript"}, report["runs"]
    if "" in devices: # which is told by itself: nobody named the reference
        code, report = compare(FILES[1:2], "-d", "", "--no-measure")
        assert code == 1 and report["runs"][0]["fault"] == "transcript", report["runs"]
        check(FILES[1:2], report)
    code, report = compare(FILES[:1], *devices, "--no-measure", "--baseline",
                           str(folder / "saved.json"))
    assert code == 0, code
    check(FILES[:1], report)
    assert sum("baseline" in device for device in report["devices"]) == len(report["devices"]) / 2
    assert "<script" not in paths["html"].read_text() and "\x1b" not in paths["html"].read_text()

    (folder / "saved.json").write_text(json.dumps(misshapen(report)))
    code, report = compare(FILES[:1], *devices, "--no-measure", "--baseline",
                           str(folder / "saved.json"))
    assert code == 0, code

    check_home(healcl, folder)

    check_ranks_alone(healcl, folder)

    # What is left for people is the report that people would make.
    code, report = compare(FILES[:1], *devices, "--repeat", "20", *write_ranks(folder))
    check(FILES[:1], report, measured=True)
    check_ranks(paths, report)
    assert all(run["p95_ns"] >= run["median_ns"] and "p99_ns" not in run for run in report["runs"])
    program = shutil.which("chromium") or shutil.which("chromium-browser") or \
        shutil.which("google-chrome")
    if not program:
        print("there is no Chromium: the page was not opened in a browser")
        return 0
    check_in_browser(Browser(program, folder), paths["html"], report)
    for rest in ("frame.html", "saved.json", "serve.json", "split.json"):
        (folder / rest).unlink()
    shutil.rmtree(folder / "browser", ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
