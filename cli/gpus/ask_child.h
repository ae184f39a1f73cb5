// SPDX-License-Identifier: Apache-2.0
// Asking in a child process what the launcher had better not do itself: load a driver or NVML, which may crash or hang.
// The child is the launcher again, without the preloaded library, whose dlopen would give it something else.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/launch/environment.h"
#include "cli/launch/installation.h"

namespace cuslice::cli {

/// First words of a question: they say whom the child asks, and messages use the same names.
inline constexpr const char kAskDriver[] = "the driver", kAskNvml[] = "NVML", kAskFake[] = "the fake GPU",
                            kAskLoader[] = "the loader", kAskFolder[] = "the sharing folder";
/// Behind kAskDriver and its file: as programs see it, through libcuslice.so where that is preloaded.
inline constexpr const char kAsPrograms[] = "as programs";
/// Behind kAskNvml, its file and a number.
inline constexpr const char kWithSensors[] = "with sensors";

struct Answer {
    /// Why there is none; empty if there is one.
    std::string failure;
    std::string text;
    bool hung = false;  // killed, as it had not answered in time
};

/// Starts the launcher with `question` and returns what it answers. With `environment` as it is. A child that has not
/// answered after `patience` is killed, and not waited for: it may hang in the kernel. `with_stderr`: what the child
/// prints there is a part of the answer.
Answer ask_child(const Installation& installation, Environment environment, const std::vector<std::string>& question,
                 std::chrono::seconds patience, bool with_stderr = false);

}  // namespace cuslice::cli
