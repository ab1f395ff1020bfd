#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `healcl tune` whole, and checks that its choices are right, saved, in force, reported, and
discarded. --force lets it run on a busy machine.

    tune.py HEALCL [CPU_CLOCK.so]

Each choice is measured for a short time, by a clock that is fast (tests/cpu_clock.c), unless the whole
is asked for (tests/share.py).

Exits with 77, skipped, where there is no device.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from devices import use_device  # noqa: E402
from share import IS_ALL, share  # noqa: E402

TURNS = 4  # a run in so many does it


def main():
    healcl = sys.argv[1]
    if not use_device(healcl):
        print("no device")
        return 77
    if 0 not in share("whole tuning", range(TURNS), TURNS):
        print("not in this run's share")
        return 77
    with tempfile.TemporaryDirectory(prefix="healcl-tune-") as folder:
        environment = {key: value for key, value in os.environ.items()
                       if key not in ("HEALCL_TUNING", "HEALCL_VARIANT")}
        environment["HEALCL_CACHE_DIR"] = folder
        if len(sys.argv) > 2 and not IS_ALL:
            environment.update(LD_PRELOAD=sys.argv[2], CPU_CLOCK_SPEED="50")

        def run(*arguments):
            return subprocess.run([healcl, *arguments], env=environment, capture_output=True,
                                  text=True, check=True, cwd=ROOT).stdout

        def device_of_run(**more):
            environment.update(more)
            device = json.loads(run("run", "--json", "-", "transcripts/nothing.json"))["device"]
            for name in more:
                del environment[name]
            return device

        untuned = device_of_run()
        assert not untuned["tuned"] and "tuned_by" not in untuned, untuned

        saved = Path(folder, "saved.json")
        report = json.loads(run("tune", "--force", "--json", "-", "--save", str(saved)))
        subjects = {}
        for alternative in report["alternatives"]:
            assert alternative["outcome"] == "right", alternative
            assert alternative["median_ns"] >= alternative["time_ns"] > 0, alternative
            subjects.setdefault(alternative["subject"], []).append(alternative)
        for alternatives in subjects.values():
            chosen = [alternative for alternative in alternatives if alternative["chosen"]]
            assert len(chosen) == 1, alternatives
            for item in chosen[0]["choice"].split(","):
                assert item in report["tuning"].split(","), item
        assert report["unmeasured"] == [], report["unmeasured"]
        assert Path(report["kept"]).read_text().splitlines()[-1] == report["tuning"], report["kept"]

        # A file for tunings/ has what differs from the default.
        written = json.loads(saved.read_text())
        assert report["saved"] == str(saved) and list(written) == ["comment", "device", "tuning"]
        assert set(written["device"]) == {"vendor", "architecture", "name"}, written
        different = set(report["tuning"].split(",")) - set(untuned["tuning"].split(","))
        assert {f"{key}={value}" for key, value in written["tuning"].items()} == different, written

        index = report["device"]["index"]

        def this_device():
            return next(device for device in json.loads(run("devices", "--json", "-"))["devices"]
                        if device["index"] == index)

        device = this_device()
        assert device["tuned"] and device["tuning"] == report["tuning"], device
        assert device["tuned_by"] == "healcl tune", device
        assert "\ntuned       by healcl tune\n" in run("run", "transcripts/memory.json")
        device = device_of_run()
        assert device["tuned_by"] == "healcl tune" and device["tuning"] == report["tuning"], device
        both = device_of_run(HEALCL_VARIANT="general")
        assert both["tuned_by"] == "healcl tune and the environment", both
        assert "transform=general" in both["tuning"], both
        # A damaged file is ignored.
        Path(report["kept"]).write_text("transform=\n")
        assert not this_device()["tuned"]
        run("run", "-q", "-d", index, "transcripts/memory.json")
        assert not device_of_run()["tuned"]
    print("tuned:", report["tuning"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
