// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstdint>

#include "policy/budget/limit_error.h"

namespace cuslice {

// Why there is no memory.
struct AllocationError {
    enum class By : uint8_t {
        nobody,
        limit,    // over_limit says more
        driver,   // it has none; error is its own code
        failure,  // the driver's call failed for another reason, which error is: to ask for less is no use
        host,     // the kernel gave no memory for the allocator's records
        place,    // the driver's memory lies at addresses that the allocator has no map of
    };
    By by = By::nobody;
    int error = 0;
    LimitError over_limit;

    // True if the request would be denied again, however small it is.
    bool for_any_size() const { return by == By::host || by == By::place || by == By::failure; }
};

// A point in everything that has been given to a GPU so far. 0: none could be made now.
using Fence = uint64_t;

// Answer of quiesce() when it can't be asked at the moment, as a stream is being captured.
constexpr int kNotNow = -1;

// Where a caching allocator has its memory from, and what it must know of the GPU's work. All of these may be called
// from any thread; the allocator holds none of its locks meanwhile, but where memory is short that of growing, and for
// drop_fence() its own.
template <typename B>
concept Backing = requires(B& backing, uint64_t address, uint64_t bytes, AllocationError* denied, Fence fence,
                           Fence* made, bool yes) {
    // Takes a segment within the limit. 0 if it is denied, and nothing is held then.
    { backing.take(bytes, denied) } -> std::same_as<uint64_t>;
    // Gives a segment back. False if the driver refuses it: it is held as before.
    { backing.give_back(address, bytes) } -> std::same_as<bool>;
    // How much more could be taken within the limit, in bytes.
    { backing.room() } -> std::same_as<uint64_t>;

    // Waits until nothing that was given to a GPU before this call can still touch memory from here. Whose work that
    // can be is asked of `address`, which must lie in a block that has not been given back. Not 0: the driver's error,
    // or kNotNow. quiesce(address, for_program): with `for_program` the program itself is in a call, which it can make
    // in a context only.
    { backing.quiesce(address, yes) } -> std::same_as<int>;
    // 0 if the program is in a context, as a free has to be; else the driver's error.
    { backing.in_context() } -> std::same_as<int>;

    // The same as quiesce(), without waiting.
    { backing.fence(address) } -> std::same_as<Fence>;
    // The same, and asks at once: true if the GPU has come past everything already, and then *made is none.
    { backing.past(address, made) } -> std::same_as<bool>;
    // passed(fence, wait): whether the GPU has come past it, or with `wait` after it has. Never true on an error. A
    // fence that has been passed is no more.
    { backing.passed(fence, yes) } -> std::same_as<bool>;
    { backing.drop_fence(fence) } -> std::same_as<void>;

    // True if nothing may be given back: the driver's free waits for the GPU, and a stream is being captured.
    { backing.capturing() } -> std::same_as<bool>;
    // True if somebody else needs the memory that is idle here. Asked now and then.
    { backing.wanted() } -> std::same_as<bool>;

    // A block of which mark() had said that there is more to know is free: before anybody can have it again. False if
    // nobody may: others than this process may still use its memory.
    { backing.forget(address) } -> std::same_as<bool>;

    // A thread has its first cache, and thread_ends() is to be called at its end.
    { backing.thread_began() } -> std::same_as<void>;

    // The figures of statistics() have changed: in segments, by a refusal, or as 16 MiB (a 64th of what is held, if
    // that is more) have come into other hands. Threads report what they serve from their own store when they need
    // more or have too much.
    { backing.changed() } -> std::same_as<void>;
};

}  // namespace cuslice
