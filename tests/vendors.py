"""The examples of vendors' manifests, for tests of other things than themselves."""
import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "extensions"

# Names of their kernels in reports: of an operation of its own, and of a built-in one's
# replacement.
KERNELS = ["key_switch[STAGES=3,SHARED=2]", "vendor_ntt"]


def make_vendors(folder):
    """Copies them into a new folder, the kernel for built-in steps as one for any device. Returns the
    folder of manifests, and a transcript for each of KERNELS."""
    operations = shutil.copytree(EXAMPLES, folder / "operations")
    manifest = operations / "ntt.json"
    text = manifest.read_text()
    assert '"device": "pthread",' in text
    manifest.write_text(text.replace('"device": "pthread",', ""))
    transcripts = [folder / "key_switch.json", folder / "ntt.json"]
    for transcript, options in zip(transcripts, ([], ["--low"])):
        with open(transcript, "w", encoding="utf-8") as file:
            subprocess.run([sys.executable, "-B", operations / "key_switch.py", "64", *options],
                           stdout=file, check=True)
    return operations, transcripts
