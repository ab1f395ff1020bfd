#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every operation that kernels run, with every dtype and layout, on the device of the tests: of few
sizes, or where the whole of long sweeps is asked for of all.

    check.py HEALCL
"""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from devices import use_device  # noqa: E402
from share import COMPILE_FAST, IS_ALL  # noqa: E402

if not use_device(sys.argv[1]):
    print("no device")
    sys.exit(77)
os.environ.update(COMPILE_FAST)
os.execv(sys.argv[1], [sys.argv[1], "check", *([] if IS_ALL else ["--quick"])])
