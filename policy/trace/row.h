// SPDX-License-Identifier: Apache-2.0
// A program's allocations and frees, as lines of text: the columns that RMM's logging_resource_adaptor writes and its
// REPLAY_BENCHMARK reads by their names, and behind them the GPU and the state of its slice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "config/text.h"

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
    // Both as append_field() writes them. No more than kMostOfProgram and kMostOfStack bytes of them are written.
    std::string_view program;  // of the recording's first row: "python train.py"
    std::string_view stack;    // Python's frames, outermost first: "main (train.py:33);step (train.py:12)"
};
inline constexpr size_t kMostOfProgram = 160, kMostOfStack = 2400;

/// The columns of a recording.
enum class Columns : uint8_t { usual, with_stack };
constexpr std::string_view header_for(Columns columns) {
    if (columns == Columns::with_stack)
        return "Thread,Time,Action,Pointer,Size,Stream,GPU,Limit,Held,Program,Stack\n";
    return "Thread,Time,Action,Pointer,Size,Stream,GPU,Limit,Held,Program\n";
}

/// A row's bytes. They are not set beforehand: a row is written ten million times.
template <size_t Capacity>
struct TextOfRow {
    std::string_view view() const { return {bytes, size}; }
    char bytes[Capacity];
    size_t size;
};
/// Holds the longest row that has neither program nor stack; and the longest one.
using RowText = TextOfRow<256>;
using LongRowText = TextOfRow<256 + kMostOfProgram + kMostOfStack>;

/// "812,09:12:03.000417,allocate,0x7f3a40000000,1048576,0x0,GPU-5f…,4294967296,546308096," and a newline. A GPU's name
/// of more than 47 bytes is cut. Program and stack are left empty.
void write_row(RowText& text, const Row& row, Columns columns = Columns::usual);
/// The same with program and stack.
void write_row(LongRowText& text, const Row& row, Columns columns);

/// Appends `text` as a field of a row, or a part of one: bytes that would end either (controls, comma, semicolon,
/// quote) and the percent sign are %XX.
template <size_t Capacity>
void append_field(FixedText<Capacity>& field, std::string_view text) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    for (const char character : text) {
        const auto byte = static_cast<unsigned char>(character);
        const bool plain = byte >= 0x20 && byte != 0x7f && std::string_view("%,;\"").find(character) == text.npos;
        if (plain)
            field.append(character);
        else
            field.append('%', kDigits[byte >> 4], kDigits[byte & 15]);
    }
}

}  // namespace cuslice::trace
