#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""healcl run --requests --audit: its reports, also with a compiler that gets one kernel wrong.

    audit.py HEALCL FAULTY_SOURCE.so

Exits with 77, skipped, where there is no device.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from devices import use_device  # noqa: E402
from share import COMPILE_FAST  # noqa: E402
healcl, driver = sys.argv[1:3]

NEGATION = ("return rest ? (long)(p.value - rest) : 0;", "return (long)(p.value - rest);")
TRANSCRIPT = "transcripts/modular.json"


def run(*arguments, code=0, faulty=False):
    environment = {**os.environ, "HEALCL_CACHE_DIR": "", "HEALCL_VARIANT": "general",
                   **COMPILE_FAST}
    if faulty:
        environment.update(LD_PRELOAD=driver, FAULTY_FROM=NEGATION[0], FAULTY_TO=NEGATION[1])
    done = subprocess.run([healcl, "run", *arguments], cwd=ROOT, env=environment, text=True,
                          capture_output=True, check=False)
    assert done.returncode == code, (done.args, done.returncode, done.stdout, done.stderr)
    return done


def fails(words, *arguments):
    done = run(*arguments, TRANSCRIPT, code=2)
    assert words in done.stderr and done.stderr.count("\n") == 1, done.stderr


def check_usage():
    fails("--audit takes a share such as 2%, not 'much'", "--requests", "2", "--audit", "much")
    for share in "0%", "0.02", "2", "101%", "2%%", "1e1%", ".5%":
        fails(f"--audit takes a share such as 2%, not '{share}'", "--requests", "2", "--audit", share)
    fails("--audit needs --requests, and a device", "--audit", "2%")
    fails("--audit needs --requests, and a device", "--requests", "2", "--audit", "2%", "--reference")


def check_right():
    """All that there is has been seen after some requests."""
    done = run("--requests", "100", "--audit", "50%", "--json", "-", TRANSCRIPT)
    audit = json.loads(done.stdout)["audit"]
    assert audit["verdict"] == "agrees" and "difference" not in audit, audit
    assert audit["share"] == 0.5 and 0 < audit["share_taken"] <= 1, audit
    assert audit["audits"] > 0 and audit["elements"] > 0 and audit["ns"] > 0, audit
    assert audit["steps_audited"] == audit["steps"] > 0, audit
    for key in "steps", "steps_audited", "audits", "elements":
        assert audit[key] == sum(kernel[key] for kernel in audit["kernels"]), audit
    text = run("--requests", "3", "--audit", "50%", TRANSCRIPT).stdout
    assert re.search(r"^audited +\d+ runs of a step, \d+ elements, in .*%", text, re.M), text
    assert re.search(r"^covered +\d+ of \d+ steps", text, re.M), text
    # So small a share audits nothing, which is no verdict.
    none = run("--requests", "2", "--audit", "0.000001%", TRANSCRIPT).stdout
    assert re.search("^audited +nothing: ", none, re.M) and "runs of a step" not in none, none
    none = run("--requests", "2", "--audit", "0.000001%", "--json", "-", TRANSCRIPT).stdout
    assert json.loads(none)["audit"]["verdict"] == "nothing audited", none
    assert "audit" not in json.loads(run("--requests", "2", "--json", "-", TRANSCRIPT).stdout)


def check_wrong():
    done = run("--requests", "200", "--no-verify", "--audit", "50%", TRANSCRIPT, code=1, faulty=True)
    assert re.fullmatch(rf"healcl: {TRANSCRIPT}: entry \d+ \(_modneg_\w+\): audit: step \d+ "
                        r"\(modneg, \w+, int\d+\) gives -?\d+ at \[.*\], the host reference -?\d+; "
                        r"\d+ of \d+ elements differ\n", done.stderr), done.stderr
    assert re.search(r"^differs +entry \d+ \(_modneg_\w+\), step \d+ ", done.stdout, re.M), done.stdout
    done = run("--requests", "200", "--no-verify", "--audit", "50%", "--json", "-", TRANSCRIPT, code=1,
               faulty=True)
    audit = json.loads(done.stdout)["audit"]
    difference = audit["difference"]
    assert audit["verdict"] == "differs" and difference["op"].startswith("_modneg"), audit
    assert difference["message"] in done.stderr, audit
    assert 0 < difference["different"] <= difference["compared"], audit
    assert difference["actual"] != difference["expected"], audit


def main():
    if not use_device(healcl):
        print("no device")
        return 77
    check_usage()
    check_right()
    check_wrong()
    return 0


if __name__ == "__main__":
    sys.exit(main())
