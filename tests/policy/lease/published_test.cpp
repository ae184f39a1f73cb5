// SPDX-License-Identifier: Apache-2.0
// The one value of a lease's file, by itself.
#include "policy/lease/published.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "policy/lease/steps.h"
#include "tests/catch.h"
#include "tests/policy/lease/simulation/machine.h"
#include "tests/policy/rounds.h"

using namespace cuslice::lease;
using namespace cuslice::tests;

namespace {

struct Reader {
    explicit Reader(const File& file) : there(read_current(file, state.get(), &seen)) {}
    std::unique_ptr<State> state = std::make_unique<State>();
    uint64_t seen = 0;
    bool there;
};

constexpr uint64_t kOne = 1, kOther = 2;

}  // namespace

TEST_CASE("a value replaces the one that was seen, and no later one") {
    Machine machine({});
    File& file = machine.file();
    Reader first(file), second(file);
    first.state->jobs[0].id = 11;
    second.state->jobs[0].id = 22;
    CHECK(replace_current(file, *first.state, first.seen, kOne, machine) == Replaced::yes);
    CHECK(replace_current(file, *second.state, second.seen, kOther, machine) == Replaced::no);
    CHECK(Reader(file).state->jobs[0].id == 11);
    CHECK_FALSE(is_current(file, second.seen, *second.state));
    const Reader now(file);
    CHECK(is_current(file, now.seen, *now.state));
}

TEST_CASE("buffers of processes that stand still are left alone, and those of the dead are had") {
    Machine machine({});
    File& file = machine.file();
    const Member self = machine.new_process(), still = machine.new_process();
    for (Buffer& buffer : file.buffers)
        buffer.owner.store(still.presence);
    Reader reader(file);
    reader.state->jobs[0].id = 11;
    CHECK(replace_current(file, *reader.state, reader.seen, self.presence, machine) == Replaced::no_buffer);
    machine.set_condition(still.presence, Condition::ended);
    CHECK(replace_current(file, *reader.state, reader.seen, self.presence, machine) == Replaced::yes);
    CHECK(Reader(file).state->jobs[0].id == 11);
}

TEST_CASE("a file that names a buffer which it hasn't is damaged") {
    Machine machine({});
    machine.file().current.store(~0ull);
    CHECK_FALSE(Reader(machine.file()).there);
}

TEST_CASE("processes that replace the value all at once lose no step, and read no mixture") {
    const int each = rounds(2000, 50'000);
    constexpr int kProcesses = 4;
    void* const memory = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    auto* const file = static_cast<File*>(memory);
    Machine machine({});
    publish_first(*file, *Reader(machine.file()).state);
    // Each step adds to the first word and to the last one, which are 50 KB apart.
    const auto work = [&](uint64_t self) {
        for (int i = 0; i < each;) {
            Reader reader(*file);
            if (!reader.there || reader.state->jobs[0].turns != reader.state->members[kMembers - 1].gate)
                return 1;
            reader.state->jobs[0].turns++;
            reader.state->members[kMembers - 1].gate++;
            i += replace_current(*file, *reader.state, reader.seen, self, machine) == Replaced::yes;
        }
        return 0;
    };
    for (int i = 0; i < kProcesses; i++)
        if (fork() == 0)
            _exit(work(static_cast<uint64_t>(i) + 1));
    for (int i = 0; i < kProcesses; i++) {
        int status = 0;
        wait(&status);
        CHECK(status == 0);
    }
    CHECK(Reader(*file).state->jobs[0].turns == static_cast<uint64_t>(each) * kProcesses);
    munmap(memory, sizeof(File));
}
