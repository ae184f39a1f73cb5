// SPDX-License-Identifier: Apache-2.0
// The compact form of a recording: records of 24 bytes, little-endian, of which the first two are the header. A reader
// finds all of it in docs/design/recording.md.
#pragma once

#include <sys/types.h>

#include <bit>
#include <cstdint>

namespace cuslice::trace {

static_assert(std::endian::native == std::endian::little);

enum class Kind : uint8_t {
    none = 0,  // also what was claimed and never written
    allocate = 1,
    free = 2,
    allocate_failure = 3,
    place = 4,    // a number for a GPU and its limit
    clock = 5,    // the time, whole
    source = 6,   // a number for a thread and a stream
    name = 7,     // a piece of a GPU's
    size = 8,     // of the wide event that follows
    program = 9,  // a piece of the program's name
    stack = 10,   // a piece of the stack of the event that follows
};
inline constexpr uint8_t kWide = 0x10;  // beside an event's kind: its address is whole, its size is before it

struct Record {
    Kind kind = Kind::none;
    uint8_t place = 0;
    uint16_t source = 0;
    uint32_t time = 0;     // microseconds, the lower half; of a source its thread
    uint32_t size = 0;     // bytes, the lower half
    uint32_t held = 0;     // in units of kHeldUnit
    uint64_t address = 0;  // and bits 32 to 39 of the size above bit 56
};
static_assert(sizeof(Record) == 24);

inline constexpr uint64_t kHeldUnit = 4096;
inline constexpr uint32_t kHeldNotKnown = ~0u;

struct Header {
    char magic[8] = {'\x89', 'C', 'U', 'S', 'L', '\r', '\n', '\x1a'};
    uint32_t version = 1;
    uint32_t process = 0;
    uint64_t began = 0;  // microseconds since 1970, UTC
    uint32_t record_bytes = sizeof(Record);
    uint32_t held_unit = kHeldUnit;
    uint64_t reserved[2] = {};
};
static_assert(sizeof(Header) == 2 * sizeof(Record));

/// The time in microseconds since 1970, UTC.
uint64_t now();
/// The header of a recording that begins now.
Header header_of(pid_t process);

}  // namespace cuslice::trace
