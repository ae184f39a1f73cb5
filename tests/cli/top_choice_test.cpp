// SPDX-License-Identifier: Apache-2.0
// Sorting and filtering in the live view, and the last moments of a GPU.
#include "cli/top/choice.h"
#include "cli/top/history.h"
#include "tests/cli/made_up_machine.h"

namespace cuslice::tests {
namespace {

std::vector<int> pids(const Choice& choice) {
    std::vector<int> all;
    for (const cli::Holder& holder : chosen(busy_machine(), choice).holders.holding)
        all.push_back(holder.pid);
    return all;
}

}  // namespace

TEST_CASE("top: accounts are sorted by what is chosen, and their processes stay together") {
    CHECK(pids({}) == std::vector{811, 900, 901, 77});
    CHECK(pids({.reversed = true}) == std::vector{77, 900, 901, 811});
    CHECK(pids({.order = Order::used}) == std::vector{811, 900, 901, 77});
    CHECK(pids({.order = Order::used, .reversed = true}) == std::vector{77, 900, 901, 811});
    // No limit is no part of one.
    CHECK(pids({.order = Order::share}) == std::vector{811, 77, 900, 901});
    CHECK(pids({.order = Order::command}) == std::vector{77, 811, 900, 901});
    CHECK(pids({.order = Order::user}) == std::vector{811, 900, 901, 77});
    for (size_t i = 0; i < static_cast<size_t>(Order::count); ++i)
        CHECK_FALSE(name_of(static_cast<Order>(i)).empty());
}

TEST_CASE("top: a filter finds commands, names, users, pids and GPUs, and keeps an account whole") {
    CHECK(pids({.filter = "PYTH"}) == std::vector{811});
    CHECK(pids({.filter = "worker"}) == std::vector{900, 901});
    CHECK(pids({.filter = "lab"}) == std::vector{900, 901});
    CHECK(pids({.filter = "77-00c0"}) == std::vector{77});
    CHECK(pids({.filter = "GPU-part"}) == std::vector{77});
    CHECK(pids({.filter = std::to_string(kNobody)}).size() == 4);
    CHECK(pids({.filter = "none of these"}).empty());
    const Snapshot late = chosen(busy_machine(), {.filter = "late.py"});
    CHECK(late.holders.waiting.size() == 1);
    CHECK(late.caches.empty());
    const Snapshot cached = chosen(busy_machine(), {.filter = "811"});
    CHECK(cached.holders.waiting.empty());
    CHECK(cached.caches.size() == 1);
    // A filter changes nothing about how much of a GPU is reserved.
    CHECK(late.reserved_beyond_use(uuid(0)) == busy_machine().reserved_beyond_use(uuid(0)));
}

TEST_CASE("top: the last moments of each GPU are kept, as many as a line shows, and forgotten with the GPU") {
    History history;
    Snapshot snapshot = busy_machine();
    snapshot.gpus[0].gpu.sensors.busy = 50;
    history.note(snapshot, 0);
    CHECK(snapshot.gpus[0].moments.used == std::vector{7000.0 / 16000});
    CHECK(snapshot.gpus[0].moments.busy == std::vector{0.5});
    CHECK(snapshot.gpus[1].moments.used.empty());  // nobody says how much is in use
    CHECK(snapshot.gpus[1].moments.busy.empty());
    for (size_t i = 0; i < 2 * History::kMost; ++i)
        history.note(snapshot, 0);
    CHECK(snapshot.gpus[0].moments.used.size() == History::kMost);
    Snapshot without = snapshot;
    without.gpus.erase(without.gpus.begin());
    history.note(without, 0);
    history.note(snapshot, 0);
    CHECK(snapshot.gpus[0].moments.used.size() == 1);
    // A load above the whole is the whole.
    snapshot.gpus[0].gpu.sensors.busy = 400;
    history.note(snapshot, 0);
    CHECK(snapshot.gpus[0].moments.busy.back() == 1);
}

TEST_CASE("top: a job's part of the time since the last frame is what it had of it, and forgotten with the job") {
    constexpr uint64_t kSecond = 1'000'000'000;
    History history;
    Snapshot snapshot;
    snapshot.holders.times.resize(2);
    snapshot.holders.times[0].name = "one";
    snapshot.holders.times[1].name = "other";
    const auto note = [&](uint64_t had, uint64_t now) {
        snapshot.holders.times[0].had = had;
        snapshot.holders.times[0].recent.reset();
        history.note(snapshot, now);
        return snapshot.holders.times[0].recent;
    };
    CHECK_FALSE(note(5 * kSecond, 10 * kSecond));
    CHECK(note(6 * kSecond, 14 * kSecond) == 0.25);
    CHECK(snapshot.holders.times[1].recent == 0.0);
    CHECK(note(9 * kSecond, 16 * kSecond) == 1.0);
    CHECK(note(8 * kSecond, 18 * kSecond) == 0.0);
    CHECK_FALSE(note(8 * kSecond, 18 * kSecond));
    Snapshot nobody;
    history.note(nobody, 19 * kSecond);
    CHECK_FALSE(note(9 * kSecond, 20 * kSecond));
}

}  // namespace cuslice::tests
