"""A slice of a GPU for every CUDA program.

The package brings the launcher and its libraries: `cuslice run --limit 4GiB -- python train.py`, or `python -m
cuslice run …` where the environment's bin/ is not in PATH.
"""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["__version__"]

try:
    __version__: str = version("cuslice")
except PackageNotFoundError:  # read from a checkout, not installed
    __version__ = "unknown"
