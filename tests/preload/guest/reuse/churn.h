// SPDX-License-Identifier: Apache-2.0
// A correct program that does nothing but allocate, write, copy, read and free, in many streams at once, and says
// whether what it reads is what it wrote. Work on one block is in order, by events where it goes from stream to stream;
// it is not waited for before the block is freed. Memory that is handed out while earlier work may still come is found
// by its contents.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/preload/guest/reuse/host_ring.h"

namespace reuse {

/// Where blocks come from.
struct Memory {
    std::function<CUresult(unsigned place, CUdeviceptr*, size_t)> allocate;  // with the place's context current
    std::function<CUresult(CUdeviceptr)> free;
    std::function<CUresult(CUdeviceptr, CUstream)> free_async;
};

struct Plan {
    uint64_t operations = 0, seed = 0;
    uint64_t most_live = 0;    // bytes
    bool captures = false;     // of one stream at a time, while the others go on
    bool async_frees = false;  // some in a stream's order
    bool peers = false;        // other GPUs' streams work on a block where it is, too
    bool waits = true;         // for streams and contexts, now and then
};

struct Outcome {
    uint64_t allocations = 0, frees = 0, refused = 0, captures = 0, wrong = 0, looked_at = 0;
    void add(const Outcome& other);
};

/// One thread's part. `places` are contexts, of one GPU or of several.
class Churn {
  public:
    Churn(const std::vector<CUcontext>& places, Memory memory, const Plan& plan);
    Outcome run();

  private:
    struct Stream {
        unsigned place = 0;
        CUstream handle = nullptr;
        CUevent event = nullptr;
        bool can_be_captured = false, captured = false;
    };
    /// Everything that was done to a block is before what `home` does next, a stream of whatever context.
    struct Block {
        CUdeviceptr at = 0;
        size_t bytes = 0;
        unsigned place = 0, home = 0;
        uint32_t pattern = 0;
        CUgraphExec graph = nullptr;  // writes to it, and can be launched again
        uint32_t graph_pattern = 0;
    };

    void step();
    void allocate();
    void free(size_t which);
    void write(Block& block);
    void read(Block& block);
    void copy(Block& to, Block& from);
    void capture();
    void wait();

    void fill_from_host(const Block& block, const Stream& stream);
    void fill(const Block& block, const Stream& stream);

    void make_streams();
    void make_peers();
    void enter(unsigned place);
    unsigned any_stream(unsigned place);
    unsigned any_user(unsigned place);
    void order(unsigned before, unsigned after);
    void move(Block& block, unsigned stream);
    void note_use(HostRing::Buffer& buffer, const Stream& stream);
    size_t size();
    uint32_t new_pattern();

    const std::vector<CUcontext>& places_;
    Memory memory_;
    Plan plan_;
    Chance chance_;
    HostRing ring_, managed_;
    std::vector<CUdevice> gpus_;  // of the places
    std::vector<Stream> streams_;
    std::vector<Block> blocks_;
    uint64_t live_ = 0;
    unsigned current_ = ~0U;
    bool capturing_ = false;
    Outcome outcome_;
};

}  // namespace reuse
