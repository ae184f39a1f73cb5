// SPDX-License-Identifier: Apache-2.0
// How a row is copied into a file that is mapped, so that a process can be killed in any instruction: the beginning of
// a row, by which a reader knows it, is stored last, in one instruction. The rest is stored from left to right.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "policy/trace/record.h"

namespace cuslice::trace {

/// Keeps the compiler from joining stores, or from changing their order.
inline void store_in_order() { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// The same for whoever reads the file meanwhile. Written out, as the sanitizer for threads knows no fences; on x86
/// stores are seen in their order.
inline void show_in_order() {
    store_in_order();
#if defined(__aarch64__)
    asm volatile("dmb ishst" : : : "memory");
#endif
}

template <size_t Bytes>
void copy_piece(char*& to, const char*& from) {
    std::memcpy(to, from, Bytes);
    store_in_order();
    to += Bytes;
    from += Bytes;
}

inline void copy_forward(char* to, const char* from, size_t bytes) {
    for (size_t pieces = bytes / 16; pieces != 0; pieces--)
        copy_piece<16>(to, from);
    if (bytes & 8)
        copy_piece<8>(to, from);
    if (bytes & 4)
        copy_piece<4>(to, from);
    if (bytes & 2)
        copy_piece<2>(to, from);
    if (bytes & 1)
        copy_piece<1>(to, from);
}

/// A row of text: without its thread and the comma behind it at first, so that one that is torn has none. The kernel's
/// numbers of threads have at most seven digits; a row is longer than that.
inline void copy_row(char* to, std::string_view row) {
    constexpr size_t kWord = 8;
    size_t head = 0;
    while (head < kWord && row[head] != ',')
        head++;
    head += head < kWord ? 1 : 0;
    copy_forward(to + head, row.data() + head, row.size() - head);
    show_in_order();
    std::memcpy(to, row.data(), kWord);
}

/// Compact records, each without its kind at first. `to` is at a multiple of 8.
inline void copy_records(char* to, std::string_view records) {
    for (size_t at = 0; at + sizeof(Record) <= records.size(); at += sizeof(Record)) {
        constexpr size_t kWord = 8;
        copy_forward(to + at + kWord, records.data() + at + kWord, sizeof(Record) - kWord);
        uint64_t word;
        std::memcpy(&word, records.data() + at, kWord);
        __atomic_store_n(reinterpret_cast<uint64_t*>(to + at), word, __ATOMIC_RELEASE);
    }
}

}  // namespace cuslice::trace
