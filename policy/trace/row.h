// SPDX-License-Identifier: Apache-2.0
// A program's allocations and frees, as lines of text: the columns that RMM's logging_resource_adaptor writes and its
// REPLAY_BENCHMARK reads by their names, and behind them the GPU and the state of its slice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cuslice::trace {

enum class Action : uint8_t { allocate, free, allocate_failure };

struct Row {
    uint32_t thread = 0;  // as the kernel numbers them
    uint64_t time = 0;    // microseconds since 1970, UTC; of them the time of day is written
    Action action = Action::allocate;
    uint64_t address = 0;  // 0: none, of an allocation that was refused
    uint64_t bytes = 0;    // as the program asked for them
    uint64_t stream = 0;   // its handle; 0: the default stream, or none
    // An unknown figure is left empty.
    static constexpr uint64_t kNotKnown = ~0ull;
    std::string_view gpu;        // its UUID, as the program sees it
    uint64_t limit = kNotKnown;  // bytes of it that may be held, as it is now
    uint64_t held = kNotKnown;   // bytes that this process holds of them when the row is written
    uint8_t ordinal = 0;         // the GPU's, where it is known
};

inline constexpr std::string_view kHeader = "Thread,Time,Action,Pointer,Size,Stream,GPU,Limit,Held\n";

/// Holds the longest row. Its bytes are not set beforehand: a row is written ten million times.
struct RowText {
    std::string_view view() const { return {bytes, size}; }
    char bytes[256];
    size_t size;
};

/// "812,09:12:03.000417,allocate,0x7f3a40000000,1048576,0x0,GPU-5f…,4294967296,546308096" and a newline. A GPU's name
/// of more than 47 bytes is cut.
void write_row(RowText& text, const Row& row);

}  // namespace cuslice::trace
