# SPDX-License-Identifier: Apache-2.0
"""scripts/cmake/named_programs.py: what a test's sources name, and nothing else."""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/cmake/named_programs.py"
specification = importlib.util.spec_from_file_location("named_programs", SCRIPT)
script = importlib.util.module_from_spec(specification)
specification.loader.exec_module(script)

KNOWN = {"guest", "guest_bounds", "guest_linked", "guest_module", "guest_module_plain", "guest_runtime12", "guest_runtime13",
         "guest_runtime_names", "fake_smi", "fake_cudart11", "fake_cudart12", "fake_cudart13", "cuslice_demo", "towers_driver"}


class Named(unittest.TestCase):
    def names(self, text, *targets):
        self.assertEqual(script.named(text, KNOWN), set(targets))

    def test_routes(self):
        self.names('Guest g(Guest::route("linked"), raw());', "guest_linked")
        self.names('Guest g(Guest::route("dlopen=libcuda.so.1"), raw());', "guest")
        self.names("Guest g(Guest::route(way), raw());", "guest", "guest_linked")

    def test_files(self):
        self.names('run({kGuests + "/guest_bounds"})', "guest_bounds")
        self.names('run({kGuests + "/guest_linked linked"})', "guest_linked")
        self.names('run({kGuests + "/guest", "v1"})', "guest")
        self.names('open(kGuests + "/libguest_module.so")', "guest_module")
        self.names('{"towers_driver", "guest_bounds"}', "towers_driver", "guest_bounds")
        self.names('run({"nvidia-smi", "-L"})', "fake_smi")
        self.names('R"(exec guest_bounds)"', "guest_bounds")
        self.names('run({kLaunch, "demo"})', "cuslice_demo")

    def test_numbers_that_are_appended(self):
        self.names('kGuests + "/guest_runtime" + major', "guest_runtime12", "guest_runtime13")
        self.names('kFakeFolder + "/libcudart.so." + major', "fake_cudart11", "fake_cudart12", "fake_cudart13")

    def test_nothing_that_is_not_run(self):
        self.names('// as guest_bounds does, which "guest_linked" doesn\'t')
        self.names('#include "tests/preload/guest.h"\n#include "tests/preload/guest/guest.h"')
        self.names('TEST_CASE("the order is nvidia-smi\'s") {}')
        self.names('"/guest.cpp", "guest_unknown"')


class Dependencies(unittest.TestCase):
    def test_headers_and_their_sources(self):
        text = script.closure(["tests/preload/lookups_test.cpp"])
        self.assertIn("tests/preload/lookups.cpp", text)
        self.assertNotIn("tests/preload/guest.cpp", text)

    def test_what_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            request, out = pathlib.Path(folder, "request"), pathlib.Path(folder, "out.cmake")
            request.write_text("known guest_lookups guest_linked guest_clock\n"
                               "test_lookups tests/preload/lookups_test.cpp\ntest_none tests/skip.h\n")
            words = [sys.executable, SCRIPT, "--request", request, "--out", out]
            subprocess.run(words + ["--depfile", out.with_suffix(".d")], check=True)
            self.assertEqual(out.read_text(), "add_dependencies(test_lookups guest_lookups)\n")
            self.assertIn("/tests/preload/lookups.cpp", out.with_suffix(".d").read_text())
            before = out.stat().st_mtime_ns
            subprocess.run(words, check=True)
            self.assertEqual(out.stat().st_mtime_ns, before)


if __name__ == "__main__":
    unittest.main()
