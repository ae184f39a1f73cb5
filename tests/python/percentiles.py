# SPDX-License-Identifier: Apache-2.0
"""What lab/ray/start_times.py and lab/slurm/start_times.py print of what they measure."""
import statistics


def percentiles(seconds):
    """Of a list of times, as a text in milliseconds."""
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return f"{len(seconds)}: p50 {cuts[49] * 1000:.0f} ms, p99 {cuts[98] * 1000:.0f} ms"
