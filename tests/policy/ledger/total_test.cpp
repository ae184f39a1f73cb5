// SPDX-License-Identifier: Apache-2.0
// A total that processes share, killed in the middle: at every single instruction, and at random.
#include "policy/ledger/total.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <random>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/rounds.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

constexpr uint64_t kLimit = 1'000'000;
constexpr uint32_t kUsed = 8;  // stripes that these tests use

struct Shared {
    Stamped total;
    std::atomic<uint64_t> peak;
    Stripe stripes[kUsed];
    std::atomic<bool> working, done;  // of the child that is stepped through

    bool change(uint32_t stripe, int64_t bytes, uint64_t ceiling = kLimit) {
        return cuslice::ledger::change(total, &peak, stripes, stripe, bytes, ceiling);
    }
    bool undo(uint32_t stripe, int64_t bytes) {
        return cuslice::ledger::change(total, nullptr, stripes, stripe, -bytes, kNoLimit);
    }
    void take_back(uint32_t stripe) { cuslice::ledger::take_back(total, peak, stripes, stripe, 1); }
    uint64_t most() const { return peak_of(total, peak); }
    uint64_t sum() const {
        int64_t all = 0;
        for (const Stripe& stripe : stripes)
            all += stripe.held.load();
        return static_cast<uint64_t>(all);
    }
};

// In memory that forked children share.
struct Scene {
    Scene() : memory(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
        shared = new (memory) Shared{};
    }
    ~Scene() { munmap(memory, sizeof(Shared)); }
    void* memory;
    Shared* shared;
};

// How far a child had come when it was killed.
struct Cut {
    bool short_of_end = false;
    int instructions = 0;  // of the work, that were carried out one by one
};

// Runs `work` in a child for so many instructions, then `meanwhile` here while it stands still, and kills it.
template <typename Work, typename Meanwhile>
Cut killed_after(Scene& scene, int instructions, Work work, Meanwhile meanwhile) {
    scene.shared->working = false;
    scene.shared->done = false;
    const pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        raise(SIGSTOP);
        scene.shared->working = true;
        work();
        scene.shared->done = true;
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    // Only the work counts, not the C library's instructions before and after it.
    Cut cut;
    while (cut.instructions < instructions && !scene.shared->done) {
        if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0)
            break;
        waitpid(child, &status, 0);
        if (!WIFSTOPPED(status))
            break;
        cut.instructions += scene.shared->working;
    }
    cut.short_of_end = !scene.shared->done;
    meanwhile();
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return cut;
}

// A change loads and stores nine words of its stripe and the total, exchanges the total, and branches: no compiler
// makes it of fewer instructions. A refusal loads the total once more and exchanges nothing.
constexpr int kMinInstructions = 18;

}  // namespace

