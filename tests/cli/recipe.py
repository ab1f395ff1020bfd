#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs examples/ci/healcl-ci.sh as a job would, the first time and again, with few operations checked.

    recipe.py HEALCL

Exits with 77, skipped, where there is no PoCL.
"""
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
healcl = Path(sys.argv[1]).resolve()


def main():
    script = (ROOT / "examples/ci/healcl-ci.sh").read_text()
    # Slower than last time is not what this test is about.
    quick = script.replace("--quick", "--quick --op abs").replace("-slower 15", "-slower 1000000")
    assert quick.count("op abs") == 1 and quick.count("1000000") == 1, quick
    for job in ("github.yml", "gitlab.yml"):
        assert "sh examples/ci/healcl-ci.sh" in (ROOT / "examples/ci" / job).read_text(), job
    if subprocess.run([healcl, "devices", "-d", "pocl"], capture_output=True).returncode:
        print("no PoCL")
        return 77
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "cache").mkdir()
        (folder / "bin").mkdir()
        (folder / "bin/healcl").symlink_to(healcl)
        (folder / "transcripts").symlink_to(ROOT / "transcripts")
        environment = {key: value for key, value in os.environ.items()
                       if key not in ("CI_COMMIT_BRANCH", "GITHUB_REF_NAME")}
        environment["PATH"] = f"{folder}/bin:{environment['PATH']}"
        for count in (2, 6):  # cases: verdicts, and then compute and steady requests too
            done = subprocess.run(["sh", "-c", quick], cwd=folder, env=environment,
                                  capture_output=True, text=True)
            # A busy machine makes times that are not judged, which is told.
            lines = done.stderr.splitlines()
            unjudged = sum("cannot be judged" in line for line in lines)
            assert done.returncode == 0 and unjudged == len(lines), done
            assert (folder / "cache/last.json").read_bytes() == (folder / "today.json").read_bytes()
            for report in ("check.xml", "compare.xml"):
                top = ElementTree.parse(folder / report).getroot()
                assert top.get("failures") == top.get("errors") == "0", top.attrib
            assert top.get("tests") == str(count), top.attrib
            assert top.get("skipped") == str(unjudged), (top.attrib, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
