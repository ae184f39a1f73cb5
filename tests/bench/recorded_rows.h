// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace cuslice::bench {

// A row of a recording in the compact form (docs/design/recording.md), in the words of the other one.
struct RecordedRow {
    uint32_t thread = 0;
    uint64_t time = 0;  // microseconds since 1970, UTC
    std::string action;
    uint64_t address = 0, bytes = 0, stream = 0;
    std::string gpu, limit, held;  // empty where they aren't known
    std::string program, stack;    // the program in the first row alone
};

bool is_compact(const std::string& file);

// False: `why` says which record makes no sense. What was claimed and never written is passed over.
bool read_compact(const std::string& file, std::vector<RecordedRow>& rows, std::string& why);

// A line of text that a killed process had not finished: behind an empty one, and without its thread.
bool is_torn(const std::string& before, const std::string& line);

}  // namespace cuslice::bench
