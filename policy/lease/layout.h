// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "policy/ledger/layout.h"

// The lease of a user's GPUs: one file, which the processes of all the user's jobs map. It says who may submit work to
// which GPU now, who waits, and how much time each job has left.
//
// All of that is one value, the State. A step makes another value of it in a buffer of the file, and publishes that by
// one compare-exchange of `current`: whoever is killed or stopped in any instruction leaves the old value or the new
// one, and nobody ever waits for it (published.h).
namespace cuslice::lease {

inline constexpr uint64_t kMagic = 0x65736165'6c2e7563;  // "cu.lease"
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kJobs = 64;
inline constexpr uint32_t kMembers = 128;
inline constexpr uint32_t kGpus = 16;
// Values that can be in the making at once, besides the current one.
inline constexpr uint32_t kBuffers = 16;
// Times are nanoseconds of CLOCK_MONOTONIC.
inline constexpr uint64_t kMillisecond = 1'000'000;
inline constexpr uint64_t kLeastQuantum = kMillisecond;
inline constexpr uint64_t kMostQuantum = 1000 * kMillisecond;
inline constexpr uint32_t kWhole = 100;  // percent

/// Times that govern turns.
struct Terms {
    uint64_t quantum = 50 * kMillisecond;     // mean length of a turn
    uint64_t patience = 1000 * kMillisecond;  // from the end of a turn until its holder is passed by
};

enum class Phase : uint32_t {
    idle,
    waiting,
    holding,
    closing,  // its turn is over, and what it has submitted runs out
};

/// One job's share of one GPU.
struct Claim {
    uint32_t weight;      // percent, among those who want time; 0: the job doesn't use the GPU
    uint32_t cap;         // percent of all time; kWhole: none
    int64_t credit;       // time that is left in this round; negative: overdrawn
    uint64_t reported;    // time that it took in this turn, as its members say
    uint64_t had;         // time that it took in all turns
    uint64_t not_before;  // end of the break that its cap asks for
};

struct Job {
    uint64_t id;  // as the ledger names it; 0: free
    Phase phase;
    uint32_t held;       // bits of the GPUs that it holds
    uint32_t contested;  // 1: it holds one that another job waits for
    uint32_t lent;       // 1: it passed its turn on before the end, and comes first while the rest of it lasts
    uint32_t borrows;    // 1: what it holds is kept for another job, which can't start yet
    uint32_t unused;
    uint64_t since;   // the phase; for `closing` that it holds
    uint64_t closed;  // end of its turn, while it is closing
    uint64_t start;   // its turn is charged from here on
    uint64_t end;     // its turn is over, once somebody waits
    uint64_t waited;  // in all
    uint64_t turns;
    Claim claims[kGpus];
};

/// One process of a job.
struct Member {
    uint64_t presence;  // its number in the ledger's folder; 0: free
    uint64_t pid_namespace, start_time;
    int32_t pid;
    ledger::LockKind lock;  // that the presence has
    uint32_t job;
    uint32_t wants;  // 1: a thread of it stands at the gate
    uint32_t busy;   // 1: it may submit in this turn, or has
    uint32_t unused;
    uint64_t gate;  // what its gate shows (gate.h)
};

struct Gpu {
    char uuid[64];  // empty: free
};

struct State {
    Terms terms;
    Gpu gpus[kGpus];
    Job jobs[kJobs];
    Member members[kMembers];
};
static_assert(std::is_trivially_copyable_v<State> && sizeof(State) % sizeof(uint64_t) == 0, "copied word by word");

/// A copy of a member's `gate`, in a cache line of its own: its threads read it before they submit.
struct alignas(64) Gate {
    std::atomic<uint64_t> word;
};

struct alignas(64) Buffer {
    std::atomic<uint64_t> owner;  // the presence of who makes a value here; 0: nobody
    State state;
};

struct Header {
    uint64_t magic;
    uint32_t version, size;
    uint64_t reserved[30];  // 0; for leases of several users
};

struct File {
    Header header;
    alignas(64) std::atomic<uint64_t> current;  // how many values there have been, and the buffer of the last one
    Gate gates[kMembers];
    Buffer buffers[kBuffers];
};
static_assert(sizeof(Header) == 256 && offsetof(File, current) == 256, "what version 1 has");

constexpr uint32_t bit(uint32_t gpu) { return 1u << gpu; }
inline bool is_free(const Job& job) { return job.id == 0; }
inline bool is_free(const Member& member) { return member.presence == 0; }
inline bool uses(const Job& job, uint32_t gpu) { return job.claims[gpu].weight != 0; }
inline bool holds(const Job& job) { return job.phase == Phase::holding || job.phase == Phase::closing; }
inline uint32_t index_of(const State& state, const Job& job) { return static_cast<uint32_t>(&job - state.jobs); }
/// Bits of the GPUs that a job uses.
inline uint32_t gpus_of(const Job& job) {
    uint32_t gpus = 0;
    for (uint32_t gpu = 0; gpu < kGpus; gpu++)
        gpus |= uses(job, gpu) ? bit(gpu) : 0;
    return gpus;
}
/// Time from `then` on; 0 where the clocks of two processes disagree.
constexpr uint64_t elapsed(uint64_t then, uint64_t now) { return now > then ? now - then : 0; }

}  // namespace cuslice::lease
