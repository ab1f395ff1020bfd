#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples of vendors' operations, copied elsewhere: they build, run and verify there.

    examples.py HEALCL
"""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from share import COMPILE_FAST, IS_ALL  # noqa: E402

os.environ.update(COMPILE_FAST)

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples",
                        "extensions")


def run(*command, code=0):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, (command, done)
    return done.stdout + done.stderr


def transcript(folder, *options, script="key_switch.py"):
    path = os.path.join(folder, "..", "made.json")
    with open(path, "w", encoding="utf-8") as file:
        subprocess.run([sys.executable, "-B", os.path.join(folder, script), *options],
                       stdout=file, check=True)
    return path


def change(path, old, new):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert old in text, old
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new, 1))


def right(operation, told, sides=r"(\d+)/\1 +(\d+)/\2"):
    assert re.search(rf"\n{operation} +{sides}\n", told), told


def other_tunables(healcl, folder):
    """In one block or four, with one stage at a time or two."""
    with open(os.path.join(folder, "key_switch.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    tunables = manifest["operations"][0]["kernels"][0]["tunables"]
    assert tunables == {"STAGES": [3, 2, 1], "SHARED": [2, 1, 4]}, tunables
    with tempfile.TemporaryDirectory() as other:
        shutil.copy(os.path.join(folder, "key_switch.cl"), other)
        os.mkdir(os.path.join(other, "examples"))
        shutil.copy(transcript(folder, "512", "2", "6"), os.path.join(other, "examples", "a.json"))
        for stages, shared in ((2, 1), (1, 4)):
            tunables.update(STAGES=[stages], SHARED=[shared])
            with open(os.path.join(other, "m.json"), "w", encoding="utf-8") as file:
                json.dump(manifest, file)
            right("key_switch", run(healcl, "check", "--ops", other, "--op", "key_switch"))


def wrong_manifests(folder):
    wrong = os.path.join(folder, "..", "wrong")
    os.mkdir(wrong)
    with open(os.path.join(wrong, "wrong.json"), "w", encoding="utf-8") as file:
        file.write("{}")
    return wrong


def reports_name(healcl, folder, made, name, alternative, replaces):
    """A run's JSON and trace report that an alternative of name.json runs steps of name."""
    trace = os.path.join(folder, "..", "trace.json")
    told = json.loads(run(healcl, "run", "--ops", folder, "--quiet", "--json", "-", "--trace", trace,
                          made))
    kernel, = told["manifest_kernels"]
    steps = kernel.pop("steps")
    assert kernel == {"name": alternative, "of": name, "manifest": name + ".json",
                      "replaces": replaces, "tuned": False}, told
    with open(trace, encoding="utf-8") as file:
        spans = [event for event in json.load(file)["traceEvents"] if event.get("cat") == "kernel"]
    named = [span["args"] for span in spans if "manifest" in span["args"]]
    assert len(named) == 2 * steps, named  # in the warm-up, too
    for about in named:
        expected = {"manifest": name + ".json", "alternative": alternative, "tuned": False,
                    **({"replaces": name} if replaces else {})}
        assert expected.items() <= about.items() and ("replaces" in about) == replaces, about
        assert about["op"] == name and about["program"].startswith(name + ".cl@"), about
    assert not [span for span in spans if span["args"]["program"].startswith(name + ".cl@")
                and "manifest" not in span["args"]], spans


def comparison_names(healcl, folder, made):
    """Comparisons name kernels in JSON and on the page, those of baselines too."""
    saved, page = (os.path.join(folder, "..", name) for name in ("saved.json", "page.html"))
    command = (healcl, "compare", "--ops", folder, "--no-measure", "--repeat", "1")
    expected = {"name": "key_switch[STAGES=3,SHARED=2]", "of": "key_switch", "manifest": "key_switch.json",
                "replaces": False, "steps": 1, "tuned": False}
    run(*command, "--json", saved, made)
    told = json.loads(run(*command, "--baseline", saved, "--html", page, "--json", "-", made))
    assert [one["outcome"] for one in told["runs"]] == ["verified"] * 2, told["runs"]
    assert [one["manifest_kernels"] for one in told["runs"]] == [[expected]] * 2, told["runs"]
    schema = os.path.join(EXAMPLES, "..", "..", "docs", "compare.schema.json")
    try:
        import jsonschema
        with open(schema, encoding="utf-8") as file:
            jsonschema.validate(told, json.load(file))
    except ImportError:
        print("python3-jsonschema is missing: the schema was not used")
    with open(page, encoding="utf-8") as file:
        assert file.read().count('"name":"key_switch[STAGES=3,SHARED=2]"') == 2


