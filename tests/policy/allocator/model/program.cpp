// SPDX-License-Identifier: Apache-2.0
#include "tests/policy/allocator/model/program.h"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

namespace cuslice::model {

namespace {

using Freed = TestAllocator::Freed;

uint64_t below(uint64_t n) { return Machine::chance()() % n; }

constexpr unsigned kGenerations = 4;
constexpr size_t kMaxShared = 200;

}  // namespace

Plan Plan::of(uint64_t seed, unsigned threads, uint64_t steps) {
    std::mt19937_64& random = Machine::chance();
    random.seed(seed);
    Plan plan;
    plan.threads = threads;
    plan.steps = steps;
    Rules& rules = plan.rules;
    rules.options.reuse = below(2) ? TestAllocator::Reuse::deferred : TestAllocator::Reuse::strict;
    rules.options.preallocate = below(4) == 0;
    rules.limit = below(2) ? 64 * kMiB + below(256) * kMiB : 512 * kMiB + below(1024) * kMiB;
    rules.shift = below(6) == 0 ? 512 << below(8) : 0;
    rules.peers = below(2);
    rules.fences = below(8) != 0;
    if (below(3) == 0)
        rules.no_memory = static_cast<unsigned>(below(60));
    if (below(4) == 0)
        rules.failures = static_cast<unsigned>(below(20));
    if (below(4) == 0)
        rules.keeps = static_cast<unsigned>(below(60));
    if (below(3) == 0)
        rules.errors = static_cast<unsigned>(below(20));
    plan.captures = below(2);
    plan.exports = below(3) == 0;
    plan.small = below(3) == 0;
    // Often more than there is, of all threads together.
    plan.most_live = rules.limit / threads * (1 + below(3)) / 2;
    return plan;
}

Program::Program(const Plan& plan, uint64_t seed, TestAllocator::Map& map, Findings& findings)
    : plan_(plan), seed_(seed), map_(map), findings_(findings), machine_(plan.rules, map, findings) {
    machine_.alone = plan.threads == 1;
}

void Program::run() {
    if (plan_.rules.options.preallocate) {
        AllocationError denied;
        machine_.allocator(0).top_up(&denied);
    }
    std::vector<std::thread> visitors;
    for (unsigned i = 0; !machine_.alone && i < 2; i++)
        visitors.emplace_back([this, i] { visit(seed_ * 1000 + 900 + i); });
    for (unsigned generation = 0; generation < kGenerations; generation++) {
        if (generation)
            end_context(static_cast<unsigned>((seed_ + generation) % Machine::kContexts));
        const uint64_t first = seed_ * 1000 + generation * 100;
        if (machine_.alone) {
            work(first);
            continue;
        }
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < plan_.threads; i++)
            threads.emplace_back([this, first, i] { work(first + i); });
        for (std::thread& thread : threads)
            thread.join();
    }
    over_ = true;
    for (std::thread& thread : visitors)
        thread.join();
    end();
}

void Program::work(uint64_t seed) {
    Machine::chance().seed(seed);
    Blocks mine;
    uint64_t live = 0;
    for (uint64_t i = 0; i < plan_.steps; i++) {
        step(mine, live);
        steps_.fetch_add(1, std::memory_order_relaxed);
    }
    {
        const std::lock_guard lock(mutex_);
        std::move(mine.begin(), mine.end(), std::back_inserter(shared_));
    }
    TestAllocator::thread_ends();
}

void Program::step(Blocks& mine, uint64_t& live) {
    const uint64_t what = below(1000);
    if (machine_.alone && plan_.captures && what < 8)
        machine_.capturing = below(3) == 0;
    if (mine.empty() || what < 420)
        return allocate(mine, live);
    // Mostly what was allocated last.
    const uint64_t which = below(3) ? mine.size() - 1 : below(mine.size());
    if (what < 560)
        return free_one_of(mine, live, which);
    if (what < 700) {  // with work that is still to come
        use(mine[which]);
        return free_one_of(mine, live, which);
    }
    if (what < 820)
        return use(mine[below(mine.size())]);
    if (what < 900)
        return ask(mine[below(mine.size())]);
    if (what < 930)
        return machine_.work.advance_by(static_cast<unsigned>(below(Work::kStreams)), below(101));
    if (what < 935)
        return trim(static_cast<unsigned>(below(Machine::kContexts)));
    if (what < 945 && plan_.exports)
        return mark(mine[which]);
    // Another thread's.
    Block block;
    {
        const std::lock_guard lock(mutex_);
        if (shared_.empty())
            return;
        std::swap(shared_[below(shared_.size())], shared_.back());
        block = shared_.back();
        shared_.pop_back();
    }
    if (!free(block)) {
        mine.push_back(block);
        live += block.bytes;
    }
}

