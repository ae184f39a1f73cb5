// SPDX-License-Identifier: Apache-2.0
// Parts that the reuse guests share: a plan from the command line, contexts, threads, and one line at the end.
#pragma once

#include "tests/preload/guest/reuse/churn.h"

namespace reuse {

/// PLACES OPERATIONS SEED MOST_LIVE THREADS WAYS, where PLACES are GPUs' ordinals with nothing between: 001 is the
/// primary context of GPU 0, another context on it, and the primary one of GPU 1; and WAYS are some of c for captures,
/// p for peers and a for cuMemFreeAsync, which frees a cache's block (the fake driver's takes a pool's alone), or -.
/// Further words are the caller's.
struct Command {
    std::vector<unsigned> ordinals;
    Plan plan;
    unsigned threads = 1;
};
constexpr int kWords = 7;  // with the program's own name
Command read_command(char** words);

/// The command's contexts, for good.
std::vector<CUcontext> make_places(const Command& command);

/// Runs the plan in all threads, and what they found together.
Outcome run(const Command& command, const std::vector<CUcontext>& places, const Memory& memory);

/// The outcome as pairs of a word and a number, without a newline.
void print(const Outcome& outcome);

}  // namespace reuse
