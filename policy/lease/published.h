// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/layout.h"
#include "policy/lease/surroundings.h"

// The one value of a lease's file: read whole, and replaced whole.
namespace cuslice::lease {

/// Makes the file's first value. Before anybody else sees the file.
void publish_first(File& file, const State& state);

/// Copies the current value. `*seen`: which one it is. False: it has been replaced again and again, or the file is
/// damaged. Lock-free.
bool read_current(const File& file, State* into, uint64_t* seen);

/// True if the current value is still `seen`, and the same as this one.
bool is_current(const File& file, uint64_t seen, const State& state);

enum class Replaced : uint8_t {
    yes,
    no,         // another process was quicker
    no_buffer,  // all are those of processes that stand still while they make a value
};
/// Makes `next` the current value, if that is still `seen`. `self`: this process's presence; those of processes that
/// have ended are taken over. Lock-free: whoever stands still, or ends, in any instruction is waited for by nobody.
Replaced replace_current(File& file, const State& next, uint64_t seen, uint64_t self, Surroundings& surroundings);

}  // namespace cuslice::lease