uint64_t Program::size() const {
    const uint64_t kind = below(1000);
    if (kind < 2)
        return 64 * kMiB + below(64 * kMiB);  // huge
    if (kind < 10)
        return 1 + below(32 * kMiB);
    if (kind < 60)
        return 1 + below(4 * kMiB);
    if (kind < 110)
        return kMiB << below(5);
    if (kind < 200)
        return 64 * kKiB - 1 + below(3);
    if (kind < 350)
        return 64 * kKiB + below(kMiB);
    return 1 + below(plan_.small ? 4 * kKiB : 70 * kKiB);
}

void Program::check_alignment(uint64_t address, uint64_t bytes) {
    findings_.expect(address % 512 == 0, "a block that is not on a boundary of 512 bytes", address, bytes);
    if (plan_.rules.shift)
        return;
    const uint64_t boundary = bytes >= 64 * kMiB  ? 2 * kMiB
                              : bytes >= 2 * kMiB ? 64 * kKiB
                              : bytes > 64 * kKiB ? 4 * kKiB
                                                  : 512;
    findings_.expect(address % boundary == 0, "a block that is not on its size's boundary", address, bytes);
}

void Program::allocate(Blocks& mine, uint64_t& live) {
    Block block;
    block.bytes = size();
    if (live + block.bytes > plan_.most_live)
        block.bytes = 1 + below(4 * kKiB);
    block.context = static_cast<unsigned>(below(Machine::kContexts));
    AllocationError denied;
    block.address = machine_.allocator(block.context).allocate(block.bytes, &denied);
    allocations_.fetch_add(1, std::memory_order_relaxed);
    if (!block.address) {
        refused_.fetch_add(1, std::memory_order_relaxed);
        findings_.expect(denied.by != AllocationError::By::nobody && denied.by != AllocationError::By::host,
                         "refused, and no word why", block.bytes);
        findings_.expect(denied.by != AllocationError::By::failure || denied.error == Machine::kFailure,
                         "a failure that is not the driver's", block.bytes);
        // Where much is refused, much is freed.
        for (size_t i = mine.size() / 4; i > 0; i--)
            free_one_of(mine, live, below(mine.size()));
        return;
    }
    block.id = ids_.fetch_add(1, std::memory_order_relaxed);
    check_alignment(block.address, block.bytes);
    machine_.shadow.hand_out(block.address, block.bytes, block.context, block.id);
    live += block.bytes;
    mine.push_back(block);
    use(mine.back());
}

void Program::free_one_of(Blocks& mine, uint64_t& live, uint64_t which) {
    std::swap(mine[which], mine.back());
    if (below(8) == 0) {
        const std::lock_guard lock(mutex_);
        if (shared_.size() < kMaxShared) {
            shared_.push_back(mine.back());
            live -= mine.back().bytes;
            mine.pop_back();
            return;
        }
    }
    if (!free(mine.back()))
        return;
    live -= mine.back().bytes;
    mine.pop_back();
}

// False if the driver has an error for whoever waits: the block is the program's as before.
bool Program::free(Block& block) {
    const bool for_good = block.marked && machine_.marked_for_good(block.address);
    machine_.shadow.free(block.address, block.bytes, block.id, block.uses, for_good);
    const Work::Points given = machine_.work.given(machine_.reach(block.context));
    int error = 0;
    const Freed freed = TestAllocator::free(map_, block.address, &error);
    if (freed == Freed::failed) {
        findings_.expect(error == Machine::kError, "a free failed, and not by the driver's error", block.address);
        machine_.shadow.keep(block.address, block.bytes, block.id);
        return false;
    }
    findings_.expect(freed == Freed::done, "a block can't be freed", block.address, block.bytes);
    const bool waits = plan_.rules.options.reuse == TestAllocator::Reuse::strict && !plan_.captures;
    findings_.expect(!waits || machine_.work.past(given), "a strict free returns before its GPU is idle",
                     block.address);
    return true;
}

void Program::use(Block& block) {
    const unsigned reach = machine_.reach(block.context);
    unsigned stream = static_cast<unsigned>(below(Work::kStreams));
    while (!(reach >> stream & 1))
        stream = (stream + 1) % Work::kStreams;
    block.uses[stream] = machine_.work.submit(stream);
    machine_.shadow.look(block.address, block.bytes, block.id);
}

