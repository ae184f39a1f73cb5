// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace cuslice::bench {

// Allocations and frees of a program, in its order. `block` numbers the program's blocks; a number comes back once its
// block has been freed.
struct Operation {
    uint32_t block;
    uint64_t bytes;  // 0: it is freed
};
using Trace = std::vector<Operation>;

// RMM's random_allocations: sizes uniform up to `most`, 73 of 100 operations allocate, a random one is freed, and never
// more than 16,000 MiB are held.
Trace random_allocations(uint64_t most, size_t operations, uint64_t seed);

// Allocations of a transformer's training, made up: parameters, gradients and optimizer state that stay; then in each
// step activations by a sequence length that varies from step to step, kept through the forward pass and freed in the
// backward pass, and temporary memory besides. Every `period` steps the lengths repeat.
Trace training(size_t steps, size_t period, uint64_t seed);

// Reads what `cuslice run --record` or RMM's logging wrote down: columns by their names, without quotes, or the compact
// form. Allocations that were refused, or of no bytes, are passed over, and so is what a killed process leaves behind:
// empty lines, a row without its beginning, a last line that was cut off. False: `why` says which line makes no sense.
bool read_recorded(std::istream& text, Trace& trace, std::string& why);

uint64_t peak_of(const Trace& trace);
uint32_t blocks_of(const Trace& trace);

}  // namespace cuslice::bench
