// SPDX-License-Identifier: Apache-2.0
#include "shim/process/recording.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "shim/process/own_command.h"
#include "shim/process/python_stack.h"
#include "virtual_gpu/driver/scratch.h"

namespace cuslice {

namespace {

constexpr uint64_t kLargeEnough = 1 << 20;  // bytes of a block whose row has a stack

constexpr uint64_t kUnit = AllocationTable::kUnit;

// Blocks that no context's end frees have a number for each GPU in a context's place, from the end. A context would be
// the 65,471st of the process to have one of them; its end frees nothing here.
constexpr unsigned kFirstShared = 0x10000 - Recording::kMaxGpus - 1;
constexpr bool is_shared(unsigned context) { return context >= kFirstShared; }

// Asked once: a child writes no rows.
uint32_t this_thread() {
    static constinit thread_local uint32_t number = 0;
    if (!number)
        number = static_cast<uint32_t>(syscall(SYS_gettid));
    return number;
}

}  // namespace

// The table counts in units. By how much a size is short of them is kept in the numbers that are the caller's own.
Allocation Recording::packed(const Block& block) {
    const uint64_t rounded = (block.bytes + kUnit - 1) / kUnit * kUnit, short_of = rounded - block.bytes;
    const auto gpu = static_cast<unsigned>(block.gpu + 1);
    const unsigned context = block.context == 0 || is_shared(block.context) ? kFirstShared + gpu : block.context;
    gpus_[context].store(static_cast<uint8_t>(gpu), std::memory_order_relaxed);
    return {block.address, rounded, static_cast<Contexts::Id>(context), static_cast<uint8_t>(short_of % 64),
            static_cast<uint8_t>(short_of / 64)};
}

Recording::Block Recording::unpacked(const Allocation& allocation) const {
    const uint64_t short_of = allocation.kind * 64u + allocation.gpu;
    const auto context = static_cast<Contexts::Id>(is_shared(allocation.context) ? 0 : allocation.context);
    return {allocation.address, allocation.bytes - short_of, context,
            gpus_[allocation.context].load(std::memory_order_relaxed) - 1};
}

trace::Row Recording::row_of(trace::Action action, const Block& block, uint64_t stream) const {
    trace::Row row{.thread = this_thread(),
                   .time = trace::now(),
                   .action = action,
                   .address = block.address,
                   .bytes = block.bytes,
                   .stream = stream,
                   .gpu = {}};
    if (block.gpu == kNoGpu || !describe_)
        return row;
    row.ordinal = static_cast<uint8_t>(block.gpu);
    describe_(block.gpu, row);
    return row;
}

void Recording::start(std::string_view file, bool stacks, Describe describe) {
    name_ = file;
    stacks_ = stacks;
    describe_ = describe;
    state_.store(State::no_file_yet, std::memory_order_release);
}

void Recording::allocated(const Block& block, uint64_t stream) {
    if (!on())
        return;
    if (const Allocation before = blocks_.erase(block.address); before.address)
        write(row_of(trace::Action::free, unpacked(before), 0));
    if (!blocks_.insert(packed(block)))
        return end(Reason("there is no memory to remember sizes in"));
    const trace::Row row = row_of(trace::Action::allocate, block, stream);
    if (stacks_ && block.bytes >= kLargeEnough)
        write_with_stack(row);
    else
        write(row);
}

void Recording::refused(uint64_t bytes, uint64_t stream, int gpu) {
    if (!on())
        return;
    const trace::Row row = row_of(trace::Action::allocate_failure, {.bytes = bytes, .gpu = gpu}, stream);
    stacks_ ? write_with_stack(row) : write(row);
}

bool Recording::freed(uint64_t address, uint64_t stream, Block* block) {
    if (!on())
        return false;
    const Allocation found = blocks_.erase(address);
    if (!found.address)
        return false;
    *block = unpacked(found);
    write(row_of(trace::Action::free, *block, stream));
    return true;
}

void Recording::context_ends(Contexts::Id context, PageVector<Block>* blocks) {
    if (!on() || is_shared(context))
        return;
    struct Taking {
        const Recording* self;
        PageVector<Block>* blocks;
    } taking{this, blocks};
    const auto take = [](const Allocation& allocation, void* into) {
        const auto& [self, taken] = *static_cast<Taking*>(into);
        taken->push_back(self->unpacked(allocation));
    };
    blocks_.erase_context(context, take, &taking);
    for (const Block& block : *blocks)
        write(row_of(trace::Action::free, block, 0));
}

// Makes the file, with this row as its first. False: there is one, or there is to be none any more.
bool Recording::begin(const trace::Row& row) {
    const DisablingLockGuard lock(mutex_);
    if (state() != State::no_file_yet)
        return false;
    Reason why;
    if (!log_.make(name_, why, stacks_ ? trace::Columns::with_stack : trace::Columns::usual)) {
        end(why);
        return true;
    }
    FixedText<trace::kMostOfProgram + 1> program;
    trace::append_field(program, own_command());
    trace::Row first = row;
    first.program = program;
    append(first);
    State before = State::no_file_yet;
    if (state_.compare_exchange_strong(before, State::open, std::memory_order_acq_rel))
        news_.store(true, std::memory_order_release);
    return true;
}

// Without memory for the stack the row has none.
void Recording::write_with_stack(trace::Row row) {
    const Scratch<PythonStack> stack;
    if (stack)
        row.stack = stack->read();
    write(row);
}

// The state is looked at again before each row: once a row is missing, what follows makes no sense.
void Recording::write(const trace::Row& row) {
    if (state() == State::no_file_yet && begin(row))
        return;
    if (state() == State::open)
        append(row);
}

void Recording::append(const trace::Row& row) {
    int error = 0;
    switch (log_.append(row, error)) {
        case trace::File::Appended::done:
            return;
        case trace::File::Appended::not_ours:
            return state_.store(State::off, std::memory_order_release);
        case trace::File::Appended::failed:
            Reason why;
            log_.cant_write(error, why);
            return end(why);
    }
}

void Recording::end(const Reason& why) {
    State now = state();
    do
        if (now != State::no_file_yet && now != State::open)
            return;
    while (!state_.compare_exchange_weak(now, State::ending, std::memory_order_acq_rel));
    failure_ = why;
    state_.store(State::ended, std::memory_order_release);
    news_.store(true, std::memory_order_release);
}

const Reason* Recording::failure() {
    return state() == State::ended && !told_end_.exchange(true, std::memory_order_relaxed) ? &failure_ : nullptr;
}

const trace::Path* Recording::begun() {
    return state() == State::open && !told_begun_.exchange(true, std::memory_order_relaxed) ? &log_.path() : nullptr;
}

void Recording::finish() {
    if (state() == State::open || state() == State::ended)
        log_.finish();
}

void Recording::forget() { state_.store(State::off, std::memory_order_release); }

}  // namespace cuslice
