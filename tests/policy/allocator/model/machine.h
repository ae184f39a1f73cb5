// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <random>

#include "tests/policy/allocator/model/shadow.h"
#include "tests/policy/allocator/test_backing.h"

namespace cuslice::model {

constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;

// Properties of a machine, and the percentage of calls in which each fault occurs.
struct Rules {
    TestAllocator::Options options;
    uint64_t limit = kGiB;   // of each GPU
    uint64_t shift = 0;      // added to every address of a segment: not all drivers align as we do
    bool peers = false;      // the GPUs have access to each other's memory
    bool fences = true;      // the driver can record one
    unsigned no_memory = 0;  // the driver has none
    unsigned failures = 0;   // it answers something else, when asked for memory
    unsigned keeps = 0;      // it doesn't take a segment back
    unsigned errors = 0;     // an error of earlier work, where somebody waits
};

// Two GPUs with three contexts, two of them on the first one, and an allocator for each. The contexts of a GPU have its
// memory together, and whoever is short of it has the other one trimmed, as the library does it.
class Machine {
    struct Context;

  public:
    static constexpr unsigned kContexts = 3, kGpus = 2;
    static constexpr int kError = kLaunchFailed, kFailure = kStreamCaptureUnsupported;

    Machine(const Rules& rules, TestAllocator::Map& map, Findings& findings);
    ~Machine();
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    TestAllocator& allocator(unsigned context) { return *contexts_[context].allocator; }
    static constexpr unsigned gpu_of(unsigned context) { return context == 2 ? 1 : 0; }
    // The streams whose work can touch a context's memory, as a mask. Each context has two.
    unsigned reach(unsigned context) const {
        return rules_.peers ? (1u << Work::kStreams) - 1 : gpu_of(context) == 0 ? 0b001111 : 0b110000;
    }
    // Somebody who has no block in a context looks at its allocator, or trims it. False if it is closed.
    class Visit {
      public:
        Visit(Machine& machine, unsigned context) : context_(machine.contexts_[context]) { context_.visitors++; }
        ~Visit() { context_.visitors--; }
        Visit(const Visit&) = delete;
        Visit& operator=(const Visit&) = delete;
        explicit operator bool() const { return context_.allocator->is_open(); }

      private:
        Context& context_;
    };
    // A context ends, with all that is in it, and is made anew. Visitors may be in it when it ends.
    void restart(unsigned context);
    void close(unsigned context);

    // Others than this process may have this block from now on, for ever if `for_good`.
    void mark(uint64_t address, bool for_good);
    bool marked_for_good(uint64_t address);

    uint64_t held(unsigned gpu);
    uint64_t fences_out() const { return fences_out_.load(); }

    // Random numbers for the calling thread's decisions. Each thread seeds its own.
    static std::mt19937_64& chance();
    static bool percent(unsigned p) { return p && chance()() % 100 < p; }

    Work work;
    Shadow shadow;
    std::atomic<bool> capturing{false}, wanted{false};
    std::atomic<unsigned> abandoned{0};  // blocks that nobody may have again
    bool alone = false;                  // one thread: what it decides is what everybody sees
    bool calm = false;                   // nothing goes wrong any more

  private:
    struct Gpu {
        std::mutex mutex;  // over what is here, and over segments of its contexts
        std::map<uint64_t, uint64_t> free;
        uint64_t held = 0;
    };
    struct Context {
        Machine* machine = nullptr;
        TestAllocator* allocator = nullptr;
        unsigned number = 0;
        std::atomic<unsigned> visitors{0};
        bool lives = false;
        std::map<uint64_t, uint64_t> segments;
    };

    void open(unsigned context);
    BackingTable backing(Context& context);
    uint64_t take(Context& context, uint64_t bytes, AllocationError* denied);
    bool give_back(Context& context, uint64_t address, uint64_t bytes);
    uint64_t place(Gpu& gpu, uint64_t bytes);
    void put(Gpu& gpu, uint64_t address, uint64_t bytes);
    uint64_t room(const Context& context);
    int quiesce(Context& context, uint64_t address);
    Fence fence(Context& context, uint64_t address);
    bool passed(Fence fence, bool wait);
    bool forget(uint64_t address);

    static Context& of(void* self) { return *static_cast<Context*>(self); }
    Gpu& gpu(const Context& context) { return gpus_[gpu_of(context.number)]; }
    bool goes_wrong(unsigned p) const { return !calm && percent(p); }

    Rules rules_;
    TestAllocator::Map& map_;
    Findings& findings_;
    std::array<Gpu, kGpus> gpus_;
    std::array<Context, kContexts> contexts_;
    std::atomic<uint64_t> fences_out_{0};
    std::mutex marks_mutex_;
    std::map<uint64_t, bool> marks_;
};

}  // namespace cuslice::model
