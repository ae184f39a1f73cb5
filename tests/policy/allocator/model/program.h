// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tests/policy/allocator/model/machine.h"

namespace cuslice::model {

// A round: a machine, and threads that do anything in any order on it.
struct Plan {
    Rules rules;
    unsigned threads = 1;
    uint64_t steps = 0;      // of each thread, in each of its generations
    uint64_t most_live = 0;  // bytes of each thread
    bool captures = false, exports = false, small = false;

    // Everything about it is the seed's.
    static Plan of(uint64_t seed, unsigned threads, uint64_t steps);
};

class Program {
  public:
    Program(const Plan& plan, uint64_t seed, TestAllocator::Map& map, Findings& findings);
    // Threads come and go in generations, between which a context ends; others trim and look all the while.
    void run();
    // Number of requests, and of refused ones, in all threads: proof that the program asked for memory at all.
    uint64_t allocations() const { return allocations_.load(); }
    uint64_t refused() const { return refused_.load(); }

  private:
    struct Block {
        uint64_t address = 0, bytes = 0;
        uint32_t id = 0;
        unsigned context = 0;
        Work::Points uses{};
        bool marked = false;
    };
    using Blocks = std::vector<Block>;

    void work(uint64_t seed);
    void step(Blocks& mine, uint64_t& live);
    void allocate(Blocks& mine, uint64_t& live);
    bool free(Block& block);
    void free_one_of(Blocks& mine, uint64_t& live, uint64_t which);
    void use(Block& block);
    void ask(const Block& block);
    void mark(Block& block);
    void trim(unsigned context);
    void visit(uint64_t seed);
    void end_context(unsigned context);
    void end();
    uint64_t size() const;
    void check_alignment(uint64_t address, uint64_t bytes);

    Plan plan_;
    uint64_t seed_;
    TestAllocator::Map& map_;
    Findings& findings_;
    Machine machine_;
    std::mutex mutex_;
    Blocks shared_;  // freed by whoever comes next, as threads hand their blocks on
    std::atomic<uint64_t> steps_{0}, allocations_{0}, refused_{0};
    std::atomic<uint32_t> ids_{1};
    std::atomic<bool> over_{false};
};

}  // namespace cuslice::model
