// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuslice {

// Maps the real driver's functions to ours: those whose route is `hook`, where memory may be cached those whose route
// is `checked`, and where time is shared those that are gated.
class HookMap {
  public:
    static constexpr size_t kMaxHooks = 256;

    // Fills an empty map from the driver's table. Several threads may do so at once: each puts the same pairs in the
    // same order and so in the same places. (No lock: one that another thread holds at a fork is held in the child for
    // good.)
    void build();

    // Our hook for the driver's function at this address; null if none stands before it.
    void* hook_for(const void* real) const;

    // A number below kMaxHooks if some form of the function with this name (as cuGetProcAddress takes it: no version,
    // no stream suffix) has the route `hook`, the same for the same name; else -1.
    static int hooked_name(const char* name);

    // True if the address is one that the driver exports under this name, in a form that passes through.
    static bool is_listed_form(const char* name, const void* real);

  private:
    struct Row {
        std::atomic<const void*> real{nullptr};
        std::atomic<void*> hook{nullptr};
    };
    static constexpr size_t kRows = 4 * kMaxHooks;  // sparse, and a power of two
    static size_t home(const void* real) { return (reinterpret_cast<uintptr_t>(real) >> 4) % kRows; }

    Row rows_[kRows];
};

// The process's map, built at the first call, which must come after the driver was loaded. Thread-safe.
const HookMap& hook_map();

}  // namespace cuslice