def key_switch(healcl, folder):
    made = transcript(folder, "256", "3", "4")
    manifest = os.path.join(folder, "key_switch.json")
    ops = ("--ops", folder)
    assert "key_switch(a, key, q, psi, base_bits, out)" in run(healcl, "ops", *ops)
    assert "unknown operation" in run(healcl, "run", made, code=3)
    assert "key_switch" in run(healcl, "inspect", *ops, made)
    told = run(healcl, "inspect", *ops, "--kernels", made)
    assert "key_switch[STAGES=3,SHARED=2]" in told and "\ndigits " not in told, told  # nor the body's kernels
    for where in (["--reference"], []):
        told = run(healcl, "run", *ops, "-v", *where, made)
        assert "\nkey_switch " in told and "verified: 1 of 1 result" in told, told
        assert "\nntt " not in told, told
        line = "\nmanifest    key_switch[STAGES=3,SHARED=2] of key_switch.json ran 1 step of key_switch\n"
        assert (line in told) == (not where), told
    reports_name(healcl, folder, made, "key_switch", "key_switch[STAGES=3,SHARED=2]", False)
    comparison_names(healcl, folder, made)
    assert "wrong.json" in run(healcl, "compare", "--ops", wrong_manifests(folder), made, code=3)
    check = ("check", *ops, "--op", "key_switch")
    right("key_switch", run(healcl, *check))
    told = run(healcl, "bench", *ops, "--op", "key_switch", "--repeat", "1")
    assert told.count("\nkey_switch") == 2 and " times as long as the kernel" in told, told
    # One residue is a single element, and one digit is all of a.
    for shape in ("1", "1", "1"), ("2", "2", "60"), ("512", "1", "2"), ("64", "5", "3"):
        run(healcl, "run", *ops, transcript(folder, *shape))
    other_tunables(healcl, folder)
    # The kernel is what runs on a device: a wrong one differs there, not on the reference.
    kernel = os.path.join(folder, "key_switch.cl")
    change(kernel, "STORE(AS_LONGS(sum), out + u)", "STORE(AS_LONGS(whole), out + u)")
    made = transcript(folder, "256", "3", "4")
    run(healcl, "run", *ops, made, code=1)
    run(healcl, "run", *ops, "--reference", made)
    assert "key_switch.json, entry 6: contiguous, " in run(healcl, *check, code=1)
    # Compilers' messages about failed builds are reported.
    change(kernel, "lanes zero = 0;", "lanes zero = nothing_known;")
    told = run(healcl, *check, code=1)
    assert "does not build" in told and "nothing_known" in told, told
    # The body runs on a device without a kernel.
    change(manifest, '"local": 1,', '"local": 1, "device": "no such device",')
    told = run(healcl, "run", *ops, "-v", made)
    assert "\nkey_switch " in told and "verified: 1 of 1 result" in told, told
    right("key_switch", run(healcl, *check), r"(\d+)/\1")
    # Rules are those of the plan: nothing runs.
    change(manifest, "base_bits >= 1 &&", "size(a) != 256 &&")
    told = run(healcl, "run", *ops, made, code=3)
    assert "(key_switch): rule 'size(a) != 256 && base_bits <= 62' does not hold" in told, told


def automorphism(healcl, folder):
    ops = ("--ops", folder)
    name = "automorphism[PARTS=16]"
    for shape in ("256", "3", "5"), ("8", "2", "15"), ("1", "1", "1"):
        made = transcript(folder, *shape, script="automorphism.py")
        for where in (["--reference"], []):
            told = run(healcl, "run", *ops, *where, made)
            assert "verified: 1 of 1 result" in told and (name in told) == (not where), told
    run(healcl, "run", transcript(folder, "64", "--low", script="automorphism.py"))
    check = ("check", *ops, "--op", "automorphism")
    right("automorphism", run(healcl, *check))
    kernel = os.path.join(folder, "automorphism.cl")
    # A wrong sign is found.
    change(kernel, "residue_of(sign[sign_at + i], m)", "1")
    run(healcl, "run", *ops, transcript(folder, "256", script="automorphism.py"), code=1)
    assert "automorphism.json, entry 6: contiguous, " in run(healcl, *check, code=1)


def with_element(entry, value):
    """The entry that uploads a tensor, whose first element becomes another."""
    changed = json.loads(json.dumps(entry))
    tensor = changed["op"]["args"][0]["value"]["tensor_base64"]
    data = bytearray(base64.b64decode(tensor["data"]))
    at = 10 + int.from_bytes(data[8:10], "little")
    data[at:at + 8] = value.to_bytes(8, "little", signed=True)
    tensor["data"] = base64.b64encode(data).decode()
    return changed