void Program::ask(const Block& block) {
    const uint64_t from = below(block.bytes), bytes = 1 + below(block.bytes - from);
    findings_.expect(map_.holds(block.address + from, bytes), "a range of a block is not held", block.address, from);
    findings_.expect(!map_.holds(block.address + from, 4 * kGiB), "more than a block is held", block.address, from);
    const TestAllocator::Found found = TestAllocator::find(map_, block.address + from);
    findings_.expect(found.address == block.address && found.requested == block.bytes &&
                         found.owner == &machine_.allocator(block.context),
                     "a block is not found by an address in it", block.address, from);
    int error = 0;
    const uint64_t inside = block.address + (below(2) ? 1 : 512);
    if (inside < block.address + block.bytes) {
        const Freed freed = TestAllocator::free(map_, inside, &error);
        findings_.expect(freed == Freed::invalid, "an address inside a block is freed", block.address, block.bytes);
    }
}

void Program::mark(Block& block) {
    if (block.marked)
        return;
    block.marked = true;
    machine_.mark(block.address, below(4) == 0);
    findings_.expect(TestAllocator::mark(map_, block.address), "a block can't be marked", block.address);
}

void Program::trim(unsigned context) {
    const Machine::Visit visit(machine_, context);
    if (!visit)
        return;
    TestAllocator& allocator = machine_.allocator(context);
    AllocationError denied;
    switch (below(6)) {
        case 0:
            allocator.trim(below(256 * kMiB));
            break;
        case 1:
            allocator.help_out();
            break;
        case 2:
            allocator.release_idle(steps_.load(std::memory_order_relaxed), below(2000), below(2));
            break;
        case 3:
            allocator.inspect([](const Segment&, void*) {}, [](const cuslice::Block&, void*) {}, nullptr);
            break;
        case 4: {
            const Statistics told = allocator.statistics();
            findings_.expect(told.reserved.current <= Shadow::kBytes, "more is held than there is");
            findings_.expect(told.ooms <= allocations_.load() + plan_.threads, "more is refused than asked for");
            break;
        }
        default:
            if (machine_.alone)
                allocator.top_up(&denied);
    }
}

// Somebody who has no block in a context: another GPU's thread, or the one that gives idle memory back. As often as the
// program gets on, not as time does.
void Program::visit(uint64_t seed) {
    Machine::chance().seed(seed);
    uint64_t next = 0;
    while (!over_) {
        if (steps_.load(std::memory_order_relaxed) < next) {
            std::this_thread::yield();
            continue;
        }
        next = steps_.load(std::memory_order_relaxed) + below(200);
        if (plan_.captures)
            machine_.capturing = below(4) == 0;
        machine_.wanted.store(below(8) == 0, std::memory_order_relaxed);
        machine_.work.advance_by(static_cast<unsigned>(below(Work::kStreams)), below(101));
        trim(static_cast<unsigned>(below(Machine::kContexts)));
    }
    TestAllocator::thread_ends();
}

// Nobody works in it, and what is left in it ends with it.
void Program::end_context(unsigned context) {
    std::erase_if(shared_, [&](const Block& block) { return block.context == context; });
    machine_.restart(context);
}

void Program::end() {
    machine_.capturing = machine_.wanted = false;
    machine_.calm = true;
    for (Block& block : shared_)
        findings_.expect(free(block), "a free fails for no reason", block.address);
    shared_.clear();
    const bool whole = machine_.abandoned == 0;
    for (unsigned context = 0; context < Machine::kContexts; context++) {
        const Statistics told = machine_.allocator(context).statistics();
        findings_.expect(told.allocated.current == 0 && told.requested.current == 0, "something is live in the end",
                         context, told.allocated.current);
        // All that there is can be had again, in one piece, whatever the others have kept.
        const bool in_one = whole && !plan_.rules.shift;
        AllocationError denied;
        const uint64_t bytes = plan_.rules.limit / (2 * kMiB) * (2 * kMiB);
        const uint64_t address = in_one ? machine_.allocator(context).allocate(bytes, &denied) : 0;
        findings_.expect(address || !in_one, "all that there is can't be had again", context, bytes);
        int error = 0;
        if (!address)
            continue;
        machine_.shadow.hand_out(address, bytes, context, ids_++);
        Block all{address, bytes, ids_ - 1, context, {}, false};
        findings_.expect(free(all), "all of it can't be freed", address, static_cast<uint64_t>(error));
    }
    for (unsigned context = 0; context < Machine::kContexts; context++) {
        machine_.allocator(context).trim(~0ull);
        findings_.expect(!whole || machine_.allocator(context).reserved() == 0, "memory is kept that nobody has",
                         context, machine_.allocator(context).reserved());
    }
    for (unsigned gpu = 0; whole && gpu < Machine::kGpus; gpu++)
        findings_.expect(machine_.held(gpu) == 0, "a segment is lost", gpu, machine_.held(gpu));
    TestAllocator::thread_ends();
    for (unsigned context = 0; context < Machine::kContexts; context++)
        machine_.close(context);
    findings_.expect(machine_.fences_out() == 0, "a fence is lost", machine_.fences_out());
}

}  // namespace cuslice::model