TEST_CASE("bytes are taken while they fit and given back") {
    Scene scene;
    Shared& shared = *scene.shared;
    CHECK(shared.change(0, 600'000));
    uint64_t seen = 0;
    CHECK_FALSE(cuslice::ledger::change(shared.total, &shared.peak, shared.stripes, 1, 400'001, kLimit, &seen));
    CHECK(seen == 600'000);
    CHECK(shared.change(1, 400'000));
    CHECK_FALSE(shared.change(0, 1));
    CHECK(shared.change(2, 5, kNoLimit));  // a fact
    CHECK_FALSE(shared.change(0, 1));
    CHECK(shared.change(3, -600'000));  // another stripe than took it
    CHECK(shared.total.bytes == 400'005);
    CHECK(shared.sum() == shared.total.bytes);
    CHECK_FALSE(shared.change(0, INT64_MAX));
    cuslice::ledger::take_back(shared.total, shared.peak, shared.stripes, 0, 4);
    CHECK(shared.total.bytes == 0);
    CHECK(shared.sum() == 0);
}

TEST_CASE("a change leaves its stamp, its number and what was there before, and says of another's that it was there") {
    Scene scene;
    Shared& shared = *scene.shared;
    const auto stamp = [](uint64_t stripe, uint64_t operation) { return stripe << 48 | operation; };
    REQUIRE(shared.change(1, 300));
    CHECK(shared.total.stamp == stamp(1, 1));
    REQUIRE(shared.change(1, -100));
    CHECK(shared.total.stamp == stamp(1, 2));
    CHECK(shared.stripes[1].replaced.load() == 0);  // its own stamps are nobody else's to note
    CHECK(shared.stripes[1].before.load() == 300);
    CHECK(shared.stripes[1].delta.load() == -100);
    CHECK(shared.stripes[1].held.load() == 200);
    REQUIRE(shared.change(2, 50));
    CHECK(shared.total.stamp == stamp(2, 1));
    CHECK(shared.stripes[1].replaced.load() == 2);
    // A refusal is an operation as well, which nothing shows of in the total.
    CHECK_FALSE(shared.change(1, static_cast<int64_t>(kLimit)));
    CHECK(shared.total.stamp == stamp(2, 1));
    CHECK(shared.stripes[1].held.load() == 200);
    CHECK(shared.stripes[1].begun.load() == 3);
    CHECK(shared.stripes[1].completed.load() == 3);
    CHECK(shared.stripes[2].replaced.load() == 0);
    // A later one has been noted already, and nobody's stamp is noted nowhere.
    note_replaced(shared.stripes, stamp(1, 1));
    CHECK(shared.stripes[1].replaced.load() == 2);
    note_replaced(shared.stripes, stamp(uint64_t{kMembers} * kStripes, 5));
    note_replaced(shared.stripes, ~0ull);
    CHECK(shared.total.bytes == 250);
}

TEST_CASE("of a dead process's last operation it is told whether it took effect, by its stamp or by who replaced it") {
    Scene scene;
    Shared& shared = *scene.shared;
    REQUIRE(shared.change(1, 300));
    REQUIRE(shared.change(1, 100));
    Stripe& stripe = shared.stripes[1];
    const auto killed_in = [&](uint64_t operation, int64_t delta) {
        stripe.before.store(stripe.held.load());
        stripe.delta.store(delta);
        stripe.begun.store(operation);
    };
    resolve(shared.total, shared.stripes, 1);  // it has none
    CHECK(stripe.held.load() == 400);
    SECTION("it had only begun") {
        killed_in(3, 50);
        resolve(shared.total, shared.stripes, 1);
        CHECK(stripe.held.load() == 400);
    }
    SECTION("an earlier one was replaced") {
        REQUIRE(shared.change(2, 7));
        killed_in(3, 50);
        resolve(shared.total, shared.stripes, 1);
        CHECK(stripe.held.load() == 400);
        CHECK(stripe.replaced.load() == 2);
    }
    SECTION("it is in the total") {
        killed_in(3, 50);
        shared.total = {450, 1ull << 48 | 3};
        resolve(shared.total, shared.stripes, 1);
        CHECK(stripe.held.load() == 450);
    }
    SECTION("it is in the total, and somebody has changed that since") {
        killed_in(3, 50);
        shared.total = {450, 1ull << 48 | 3};
        REQUIRE(shared.change(2, 7));
        resolve(shared.total, shared.stripes, 1);
        CHECK(stripe.held.load() == 450);
    }
    CHECK(stripe.completed.load() == stripe.begun.load());
    // resolve() may run twice, as its process can be killed before it reports the result: the second run changes
    // nothing.
    const int64_t held = stripe.held.load();
    resolve(shared.total, shared.stripes, 1);
    CHECK(stripe.held.load() == held);
}

TEST_CASE("of a dead process those stripes come first that gave back what others took") {
    Scene scene;
    Shared& shared = *scene.shared;
    const uint32_t negative = GENERATE(1, 2, 3);
    CAPTURE(negative);
    REQUIRE(shared.change(0, 10));
    for (const uint32_t stripe : {1u, 2u, 3u}) {
        if (stripe == negative)
            continue;
        REQUIRE(shared.change(stripe, 100));
    }
    REQUIRE(shared.change(negative, -60));
    // The stripes are its own, from the first of them on; nothing of its neighbour's is.
    take_back(shared.total, shared.peak, shared.stripes, 1, 3);
    CHECK(shared.total.bytes == 10);
    CHECK(shared.stripes[0].held.load() == 10);
    // The last one to change the total has not given back.
    CHECK(shared.total.stamp >> 48 == (negative == 3 ? 2 : 3));
    CHECK(shared.stripes[negative].replaced.load() == shared.stripes[negative].completed.load());
    take_back(shared.total, shared.peak, shared.stripes, 0, 1);
    CHECK(shared.total.bytes == 0);
}

TEST_CASE("a total's peak is the most that all have held at once, whoever took and gave back") {
    Scene scene;
    Shared& shared = *scene.shared;
    CHECK(shared.most() == 0);
    REQUIRE(shared.change(0, 300));
    CHECK(shared.most() == 300);  // it is what the total is
    REQUIRE(shared.change(1, 400));
    REQUIRE(shared.change(0, -300));
    REQUIRE(shared.change(2, 250));
    CHECK(shared.most() == 700);
    CHECK(shared.total.bytes == 650);
    SECTION("a refusal leaves it as it is") {
        CHECK_FALSE(shared.change(0, static_cast<int64_t>(kLimit)));
        REQUIRE(shared.change(1, -400));
        CHECK(shared.most() == 700);
    }
    SECTION("and so does what is undone") {
        REQUIRE(shared.change(0, 1000));
        REQUIRE(shared.undo(0, 1000));
        CHECK(shared.total.bytes == 650);
        CHECK(shared.most() == 700);
        // Unless somebody gives back meanwhile, who can't tell that it will be.
        REQUIRE(shared.change(0, 1000));
        REQUIRE(shared.change(1, -400));
        REQUIRE(shared.undo(0, 1000));
        CHECK(shared.most() == 1650);
    }
    SECTION("what a dead process held counts, also if nobody else has given back before") {
        REQUIRE(shared.change(3, 500));
        shared.take_back(3);
        CHECK(shared.total.bytes == 650);
        CHECK(shared.most() == 1150);
    }
}

TEST_CASE("sums of what a file says wrap") {
    CHECK(plus(INT64_MAX, 1) == INT64_MIN);
    CHECK(plus(5, -7) == -2);
    CHECK(minus(INT64_MIN) == INT64_MIN);
    CHECK(minus(7) == -7);
}

// The victim (stripe 1) reserves, gives back, or is refused; before it somebody else's stamp or its own stands in the
// total; after its last instruction nobody, one or two others change it; and whoever takes its bytes back dies as well.
TEST_CASE("a process killed at any instruction leaves exactly what it held", "[slow]") {
    if (!can_trace())
        return;
    const int what = GENERATE(0, 1, 2), others = GENERATE(0, 1, 2);
    const bool own_stamp = GENERATE(false, true);
    CAPTURE(what, others, own_stamp);
    // One instruction in `step` is tried. The six situations of each kind of change start at different ones, so that
    // with a step of 6 each instruction is tried in one of them.
    const int step = instruction_step(), first = (2 * others + own_stamp) * step / 6;
    Scene scene;
    Shared& shared = *scene.shared;
    REQUIRE(shared.change(2, 5000));
    REQUIRE(shared.change(3, 700));
    const auto victim = [&] {
        if (what == 0)
            shared.change(1, 111);
        if (what == 1)
            shared.change(1, -300);
        if (what == 2)
            shared.change(1, static_cast<int64_t>(kLimit));
    };
    const auto meanwhile = [&] {
        if (others >= 1)
            shared.change(2, 10);
        if (others == 2)
            shared.change(3, 20);
    };
    const auto begin = [&] {
        REQUIRE(shared.change(1, 300));
        if (!own_stamp)
            REQUIRE(shared.change(2, 1));
    };
    // All of them, counted by a child that is stepped to its end, so that none of the points below can be missing. The
    // least of some: a sanitizer's runtime does more now and then.
    int all = 1'000'000;
    for (int i = 0; i < 5; i++) {
        begin();
        all = std::min(all, killed_after(scene, 1'000'000, victim, [] {}).instructions);
        shared.take_back(1);
    }
    REQUIRE(all >= kMinInstructions);
    bool cut_short = true;
    int points = 0;
    for (int instructions = first; cut_short; instructions += step) {
        REQUIRE(instructions < 100'000);
        shared.peak = 0;
        begin();
        const uint64_t begun = shared.total.bytes;
        const Cut cut = killed_after(scene, instructions, victim, meanwhile);
        cut_short = cut.short_of_end;
        if (cut_short && cut.instructions != instructions)
            FAIL("stopped after " << cut.instructions << " of " << instructions << " instructions");
        points += cut_short;
        const uint64_t most = std::max(begun, read(shared.total).bytes);
        killed_after(
            scene, instructions * 7 % 260, [&] { shared.take_back(1); }, [&] { shared.change(3, 5); });
        shared.take_back(1);
        // Not with Catch's macros: there are thousands of rounds.
        if (shared.stripes[1].held.load() != 0 || shared.sum() != shared.total.bytes) {
            CAPTURE(instructions);
            FAIL("the total is " << shared.total.bytes << ", the stripes hold " << shared.sum());
        }
        // The peak may include the 5 bytes that are taken while the victim's are taken back.
        if (shared.most() < most || shared.most() > most + 5) {
            CAPTURE(instructions);
            FAIL("the peak is " << shared.most() << ", and the total has been " << most);
        }
    }
    WARN("killed at " << points << " points of a change of " << all << " instructions");
    CHECK(points >= all / step - 2);
}

TEST_CASE("processes killed at random: nothing is lost, nothing is over the limit") {
    const int kills = rounds(300, 10'000);
    constexpr uint32_t kWorkers = 4;
    Scene scene;
    Shared& shared = *scene.shared;
    pid_t workers[kWorkers];
    const auto start = [&](uint32_t stripe) {
        const pid_t child = fork();
        if (child != 0)
            return child;
        std::mt19937 random(static_cast<unsigned>(getpid()));
        for (;;) {
            const auto bytes = static_cast<int64_t>(random() % (kLimit / 3));
            if (!shared.change(stripe, bytes))
                continue;
            if (read(shared.total).bytes > kLimit)
                _exit(7);
            shared.change(stripe, -bytes);
        }
    };
    for (uint32_t stripe = 0; stripe < kWorkers; stripe++)
        workers[stripe] = start(stripe);
    std::mt19937 random(1);
    int broken = 0, wrong = 0, forgotten = 0;
    for (int i = 0; i < kills; i++) {
        usleep(random() % 300);
        const uint32_t stripe = random() % kWorkers;
        kill(workers[stripe], SIGKILL);
        int status = 0;
        waitpid(workers[stripe], &status, 0);
        broken += WIFEXITED(status);
        const uint64_t seen = read(shared.total).bytes;
        shared.take_back(stripe);
        forgotten += shared.most() < seen;
        wrong += shared.stripes[stripe].held.load() != 0;
        workers[stripe] = start(stripe);
    }
    for (uint32_t stripe = 0; stripe < kWorkers; stripe++) {
        kill(workers[stripe], SIGKILL);
        waitpid(workers[stripe], nullptr, 0);
        shared.take_back(stripe);
    }
    CHECK(broken == 0);
    CHECK(wrong == 0);
    CHECK(forgotten == 0);
    CHECK(shared.most() <= kLimit);
    CHECK(shared.total.bytes == 0);
}

TEST_CASE("two of 5 under 8: never both, never neither") {
    const int count = rounds(20'000, 1'000'000);
    Scene scene;
    Shared& shared = *scene.shared;
    Meeting meeting(2);
    bool granted[2] = {};
    int both = 0, neither = 0;
    on_threads(2, [&](unsigned stripe) {
        for (int i = 0; i < count; i++) {
            meeting.wait();
            granted[stripe] = shared.change(stripe, 5, 8);
            meeting.wait();
            if (stripe == 0)
                both += granted[0] && granted[1], neither += !granted[0] && !granted[1];
            if (granted[stripe])
                shared.change(stripe, -5);
            meeting.wait();
        }
    });
    CHECK(both == 0);
    CHECK(neither == 0);
    CHECK(shared.total.bytes == 0);
}
