# SPDX-License-Identifier: Apache-2.0
"""A run of the tests takes a share of each long sweep, another one with each seed: as
tests/unit/helper_share.h says, whose environment this is too."""
import os
import random
import time

IS_ALL = os.environ.get("HEALCL_TEST_ALL") == "1"
SEED = int(os.environ.get("HEALCL_TEST_SEED") or str(int(time.time()) // 86400), 0)
# For kernels that are made for other devices: PoCL compiles them without optimising.
COMPILE_FAST = {} if IS_ALL else {"POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable"}


def share(sweep, cases, of, says=True):
    """Returns one of each `of` neighbouring cases, or all if the whole is asked for. Prints the seed."""
    cases = list(cases)
    if IS_ALL:
        return cases
    if says:
        print(f"a share of the whole, {sweep}: HEALCL_TEST_SEED={SEED}", flush=True)
    draw = random.Random(f"{SEED} {sweep}")
    return [draw.choice(cases[at:at + of]) for at in range(0, len(cases), of)]


def fixed_share(cases, of):
    """As share, but the same ones with each seed, so that a driver's cache has what they compile: of
    neighbours the first, the second and so on by turns."""
    cases = list(cases)
    if IS_ALL:
        return cases
    groups = [cases[at:at + of] for at in range(0, len(cases), of)]
    return [group[turn % len(group)] for turn, group in enumerate(groups)]
