// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/guest/reuse/churn.h"

#include <algorithm>
#include <atomic>

namespace reuse {
namespace {

constexpr size_t kMaxWhole = 64 << 10;  // blocks up to this are written from end to end, larger ones in parts
constexpr size_t kPart = HostRing::kWords * 4;
constexpr size_t kBuffers = 64;

/// The parts of a block that are written, all of them at a time.
std::vector<size_t> parts(size_t bytes) {
    if (bytes <= kMaxWhole)
        return {0};
    return {0, bytes / 2 / 512 * 512, (bytes - kPart) / 512 * 512};
}
size_t part_bytes(size_t bytes) { return bytes <= kMaxWhole ? bytes : kPart; }

std::atomic<uint32_t> last_pattern{0};

}  // namespace

void Outcome::add(const Outcome& other) {
    allocations += other.allocations, frees += other.frees, refused += other.refused, captures += other.captures;
    wrong += other.wrong, looked_at += other.looked_at;
}

Churn::Churn(const std::vector<CUcontext>& places, Memory memory, const Plan& plan)
    : places_(places),
      memory_(std::move(memory)),
      plan_(plan),
      chance_(plan.seed),
      ring_((REUSE_MUST(cuCtxSetCurrent(places[0])), kBuffers), HostRing::Memory::locked),
      managed_(kBuffers, HostRing::Memory::managed) {
    for (unsigned place = 0; place < places.size(); place++) {
        enter(place);
        CUdevice gpu = 0;
        REUSE_MUST(cuCtxGetDevice(&gpu));
        gpus_.push_back(gpu);
        make_streams();
    }
    if (plan_.peers)
        make_peers();
}

// The legacy default stream, this thread's own default stream and a blocking one, which are in order with the first;
// and some that are in order with nobody.
void Churn::make_streams() {
    CUstream blocking = nullptr;
    REUSE_MUST(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    std::vector<CUstream> all{nullptr, CU_STREAM_PER_THREAD, blocking};
    for (int i = 0; i < 4; i++)
        REUSE_MUST(cuStreamCreate(&all.emplace_back(), CU_STREAM_NON_BLOCKING));
    for (size_t i = 0; i < all.size(); i++) {
        Stream stream;
        stream.place = current_;
        stream.handle = all[i];
        stream.can_be_captured = i > 3;
        REUSE_MUST(cuEventCreate(&stream.event, CU_EVENT_DISABLE_TIMING));
        streams_.push_back(stream);
    }
}

void Churn::make_peers() {
    for (unsigned from = 0; from < places_.size(); from++) {
        for (unsigned to = 0; to < places_.size(); to++) {
            if (gpus_[from] == gpus_[to])
                continue;
            enter(from);
            const CUresult result = cuCtxEnablePeerAccess(places_[to], 0);
            // By another thread, as it is the contexts' and not this one's.
            if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
                must(result, "cuCtxEnablePeerAccess");
        }
    }
}

Outcome Churn::run() {
    for (uint64_t i = 0; i < plan_.operations; i++)
        step();
    while (!blocks_.empty())
        free(blocks_.size() - 1);
    for (HostRing* ring : {&ring_, &managed_}) {
        ring->finish();
        outcome_.wrong += ring->wrong();
        outcome_.looked_at += ring->looked_at();
    }
    return outcome_;
}

void Churn::step() {
    const uint64_t what = chance_.below(1000);
    if (what < 5)
        return wait();
    if (what < 8 && plan_.captures && !capturing_)
        return capture();
    if (blocks_.empty() || what < 330) {
        if (live_ < plan_.most_live)
            return allocate();
        return free(chance_.below(blocks_.size()));
    }
    const size_t which = chance_.below(blocks_.size()), other = chance_.below(blocks_.size());
    if (what < 550) {
        // Mostly with work that is still to come.
        if (chance_.percent(40))
            read(blocks_[which]);
        if (chance_.percent(40))
            write(blocks_[which]);
        return free(which);
    }
    if (what < 700)
        return write(blocks_[which]);
    if (what < 850)
        return read(blocks_[which]);
    copy(blocks_[which], blocks_[other]);
    if (chance_.percent(30))
        free(chance_.percent(50) ? which : other);
}

void Churn::enter(unsigned place) {
    if (current_ != place)
        REUSE_MUST(cuCtxSetCurrent(places_[place]));
    current_ = place;
}

unsigned Churn::any_stream(unsigned place) {
    for (;;) {
        const auto found = static_cast<unsigned>(chance_.below(streams_.size()));
        if (streams_[found].place == place && !streams_[found].captured)
            return found;
    }
}

// Draws a stream of `place` or, with peers, perhaps one of a place on another GPU.
unsigned Churn::any_user(unsigned place) {
    const auto other = static_cast<unsigned>(chance_.below(places_.size()));
    const bool peer = plan_.peers && gpus_[other] != gpus_[place] && chance_.percent(50);
    return any_stream(peer ? other : place);
}

// Makes all later work in `after` wait for all work that `before` has been given so far.
void Churn::order(unsigned before, unsigned after) {
    if (before == after)
        return;
    enter(streams_[before].place);
    REUSE_MUST(cuEventRecord(streams_[before].event, streams_[before].handle));
    enter(streams_[after].place);
    REUSE_MUST(cuStreamWaitEvent(streams_[after].handle, streams_[before].event, 0));
}

void Churn::move(Block& block, unsigned stream) {
    order(block.home, stream);
    block.home = stream;
}

size_t Churn::size() {
    // Programs ask for the same sizes again and again, and so get the same blocks again.
    constexpr size_t kUsual[] = {512, 4000, 20000, 65536, 100000, 1 << 20, 3 << 20};
    if (chance_.percent(60))
        return kUsual[chance_.below(std::size(kUsual))];
    if (chance_.percent(85))
        return 4 + chance_.below(4ULL << chance_.below(14)) / 4 * 4;  // up to 32 KiB, small mostly
    return (chance_.below((1ULL << 20) << chance_.below(3)) + kMaxWhole - 4096) / 4 * 4;
}

// Never 0 or a small number, which memory may hold by itself.
uint32_t Churn::new_pattern() { return (last_pattern.fetch_add(1) + 1) * 2654435761U; }

void Churn::allocate() {
    Block block;
    block.bytes = size();
    block.place = static_cast<unsigned>(chance_.below(places_.size()));
    enter(block.place);
    const CUresult result = memory_.allocate(block.place, &block.at, block.bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        outcome_.refused++;
        // Where much is refused, much is freed.
        for (size_t i = blocks_.size() / 4; i > 0; i--)
            free(chance_.below(blocks_.size()));
        return;
    }
    must(result, "allocate");
    outcome_.allocations++;
    live_ += block.bytes;
    block.home = any_stream(block.place);
    blocks_.push_back(block);
    write(blocks_.back());
}

// Frees a block, whatever work on it is still pending.
void Churn::free(size_t which) {
    std::swap(blocks_[which], blocks_.back());
    Block& block = blocks_.back();
    if (block.graph != nullptr)
        REUSE_MUST(cuGraphExecDestroy(block.graph));  // launched or not
    if (plan_.async_frees && chance_.percent(20)) {
        enter(streams_[block.home].place);
        must(memory_.free_async(block.at, streams_[block.home].handle), "free_async");
    } else {
        enter(chance_.percent(80) ? block.place : static_cast<unsigned>(chance_.below(places_.size())));
        must(memory_.free(block.at), "free");
    }
    outcome_.frees++;
    live_ -= block.bytes;
    blocks_.pop_back();
}

void Churn::note_use(HostRing::Buffer& buffer, const Stream& stream) {
    REUSE_MUST(cuEventCreate(&buffer.done, CU_EVENT_DISABLE_TIMING));
    REUSE_MUST(cuEventRecord(buffer.done, stream.handle));
}

void Churn::write(Block& block) {
    if (block.graph != nullptr && chance_.percent(50)) {
        move(block, any_stream(block.place));
        enter(block.place);
        REUSE_MUST(cuGraphLaunch(block.graph, streams_[block.home].handle));
        block.pattern = block.graph_pattern;
        return;
    }
    if (chance_.percent(30) || streams_[block.home].place != block.place)
        move(block, any_user(block.place));
    const Stream& stream = streams_[block.home];
    block.pattern = new_pattern();
    enter(stream.place);
    if (part_bytes(block.bytes) <= kPart && chance_.percent(30))
        return fill_from_host(block, stream);
    fill(block, stream);
}

// A memset returns before it is done, whatever its function is called.
void Churn::fill(const Block& block, const Stream& stream) {
    const size_t count = part_bytes(block.bytes) / 4;
    const bool plain = stream.handle == nullptr && chance_.percent(50);
    for (const size_t part : parts(block.bytes)) {
        if (plain)
            REUSE_MUST(cuMemsetD32(block.at + part, block.pattern, count));
        else
            REUSE_MUST(cuMemsetD32Async(block.at + part, block.pattern, count, stream.handle));
    }
}

// From a buffer that is filled now, or by a host function when the stream comes to it.
void Churn::fill_from_host(const Block& block, const Stream& stream) {
    const size_t bytes = part_bytes(block.bytes);
    HostRing::Buffer& buffer = chance_.percent(30) ? managed_.take() : ring_.take();
    buffer.written = block.pattern;
    const auto write_words = [](void* data) {
        const auto& filled = *static_cast<HostRing::Buffer*>(data);
        std::fill_n(filled.words, HostRing::kWords, filled.written);
    };
    if (chance_.percent(40))
        REUSE_MUST(cuLaunchHostFunc(stream.handle, write_words, &buffer));
    else
        write_words(&buffer);
    for (const size_t part : parts(block.bytes))
        REUSE_MUST(cuMemcpyAsync(block.at + part, buffer.at(), bytes, stream.handle));
    note_use(buffer, stream);
}

void Churn::read(Block& block) {
    const std::vector<size_t> written = parts(block.bytes);
    const size_t part = written[chance_.below(written.size())], all = part_bytes(block.bytes);
    const size_t bytes = std::min(all, kPart), at = part + chance_.below((all - bytes) / 4 + 1) * 4;
    if (streams_[block.home].place != block.place)
        move(block, any_user(block.place));
    const Stream& stream = streams_[block.home];
    enter(stream.place);
    HostRing::Buffer& buffer = chance_.percent(20) ? managed_.take() : ring_.take();
    buffer.read = bytes / 4;
    buffer.expected = block.pattern;
    if (chance_.percent(50))
        REUSE_MUST(cuMemcpyDtoHAsync(buffer.words, block.at + at, bytes, stream.handle));
    else
        REUSE_MUST(cuMemcpyAsync(buffer.at(), block.at + at, bytes, stream.handle));
    note_use(buffer, stream);
}

// From one block to another, which may be on another GPU, in a stream of either: so one of them may be freed while work
// of a context that is not its own still uses it.
void Churn::copy(Block& to, Block& from) {
    const bool large = to.bytes > kMaxWhole && from.bytes > kMaxWhole;
    const bool small = to.bytes <= kMaxWhole && to.bytes <= part_bytes(from.bytes);
    if (&to == &from || (!large && !small))
        return write(to);
    const unsigned stream = any_stream(chance_.percent(50) ? to.place : from.place);
    move(to, stream);
    move(from, stream);
    enter(streams_[stream].place);
    const std::vector<size_t> sources = parts(from.bytes), targets = parts(to.bytes);
    for (size_t i = 0; i < targets.size(); i++)
        REUSE_MUST(cuMemcpyPeerAsync(to.at + targets[i], places_[to.place], from.at + sources[i], places_[from.place],
                                     part_bytes(to.bytes), streams_[stream].handle));
    to.pattern = from.pattern;
}

// Captures a stream that writes to one block, while everything else goes on, and launches what was captured.
void Churn::capture() {
    if (blocks_.empty())
        return;
    const size_t which = chance_.below(blocks_.size());
    Block block = blocks_[which];
    std::swap(blocks_[which], blocks_.back());
    blocks_.pop_back();
    unsigned number = any_stream(block.place);
    while (!streams_[number].can_be_captured)
        number = any_stream(block.place);
    Stream& stream = streams_[number];
    stream.captured = capturing_ = true;
    for (Block& other : blocks_)
        if (other.home == number)
            move(other, any_stream(other.place));
    if (block.home == number)
        move(block, any_stream(block.place));

    enter(stream.place);
    REUSE_MUST(cuStreamBeginCapture(stream.handle, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (uint64_t steps = chance_.below(100); steps > 0; steps--)
        step();
    enter(stream.place);
    block.pattern = new_pattern();
    for (const size_t part : parts(block.bytes))
        REUSE_MUST(cuMemsetD32Async(block.at + part, block.pattern, part_bytes(block.bytes) / 4, stream.handle));
    CUgraph graph = nullptr;
    REUSE_MUST(cuStreamEndCapture(stream.handle, &graph));
    stream.captured = capturing_ = false;
    if (block.graph != nullptr)
        REUSE_MUST(cuGraphExecDestroy(block.graph));
    REUSE_MUST(cuGraphInstantiate(&block.graph, graph, 0));
    REUSE_MUST(cuGraphDestroy(graph));
    block.graph_pattern = block.pattern;
    move(block, number);
    REUSE_MUST(cuGraphLaunch(block.graph, stream.handle));
    outcome_.captures++;
    blocks_.push_back(block);
}

void Churn::wait() {
    if (!plan_.waits)
        return;
    const Stream& stream = streams_[any_stream(static_cast<unsigned>(chance_.below(places_.size())))];
    enter(stream.place);
    const uint64_t how = chance_.below(10);
    if (how == 0 && !capturing_ && !plan_.captures)
        return REUSE_MUST(cuCtxSynchronize());
    if (how < 3)
        return REUSE_MUST(cuStreamSynchronize(stream.handle));
    const CUresult result = cuStreamQuery(stream.handle);
    if (result != CUDA_ERROR_NOT_READY)
        must(result, "cuStreamQuery");
}

}  // namespace reuse
