# SPDX-License-Identifier: Apache-2.0
"""Which device the tests of the program run on, whatever else is installed."""
import json
import os
import subprocess


def use_device(healcl):
    """Names a device in the environment's HEALCL_DEVICE, for all that is run from now on. Returns
    what it named, as --device takes it, or None where there is no device.

    The platform is the one whose name contains the environment's HEALCL_TEST_PLATFORM; without it
    PoCL, else one with a CPU, else any: tests/unit/helper_opencl.h does the same."""
    environment = {key: value for key, value in os.environ.items() if key != "HEALCL_DEVICE"}
    wanted = os.environ.get("HEALCL_TEST_PLATFORM")

    def rank(device):
        return (device["platform"] == "Portable Computing Language", device["type"] == "cpu")

    listed = subprocess.run([healcl, "devices", "--no-self-test", "--json", "-"], env=environment,
                            capture_output=True, text=True, check=False)
    if listed.returncode not in (0, 4):
        raise SystemExit(f"healcl devices ends with {listed.returncode}: {listed.stderr}")
    devices = [device for device in json.loads(listed.stdout)["devices"]
               if device["usable"] and (wanted or "") in device["platform"]]
    if not devices:
        os.environ.pop("HEALCL_DEVICE", None)
        return None
    os.environ["HEALCL_DEVICE"] = max(devices, key=rank)["index"]
    return os.environ["HEALCL_DEVICE"]
