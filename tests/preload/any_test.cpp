// SPDX-License-Identifier: Apache-2.0
// --gpus any: one GPU, the emptiest on which the slice fits.
#include <signal.h>

#include <algorithm>

#include "tests/preload/device.h"
#include "tests/preload/machine.h"
#include "tests/soon.h"

namespace cuslice::tests {
namespace {

std::string number(uint64_t count) { return std::to_string(count); }

// A program without cuslice that holds so much on one GPU.
std::unique_ptr<Guest> hog(const Machine& machine, size_t index, uint64_t bytes) {
    auto guest = std::make_unique<Guest>(Guest::route("linked"), raw(machine.fake, machine.books.path(),
                                                                     {"CUDA_VISIBLE_DEVICES=" + machine.uuids[index]}));
    retain_device(*guest);
    REQUIRE(guest->code("alloc x " + number(bytes)) == kSuccess);
    return guest;
}

}  // namespace

TEST_CASE("any is the emptiest GPU, and the next launcher gets another one") {
    const Machine machine("3xlaptop-2g");
    const auto a = hog(machine, 0, 800 * kMiB), b = hog(machine, 1, 200 * kMiB);
    const Words options{"--gpus", "any", "--fraction", "0.4"};
    auto first = machine.start(options);
    CHECK(machine.seen(*first) == "2");
    CHECK(machine.holders().size() == 1);  // reserved before it opens the GPU
    auto second = machine.start(options);
    CHECK(machine.seen(*second) == "1");  // 1502 MiB are left there, 1201 on GPU 2
    auto third = machine.start(options);
    CHECK(machine.seen(*third) == "2");
    auto fourth = machine.start(options);
    CHECK(machine.seen(*fourth) == "0");
    REQUIRE(fourth->code("retain 0") == kSuccess);
    CHECK(machine.held(*fourth, 0).used > 0);
    CHECK_FALSE(machine.held(*fourth, 2).known);
    CHECK(first->finish() == 0);
    CHECK(first->err().empty());
}

TEST_CASE("a limit for another GPU than the one that any finds is no limit, and a line says so") {
    const Machine machine("2xlaptop-2g");
    const auto outside = hog(machine, 0, 1000 * kMiB);
    auto job = machine.start({"--gpus", "any", "--limit", "0=1GiB"});
    CHECK(machine.seen(*job) == "1");
    CHECK(job->finish() == 0);
    const Words lines = job->complaints();
    REQUIRE(lines.size() == 1);
    CHECK(lines[0] ==
          "cuslice: no limit on GPU 1 " + machine.uuids[1] +
              ", which was chosen: --limit says 0=1GiB, and nothing sets one for the others; without a GPU, a limit "
              "is for every GPU");
    auto limited = machine.start({"--gpus", "any", "--limit", "1GiB"});
    CHECK(machine.seen(*limited) == "1");
    CHECK(limited->finish() == 0);
    CHECK(limited->complaints().empty());
}

TEST_CASE("where the slice fits on no GPU a line for each says who holds what, and the exit code is 75") {
    const Machine machine("2xlaptop-2g");
    const auto outside = hog(machine, 0, 1000 * kMiB);
    auto job = machine.start({"--gpus", "1", "--fraction", "0.7"});
    REQUIRE(job->code("init") == kSuccess);
    const Words lines = split_lines(machine.refused({"--gpus", "any", "--fraction", "0.6"}, 75));
    REQUIRE(lines.size() == 2);
    CHECK(lines[0] ==
          "cuslice: GPU 0: 1201.2 MiB requested, 702.0 MiB left. Held: outside cuslice 1300.0 MiB. Try --wait or "
          "--limit 702MiB");
    CHECK(lines[1].find("cuslice: GPU 1: 1201.2 MiB requested, 600.6 MiB left. Held: pid " +
                        number(static_cast<unsigned>(job->pid()))) == 0);
    CHECK(machine.holders().size() == 1);
    const Words waited = split_lines(machine.refused({"--gpus", "any", "--fraction", "0.6", "--wait=50ms"}, 75));
    REQUIRE(waited.size() == 4);  // what for, and that it gave up, on each
    CHECK(waited[0].find("cuslice: waiting for 1201.2 MiB on GPU 0, number 1 of 1 in the queue: 702.0 MiB left. ") ==
          0);
    CHECK(run(machine.launch({"--gpus", "any", "--limit", "700MiB"}, {"/bin/true"}), machine.outside()).exit_code == 0);
}

TEST_CASE("any waits for the first GPU that has room") {
    const Machine machine("2xlaptop-2g");
    const Words options{"--gpus", "any", "--fraction", "0.6"};
    auto first = machine.start(options), second = machine.start(options);
    CHECK(machine.seen(*first) != machine.seen(*second));
    const std::string free_soon = machine.seen(*second);
    auto waiting = machine.start({"--gpus", "any", "--fraction", "0.6", "--wait"});
    // It has said on which GPUs there is no room.
    REQUIRE(soon([&] { return waiting->complaints().size() == 2; }));
    second->kill(SIGKILL);
    CHECK(machine.seen(*waiting) == free_soon);
    CHECK(waiting->complaints().size() == 3);
    CHECK(waiting->complaints().back().find("cuslice: GPU " + free_soon + " granted after ") == 0);
}

TEST_CASE("launchers at the same moment never share what only one of them can have") {
    const Machine machine("4xlaptop-2g");
    std::vector<std::unique_ptr<Guest>> guests;
    for (int i = 0; i < 6; ++i)
        guests.push_back(machine.start({"--gpus", "any", "--fraction", "0.6"}));
    std::string taken;
    unsigned refused = 0;
    for (const auto& guest : guests) {
        if (guest->ask("pid") == "(gone)")
            ++refused;
        else
            taken += machine.seen(*guest);
    }
    std::sort(taken.begin(), taken.end());
    CHECK(taken == "0123");
    CHECK(refused == 2);
}

TEST_CASE("any without a limit, or without a reservation, is the GPU that has most left") {
    const Machine machine("2xlaptop-2g");
    const auto outside = hog(machine, 0, 100 * kMiB);
    CHECK(machine.seen({"--gpus", "any"}) == "1");
    auto job = machine.start({"--gpus", "1", "--fraction", "0.6"});
    REQUIRE(job->code("init") == kSuccess);
    CHECK(machine.seen({"--gpus", "any"}) == "0");  // what is reserved is not there, used or not
    CHECK(machine.seen({"--gpus", "any", "--fraction", "0.9", "--per-process"}) == "0");
    CHECK(machine.holders().size() == 1);
    // A limit for one GPU alone: the others give all they have.
    CHECK(machine.seen({"--gpus", "any", "--limit", "0=2000MiB"}) == "1");
    CHECK(machine.seen({"--gpus", "any", "--limit", "0=1900MiB", "--per-process"}) == "1");
}

TEST_CASE("any chooses among what CUDA_VISIBLE_DEVICES leaves") {
    const Machine machine("3xlaptop-2g");
    const auto outside = hog(machine, 1, 100 * kMiB);
    CHECK(machine.seen({"--gpus", "any"}, {"CUDA_VISIBLE_DEVICES=1"}) == "1");
    CHECK(machine.seen({"--gpus", "any", "--fraction", "0.4"}, {"CUDA_VISIBLE_DEVICES=1,2"}) == "2");
    CHECK(machine.refused({"--gpus", "any"}, 78, {"CUDA_VISIBLE_DEVICES="}) ==
          "cuslice: --gpus: any: there is no GPU to choose from: CUDA_VISIBLE_DEVICES=\"\" allows none\n");
    // Inside, it has been chosen already.
    auto nested = machine.start({"--gpus", "any", "--fraction", "0.4"}, {},
                                machine.launch({}, machine.launch({"--gpus", "any"}, Guest::route("linked"))));
    CHECK(machine.seen(*nested) == "0");
    CHECK(machine.holders().size() == 1);
}

TEST_CASE("under LD_PRELOAD alone any is the GPU with most free memory") {
    const Machine machine("2xlaptop-2g");
    const auto outside = hog(machine, 0, 100 * kMiB);
    Guest guest(Guest::route("linked"), sliced(machine.fake, machine.books.path(), {"CUSLICE_GPUS=any"}));
    CHECK(machine.seen(guest) == "1");
}

TEST_CASE("no descriptor of a ledger that was only looked at reaches the program") {
    const Machine machine("3xlaptop-2g");
    const auto open = [&](const Words& options) {
        auto guest = machine.start(options);
        const std::string self = guest->ask("self");
        const auto count = [&](const std::string& end) {
            unsigned found = 0;
            for (size_t at = self.find(end); at != self.npos; at = self.find(end, at + 1))
                ++found;
            return found;
        };
        CHECK(count(".ledger") == count(".alive"));
        return count(".ledger");
    };
    CHECK(open({"--gpus", "any", "--fraction", "0.4"}) == 1);
    CHECK(open({"--gpus", "any"}) == 0);
    CHECK(open({"--gpus", "2,1", "--fraction", "0.4"}) == 2);
    CHECK(open({"--gpus", "2,1"}) == 0);
}

}  // namespace cuslice::tests
