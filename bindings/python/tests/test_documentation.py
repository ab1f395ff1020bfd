# SPDX-License-Identifier: Apache-2.0
import os
import re
import tempfile
import unittest

import numpy as np

from support import CLONE, transcript

STARTS = "import healcl, numpy as np"


class Documentation(unittest.TestCase):
    def test_the_lines_of_the_page_run(self):
        recognizer = transcript("recognizer.json")
        with open(os.path.join(CLONE, "docs", "PYTHON.md"), encoding="utf-8") as file:
            blocks = re.findall(r"^```python\n(.*?)^```$", file.read(), re.S | re.M)
        blocks = [block for block in blocks if "lattica_heal_runtime" not in block]
        program = "\n".join(blocks).replace("transcripts/recognizer.json", recognizer)
        self.assertTrue(program.startswith(STARTS))
        if os.environ.get("HEALCL_TEST_PLATFORM"):
            program = program.replace('"pocl"', 'os.environ["HEALCL_TEST_PLATFORM"]')
        names = {"print": lambda *_: None, "os": os}
        with tempfile.TemporaryDirectory() as folder:
            exec(program.replace("program.json", os.path.join(folder, "program.json")), names)
            self.assertIs(names["report"].verified, True)
            self.assertTrue(names["healcl"].load(os.path.join(folder, "program.json")).run(
                names["dev"]).verified)
        np.testing.assert_array_equal(names["logits"].shape, names["t"].results[0].shape)


if __name__ == "__main__":
    unittest.main()
