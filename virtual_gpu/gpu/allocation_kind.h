// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/budget/allocation_table.h"

namespace cuslice {

// The kind of call that made an allocation, for people. Kept in Allocation::kind.
enum class Kind : uint8_t { memory, pitch, managed, exported, array };

inline bool is_managed(const Allocation& allocation) { return allocation.kind == static_cast<uint8_t>(Kind::managed); }

// Other processes may hold it, too, and keep it when it is freed here.
inline bool is_exported(const Allocation& allocation) {
    return allocation.kind == static_cast<uint8_t>(Kind::exported);
}

// Its address is a handle: no memory that a program can name by it.
inline bool is_array(const Allocation& allocation) { return allocation.kind == static_cast<uint8_t>(Kind::array); }

}  // namespace cuslice
