// SPDX-License-Identifier: Apache-2.0
#pragma once
// The time that work takes on GPUs: which engine runs what, from when to when. No clock, no thread and no file: whoever
// uses it says how late it is.
//
// Work of one stream runs in its order, and starts when it has been submitted and what it waits for has ended. Kernels
// of one context run beside each other as far as the multiprocessors allow, in the order in which they were ready.
// Contexts take turns: where two have kernels, each has the multiprocessors for a time slice, and the other's kernels
// stand still. Copies run one after the other on the engine of their direction, beside the kernels of any context.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace cuslice::fake {

/// Nanoseconds of any clock that never goes back.
using Time = uint64_t;
constexpr Time kNever = UINT64_MAX;

/// The part of a GPU that does a piece of work. `none`: it keeps an order and takes no time.
enum class Engine : uint8_t { none, compute, copy_in, copy_out };
constexpr size_t kEngines = 4;

/// A place in a stream's work: so many pieces are before it.
struct StreamPoint {
    uint32_t stream = 0;
    uint64_t ticket = 0;
};

struct Work {
    Engine engine = Engine::none;
    bool held = false;             // goes on until it is released: a host function, a kernel that waits for the host
    uint32_t multiprocessors = 1;  // of a kernel
    Time duration = 0;             // as long as it has these
    Time submitted = 0;
    StreamPoint after;  // it starts when that is reached
};

struct GpuTiming {
    uint32_t multiprocessors = 1;
    uint32_t copy_engines = 2;  // 1: both directions share it; 0: copies take turns with kernels
    Time slice = 2'000'000;
    Time context_switch = 0;
    uint32_t slice_spread = 0;  // percent by which a slice is longer or shorter at most
};

/// Is told what happens, in the order of time.
class TimeListener {
  public:
    virtual ~TimeListener() = default;
    virtual void on_reached(StreamPoint point, Time when) = 0;
    /// The context had the engine all that time. Kernels of one context that overlap are told as one.
    virtual void on_busy(uint32_t context, Engine engine, Time begin, Time end) = 0;
};

class TimeModel {
  public:
    explicit TimeModel(TimeListener& listener) : listener_(listener) {}

    // The caller chooses the numbers: small ones, which may come again after an end.
    void add_gpu(uint32_t gpu, const GpuTiming& timing);
    void add_context(uint32_t context, uint32_t gpu);
    bool has_context(uint32_t context) const { return context < contexts_.size() && contexts_[context].gpu != kNone; }
    /// Takes it off the GPU with its streams and all their work. Whoever waits for that goes on.
    void end_context(uint32_t context);
    /// `tickets`: so much work the stream of that number has had before.
    void add_stream(uint32_t stream, uint32_t context, uint64_t tickets = 0);
    bool has_stream(uint32_t stream) const { return stream < streams_.size() && streams_[stream].context != kNone; }
    /// None of its work is left.
    void remove_stream(uint32_t stream);

    /// Adds a piece at the stream's end. Pieces of one stream come in the order of `submitted`, which may be past.
    void submit(uint32_t stream, const Work& work);
    /// Held work up to this point ends then, or when it has begun.
    void release(StreamPoint point, Time when);

    Time now() const { return now_; }
    /// Lets time pass; nothing happens if `to` is past.
    void advance(Time to);
    /// The time of what happens next, if nothing is submitted or released before; kNever if nothing does.
    Time next_event() const;
    bool idle() const { return busy_.empty(); }
    uint64_t submitted(uint32_t stream) const { return streams_[stream].submitted; }
    bool reached(StreamPoint point) const;
    /// Tells what has been busy up to now, although it goes on.
    void tell_all_busy();
    /// A time before which the point can't be reached; kNever if held work is before it.
    Time earliest(StreamPoint point) const;

  private:
    static constexpr uint32_t kNone = UINT32_MAX;
    enum class Head : uint8_t { waits, ready, runs };
    struct Stream {
        uint32_t context = kNone;
        Head head = Head::waits;
        uint64_t reached = 0, submitted = 0, released = 0;
        Time released_at = 0;
        Time ready_at = 0;
        Time end = kNever;  // of a head that runs
        std::deque<Work> work;
    };
    struct Context {
        uint32_t gpu = kNone;
        unsigned kernels = 0;  // of its streams' heads: ready or running
    };
    struct CopyEngine {
        uint32_t stream = kNone;
        Time since = 0;
    };
    struct Gpu {
        GpuTiming timing;
        std::vector<uint32_t> contexts;
        uint32_t current = kNone;  // the context that has the multiprocessors
        uint32_t free = 0;         // multiprocessors
        Time switched = 0;         // the current one can run from then on
        Time slice_end = 0;
        uint64_t drawn = 0;        // for the lengths of slices: the same ones each time
        Time busy_since = kNever;  // the current one has run kernels without a pause
        std::array<CopyEngine, kEngines> copies;
    };

    Gpu& gpu_of(const Stream& stream) { return gpus_[contexts_[stream.context].gpu]; }
    /// The engine that a stream's head needs on this GPU.
    static Engine engine_of(const Gpu& gpu, const Work& work);
    static uint32_t width(const Gpu& gpu, const Work& work);
    bool is_held(const Stream& stream) const { return stream.work.front().held && stream.released <= stream.reached; }
    bool can_start(const Stream& stream) const;
    bool has_rival(const Gpu& gpu) const;
    uint32_t next_context(const Gpu& gpu) const;
    uint32_t first_ready(const Gpu& gpu, Engine engine) const;
    bool is_before(uint32_t one, uint32_t other) const;

    void settle();
    bool begin_heads();
    bool end_heads();
    void start(Stream& stream);
    void end_head(uint32_t number);
    void drop_work(uint32_t number);
    void leave_engine(uint32_t number);
    void give_turns(Gpu& gpu);
    void preempt(Gpu& gpu);
    void start_kernels(Gpu& gpu);
    void start_copies(Gpu& gpu);
    void tell_busy(Gpu& gpu);
    void align_slice(Gpu& gpu) const;
    static Time next_slice(Gpu& gpu);

    TimeListener& listener_;
    Time now_ = 0;
    std::vector<Gpu> gpus_;
    std::vector<Context> contexts_;
    std::vector<Stream> streams_;
    std::vector<uint32_t> busy_;  // streams with work
};

}  // namespace cuslice::fake
