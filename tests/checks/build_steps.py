# SPDX-License-Identifier: Apache-2.0
"""How many commands of the build a test of tests/preload waits for.

    build_steps.py BUILD NINJA

Fails where the one that is named below waits for more than its ceiling. BUILD is configured;
whether it is built makes no difference.
"""
import subprocess
import sys

# A test that runs one program, under the library and the launcher: 717 before it depended on that program alone.
TEST, CEILING = "test_preload_limits", 393


def main():
    build, ninja = sys.argv[1:]
    listed = subprocess.run([ninja, "-C", build, "-t", "commands", TEST], capture_output=True, text=True, check=True)
    steps = sum(not line.startswith("ninja: ") for line in listed.stdout.splitlines())
    print(f"{TEST} waits for {steps} commands, of {CEILING} that it may wait for")
    return 0 if steps <= CEILING else 1


if __name__ == "__main__":
    sys.exit(main())
