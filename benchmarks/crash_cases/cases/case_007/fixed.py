"""The same program with the corrected module that reads the images."""

import runpy
import sys

sys.path.insert(0, "corrected")
runpy.run_path("program.py", run_name="__main__")