def bad_data(healcl, folder):
    """What the reference refuses, kernels of manifests do not run."""
    for script, shape, cases in (
            ("automorphism.py", ("8", "2", "15"), (("index", 8), ("index", -9), ("q", 0), ("q", -5))),
            ("key_switch.py", ("64", "3", "4"), (("q", 0), ("q", -1)))):
        with open(transcript(folder, *shape, script=script), encoding="utf-8") as file:
            entries = json.load(file)
        for name, value in cases:
            at, = [i for i, entry in enumerate(entries) if entry.get("op", {}).get("name") == "host_to_device"
                   and entry["op"]["out"]["value"]["inf_name"] == name]
            path = os.path.join(folder, "..", "bad.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump([*entries[:at], with_element(entries[at], value), *entries[at + 1:]], file)
            expected = run(healcl, "run", "--reference", "--ops", folder, path, code=3)
            assert f": {value} at [0" in expected, expected
            for repeat in "1", "3":
                told = run(healcl, "run", "--repeat", repeat, "--ops", folder, path, code=3)
                assert told == expected, (told, expected)


def device_name(healcl):
    """Returns the device that runs choose."""
    made = run(healcl, "inspect", "--kernels", os.path.join(EXAMPLES, "..", "..", "transcripts",
                                                            "nothing.json"))
    return made.split("device ", 1)[1].strip().split("(", 1)[0].strip()


def ntt(healcl, folder):
    transcripts = os.path.join(EXAMPLES, "..", "..", "transcripts")
    ops = ("--ops", folder)
    for name in "ntt.json", "random_1.json", "encrypted_digits_toy.json.gz":
        path = os.path.join(transcripts, name)
        assert "vendor_ntt" in run(healcl, "inspect", *ops, "--kernels", "--json", "-", path)
        told = run(healcl, "run", *ops, path)
        assert re.search(r"\nmanifest +vendor_ntt of ntt.json ran \d+ steps? of ntt in place "
                         r"of a built-in kernel\n", told), told
        reports_name(healcl, folder, path, "ntt", "vendor_ntt", True)
    check = ("check", *ops, "--op", "ntt", "--quick")
    assert "never ran" not in run(healcl, *check)
    # A wrong one, compiled for few sizes, differs on the device alone.
    change(os.path.join(folder, "ntt.cl"), "(TYPE_out)x[u]", "0")
    path = transcript(folder, "64", "--low")
    run(healcl, "run", *ops, path, code=1)
    run(healcl, "run", *ops, "--reference", path)
    run(healcl, "bench", *ops, "--op", "ntt", "--n", "64", "--batch", "1", "--repeat", "1", code=1)
    if IS_ALL:
        run(healcl, *check, code=1)
    path = os.path.join(transcripts, "ntt.json")
    # The built-in kernel runs steps of one that cannot be built, and that is reported.
    change(os.path.join(folder, "ntt.cl"), "KERNEL vendor_ntt", "#error not here\nKERNEL vendor_ntt")
    trace = os.path.join(folder, "..", "trace.json")
    told, _ = json.JSONDecoder().raw_decode(
        run(healcl, "run", *ops, "--quiet", "--json", "-", "--trace", trace, path))
    written = run(healcl, "run", *ops, path)
    assert "16 steps ran on other kernels than a manifest's" in written, written
    assert "\nfell back   ntt: 16 steps: " in written, written
    assert told["verified"] and told["fallbacks"] == 16, told["fallbacks"]
    assert "manifest_kernels" not in told, told["manifest_kernels"]
    reason, = {kind["fallback_reason"] for segment in told["segments"]
               for kind in segment["operations_by_kind"] if kind["fallbacks"]}
    assert "program 'ntt.cl@" in reason and "does not build" in reason, reason
    with open(trace, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    assert not [event for event in events if event.get("cat") == "fallback"], events
    assert "not here" in run(healcl, "run", *ops, "--no-fallback", path, code=4)
    change(os.path.join(folder, "ntt.json"), '"device": "', '"device": "no such ')
    assert "it is for other devices (58)" in run(healcl, "inspect", *ops, "--kernels", path)
    run(healcl, "run", *ops, path)


def main():
    healcl = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "vendor")
        shutil.copytree(EXAMPLES, folder)
        change(os.path.join(folder, "ntt.json"), '"pthread"', f'"{device_name(healcl)[:20]}"')
        key_switch(healcl, folder)
        ntt(healcl, folder)
        bad_data(healcl, folder)
        automorphism(healcl, folder)


main()
