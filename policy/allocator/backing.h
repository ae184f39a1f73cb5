#pragma once
#include <cstdint>

#include "policy/budget/over_limit.h"

namespace cuslice {

// Why there is no memory.
struct Denied {
    enum class By : std::uint8_t {
        nobody,
        limit,    // over_limit says more
        driver,   // it has none; error is its own code
        failure,  // the driver's call failed for another reason, which error is: to ask for less is no use
        host,     // the kernel gave no memory for the allocator's records
        place,    // the driver's memory lies at addresses that the allocator has no map of
    };
    By by = By::nobody;
    int error = 0;
    OverLimit over_limit;

    // Whether it would be denied again, however little is asked for.
    bool for_any_size() const { return by == By::host || by == By::place || by == By::failure; }
};

// A point in everything that has been given to a GPU so far. 0: none could be made now.
using Fence = std::uint64_t;

// Where a caching allocator has its memory from, and what it must know of the GPU's work. All of these may be called
// from any thread; the allocator holds none of its locks meanwhile, but where memory is short that of growing.
struct Backing {
    void* self = nullptr;

    // Takes a segment within the limit. 0 if it is denied, and nothing is held then.
    std::uint64_t (*take)(void* self, std::uint64_t bytes, Denied* denied) = nullptr;
    // Gives a segment back. False if the driver refuses it: it is held as before.
    bool (*give_back)(void* self, std::uint64_t address, std::uint64_t bytes) = nullptr;
    // How much more could be taken within the limit, in bytes.
    std::uint64_t (*room)(void* self) = nullptr;

    // Waits until nothing that was given to a GPU before this call can still touch memory from here. Whose work that
    // can be is asked of `address`, which must lie in a block that has not been given back. Not 0: the driver's error.
    // kNotNow: it can't be asked at the moment, as a stream is being captured. With `for_program` the program itself
    // is in a call, which it can make in a context only.
    int (*quiesce)(void* self, std::uint64_t address, bool for_program) = nullptr;
    static constexpr int kNotNow = -1;

    // Whether the program is in a context, as a free has to be.
    int (*in_context)(void* self) = nullptr;

    // The same without waiting.
    Fence (*fence)(void* self, std::uint64_t address) = nullptr;
    // The same, and asks at once: true if the GPU has come past everything already, and then *fence is none.
    bool (*past)(void* self, std::uint64_t address, Fence* fence) = nullptr;
    // Whether the GPU has come past it, or with `wait` after it has. Never true on an error. A fence that has been
    // passed is no more.
    bool (*passed)(void* self, Fence fence, bool wait) = nullptr;
    void (*drop_fence)(void* self, Fence fence) = nullptr;

    // Whether nothing may be given back: the driver's free waits for the GPU, and a stream is being captured.
    bool (*capturing)(void* self) = [](void*) { return false; };

    // Whether somebody else needs what is idle here. Asked now and then.
    bool (*wanted)(void* self) = nullptr;

    // A block of which mark() had said that there is more to know is free: before anybody can have it again. False if
    // nobody may: others than this process may still use its memory.
    bool (*forget)(void* self, std::uint64_t address) = nullptr;

    // A thread has its first cache, and thread_ends() is to be called at its end.
    void (*thread_began)(void* self) = nullptr;

    // What statistics() says has changed: in segments, by a refusal, or by 16 MiB that are in other hands, or a 64th of
    // what is held if that is more. What threads serve from their own store is told when they need more or have too
    // much.
    void (*changed)(void* self) = [](void*) {};
};

}  // namespace cuslice
