// SPDX-License-Identifier: Apache-2.0
#pragma once
// The file in which a machine's processes and its timekeeper meet: `time` in the folder of the books.
//
// Processes submit work into the rings of their streams, with the time of submission, and wait for how far a stream has
// been reached. The timekeeper alone decides about that (model.h). Each word has one writer, but for claims, which are
// exchanges. A process that is killed or stopped anywhere holds up its own work alone.
//
// Beside the file lies a lock file: the timekeeper holds byte 0 as long as it lives, and the process of slot n byte
// 1 + n.

#include <atomic>
#include <cstdint>

#include "fake/time/model.h"

namespace cuslice::fake {

constexpr uint64_t kTimeMagic = 0x656d69742065636cULL;
constexpr uint32_t kTimeVersion = 1;
constexpr uint32_t kTimeGpus = 64;
constexpr uint32_t kTimeProcesses = 256;
constexpr uint32_t kTimeContexts = 1024;
constexpr uint32_t kTimeStreams = 2048;
/// So much work of a stream can be queued; who submits more waits, as programs do at a GPU's queues.
constexpr uint32_t kTimeWork = 1024;
/// Busy time is kept for so many spans of this length.
constexpr uint32_t kTimeSpans = 64;
constexpr Time kTimeSpan = 100'000'000;
/// So many turns are kept.
constexpr uint32_t kTimeTurns = 1 << 16;

/// A claimed entry belongs to whom its first field names. `closing`: that one has asked for its end. Figures of an
/// ended one stay until it is claimed again.
enum class TimeState : uint32_t { unused, open, closing, ended };

struct TimedWork {
    std::atomic<uint64_t> time;  // of its submission; once it is reached, of that
    uint64_t duration;
    uint64_t after_ticket;
    uint32_t after_stream;
    uint16_t multiprocessors;
    Engine engine;
    bool held;
};

/// Busy time of an engine in spans of equal length; `number` is a span's time divided by the length.
struct BusySpans {
    struct Span {
        std::atomic<uint64_t> number, busy;
    };
    Span spans[kTimeSpans];
};

struct TimedProcess {
    std::atomic<TimeState> state;  // its claim is the lock of its byte
    std::atomic<int32_t> pid;
    std::atomic<uint64_t> start_time, mapped_at;  // as of a slot in the books
};

struct TimedGpu {
    std::atomic<uint32_t> claim;  // 1: claimed; 2: complete
    char uuid[48];
    GpuTiming timing;
    BusySpans busy[kEngines];
};

struct TimedContext {
    std::atomic<uint32_t> process;  // 1 + its number; 0: unclaimed
    std::atomic<TimeState> state;
    std::atomic<uint32_t> gpu;
    std::atomic<int32_t> pid;
    std::atomic<uint64_t> busy[kEngines];  // nanoseconds that it had each engine
    BusySpans spans[kEngines];
};

struct alignas(64) TimedStream {
    std::atomic<uint32_t> context;  // 1 + its number; 0: unclaimed
    std::atomic<TimeState> state;
    std::atomic<uint64_t> submitted;              // tickets
    std::atomic<uint64_t> released, released_at;  // held work up to that ticket may end, from that time on
    std::atomic<uint64_t> wanted;                 // the lowest ticket that somebody waits for; 0: none
    alignas(64) std::atomic<uint64_t> reached;    // tickets
    std::atomic<uint32_t> wake;                   // a futex: raised when what was wanted is reached
};

/// A stream's latest work, by ticket.
struct alignas(4096) TimedRing {
    TimedWork work[kTimeWork];
    TimedWork& of(uint64_t ticket) { return work[(ticket - 1) % kTimeWork]; }
};

/// A context had an engine so long.
struct TimedTurn {
    uint32_t context, engine;
    int32_t pid;
    uint32_t gpu;
    uint64_t begin, end;
};

struct TimeHeader {
    uint64_t magic;
    uint32_t version;
    uint32_t is_virtual;             // 1: the clock is the timekeeper's
    std::atomic<uint32_t> closed;    // 1: the timekeeper is about to end, and nobody may come any more
    std::atomic<uint32_t> sleeping;  // 1: the timekeeper sleeps on the bell
    std::atomic<uint32_t> bell;      // a futex
    std::atomic<uint32_t> figures_asked, figures_told;  // a futex: figures are complete up to an ask of that number
    std::atomic<uint32_t> contexts_rung;                // raised when a context or a process closes
    std::atomic<uint32_t> contexts_claimed;             // counts up: figures of ended ones stay for long
    std::atomic<uint64_t> now;                          // the virtual clock
    std::atomic<uint64_t> turns;                        // so many were written
    std::atomic<uint64_t> rung[kTimeStreams / 64];      // streams with something new
};

struct TimeFile {
    TimeHeader header;
    TimedProcess processes[kTimeProcesses];
    TimedGpu gpus[kTimeGpus];
    TimedContext contexts[kTimeContexts];
    TimedTurn turn[kTimeTurns];
    TimedStream streams[kTimeStreams];
    TimedRing rings[kTimeStreams];  // each takes room once it is used
};

}  // namespace cuslice::fake
