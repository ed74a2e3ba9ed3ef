"""Python runs this in every process that a test starts while seeds are shifted: there they shift too."""

import importlib.util
import sys
from pathlib import Path


class AfterTorch:
    """Finds torch as ever, and shifts seeds when it has been read: a process that does without torch stays without it.

    It stays until then: some libraries only ask whether torch is there.
    """

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        sys.meta_path.insert(0, self)
        read = spec.loader.exec_module

        def read_and_shift(module):
            sys.meta_path.remove(self)
            read(module)
            sys.path.insert(0, str(Path(__file__).parents[2]))
            importlib.import_module("tests.shift")
            sys.path.pop(0)

        spec.loader.exec_module = read_and_shift
        return spec


sys.meta_path.insert(0, AfterTorch())
