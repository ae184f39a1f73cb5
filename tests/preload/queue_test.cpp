// SPDX-License-Identifier: Apache-2.0
// `--wait`: launchers that wait for a GPU stand in a queue, which everybody can see and nobody is starved in.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "policy/ledger/layout.h"
#include "tests/preload/device.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/preload/user_name.h"
#include "tests/skip.h"
#include "tests/soon.h"

namespace cuslice::tests {
namespace {

// So often a request is passed that waits, as docs/sharing.md says.
constexpr unsigned kMaxPast = 3;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Json ps(const Machine& machine) {
    const Outcome outcome = run({kLaunch, "ps", "--json", "--fake", machine.fake}, machine.outside());
    REQUIRE(outcome.exit_code == 0);
    return Json::parse(outcome.out);
}

Json waiting(const Machine& machine) { return ps(machine).list("waiting"); }

bool so_many_wait(const Machine& machine, size_t count) {
    return soon([&] { return waiting(machine).size() == count; });
}

// A launcher that becomes a program which holds its slice until it is told to end, once it has become it.
std::unique_ptr<Guest> start(const Machine& machine, const Words& options) {
    auto guest = machine.start(options);
    REQUIRE(guest->code("init") == kSuccess);
    return guest;
}

// One that has to wait, once it does.
std::unique_ptr<Guest> queue_up(const Machine& machine, const Words& options, size_t place = 1) {
    auto guest = machine.start(options);
    REQUIRE(so_many_wait(machine, place));
    return guest;
}

// Someone who waits for several GPUs has nothing kept on one of them, and says so in its ledger.
bool somebody_steps_aside(const Machine& machine) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(machine.books.path())) {
        if (entry.path().extension() != ".ledger")
            continue;
        ledger::Ticket tickets[ledger::kTickets];
        std::ifstream file(entry.path(), std::ios::binary);
        file.seekg(offsetof(ledger::File, tickets));
        if (!file.read(reinterpret_cast<char*>(tickets), sizeof tickets))
            continue;
        for (const ledger::Ticket& ticket : tickets)
            if (ticket.state.load() == ledger::TicketState::waiting && ticket.aside.load() != 0)
                return true;
    }
    return false;
}

std::vector<int> children_of(int pid) {
    const std::string number = std::to_string(pid);
    std::ifstream file("/proc/" + number + "/task/" + number + "/children");
    return {std::istream_iterator<int>(file), {}};
}

}  // namespace

TEST_CASE("a launcher that doesn't wait looks again while what is in its way may be a context in the making") {
    const Machine machine("1xlaptop-2g");
    auto job = start(machine, {"--limit", "1200MiB"});
    Guest stranger(Guest::route("linked"), raw(machine.fake, machine.books.path()));
    retain_device(stranger);
    REQUIRE(stranger.code("alloc x " + std::to_string(400 * kMiB)) == kSuccess);
    auto late = machine.start({"--limit", "400MiB"});
    // Each look is a child of the launcher.
    std::set<int> looks;
    REQUIRE(soon([&] {
        for (const int child : children_of(late->child()))
            looks.insert(child);
        return looks.size() > 4;
    }));
    stranger.kill(SIGKILL);
    CHECK(late->code("init") == kSuccess);
    CHECK(late->finish() == 0);
    CHECK(late->err().empty());
}

TEST_CASE("of one large job and a stream of small ones the large one starts after a bounded number of them") {
    const Machine machine("1xlaptop-2g");
    auto first = start(machine, {"--fraction", "0.3"});
    auto large = queue_up(machine, {"--fraction", "0.9", "--wait"});
    const bool small_ones_wait = GENERATE(false, true);
    CAPTURE(small_ones_wait);
    Words options{"--fraction", "0.3"};
    if (small_ones_wait)
        options.push_back("--wait");
    // Each begins before the one before it has ended, so that the large one never fits.
    for (unsigned passed = 0; passed < kMaxPast; passed++) {
        CHECK(waiting(machine).at(0)["passed"] == passed);
        auto next = start(machine, options);
        CHECK(first->finish() == 0);
        first = std::move(next);
    }
    const Outcome refused = run(machine.launch({"--fraction", "0.3"}, {"/bin/echo", "started"}), machine.outside());
    CHECK(refused.exit_code == 75);
    CHECK(refused.out.empty());
    const auto pid = std::to_string(waiting(machine).at(0)["pid"].get<int>());
    CHECK(contains(refused.err, "cuslice: GPU 0: 600.6 MiB requested, 1401.4 MiB left, reserved for pid " + pid +
                                    " (guest_linked, user " + name_of_this_user() +
                                    "), which has waited for 1801.8 MiB for "));
    CHECK(contains(refused.err, " s. Held: pid " + std::to_string(first->pid()) + " ("));
    CHECK(contains(refused.err, ". Try --wait\n"));
    std::unique_ptr<Guest> later;
    if (small_ones_wait)
        later = queue_up(machine, options, 2);
    CHECK(first->finish() == 0);
    CHECK(large->code("init") == kSuccess);
    CHECK(large->code("retain 0") == kSuccess);
    if (!later)
        return;
    CHECK(waiting(machine).at(0)["position"] == 1);
    CHECK(large->finish() == 0);
    CHECK(later->code("init") == kSuccess);
    CHECK(waiting(machine).empty());
}

TEST_CASE("ps shows who waits: at which place, for how much, and nobody who has given up or ended") {
    const Machine machine("1xlaptop-2g");
    auto holder = start(machine, {"--fraction", "0.5"});
    CHECK(waiting(machine).empty());
    const std::string odd = machine.books.path() + "/\x1b[31mred\n";  // a name that a terminal would obey
    REQUIRE(symlink("/bin/cat", odd.c_str()) == 0);
    auto first = queue_up(machine, {"--fraction", "0.6", "--wait"});
    auto second = machine.start({"--fraction", "0.7", "--wait=1h"}, {}, {odd});
    REQUIRE(so_many_wait(machine, 2));
    const Json now = ps(machine);
    CHECK(now["processes"].size() == 1);
    const Json& all = now["waiting"];
    CHECK(all[0]["gpu"] == machine.uuids[0]);
    CHECK(all[0]["position"] == 1);
    CHECK(all[0]["uid"] == geteuid());
    CHECK(all[0]["user"] == name_of_this_user());
    CHECK(all[0]["command"] == "guest_linked");
    CHECK(all[0]["bytes"].get<uint64_t>() / kMiB == 1201);
    CHECK(all[0]["seconds"].is_number());
    CHECK(all[0]["passed"] == 0);
    CHECK(all[1]["position"] == 2);
    CHECK(all[1]["command"] == "\x1b[31mred\n");
    const std::string table = run({kLaunch, "ps", "--fake", machine.fake}, machine.outside()).out;
    const Words lines = split_lines(table);
    for (const std::string& line : lines)
        CHECK(line.size() <= 80);
    Words wide = machine.outside();
    wide.push_back("COLUMNS=200");
    const Words whole = split_lines(run({kLaunch, "ps", "--fake", machine.fake}, wide).out);
    REQUIRE(whole.size() == 6);  // the holder's table is above
    CHECK(whole[2].empty());
    CHECK(split_words(whole[3]) == Words{"GPU", "QUEUE", "PID", "USER", "WANTS", "COMMAND", "SINCE", "OVERTAKEN"});
    CHECK(contains(whole[4], " guest_linked "));
    CHECK(contains(whole[5], " 2 "));
    CHECK(contains(whole[5], " \\x1b[31mred\\x0a "));
    const Json& words = all[1]["command_line"];
    CHECK(words[words.size() - 1] == odd);
    CHECK(all[1]["fake"] == true);

    const int signal = GENERATE(SIGKILL, SIGINT);  // as Ctrl-C sends it
    first->kill(signal);
    CHECK(first->finish() == 128 + signal);
    CHECK(waiting(machine).size() == 1);
    CHECK(waiting(machine).at(0)["position"] == 1);
    CHECK(holder->finish() == 0);
    CHECK(second->ask("hello") == "hello");
    CHECK(waiting(machine).empty());
}

TEST_CASE("who waits is told what for when it begins, and when it is through or has given up") {
    const Machine machine("1xlaptop-2g");
    auto holder = start(machine, {"--fraction", "0.5"});
    const std::string held = "1001.0 MiB left. Held: pid " + std::to_string(holder->pid()) + " (guest_linked, user " +
                             name_of_this_user() + ") 1001.0 MiB for ";
    auto first = queue_up(machine, {"--fraction", "0.6", "--wait"});
    const Outcome second =
        run(machine.launch({"--fraction", "0.7", "--wait=300ms"}, {"/bin/echo", "started"}), machine.outside());
    CHECK(second.exit_code == 75);
    CHECK(second.out.empty());
    const Words gave_up = split_lines(second.err);
    REQUIRE(gave_up.size() == 2);
    CHECK(gave_up[0].find("cuslice: waiting for 1401.4 MiB on GPU 0, number 2 of 2 in the queue: " + held) == 0);
    CHECK(gave_up[1].find("cuslice: gave up waiting after ") == 0);
    CHECK(contains(gave_up[1], ", number 2 of 2 in the queue. GPU 0: 1401.4 MiB requested, " + held));
    CHECK_FALSE(contains(second.err, "Try "));  // it has done so
    CHECK(waiting(machine).size() == 1);
    CHECK(holder->finish() == 0);
    CHECK(first->code("init") == kSuccess);
    CHECK(first->finish() == 0);
    const Words lines = first->complaints();
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].find("cuslice: waiting for 1201.2 MiB on GPU 0, number 1 of 1 in the queue: " + held) == 0);
    CHECK(lines[1].find("cuslice: GPU 0 granted after ") == 0);
}

TEST_CASE("any waits in the queue of each GPU, and leaves the others when it has one") {
    const Machine machine("3xlaptop-2g");
    std::vector<std::unique_ptr<Guest>> holders;
    for (const char* gpu : {"0", "1", "2"})
        holders.push_back(start(machine, {"--gpus", gpu, "--fraction", "0.5"}));
    auto any = queue_up(machine, {"--gpus", "any", "--fraction", "0.9", "--wait"}, 3);
    auto behind = queue_up(machine, {"--gpus", "1", "--fraction", "0.8", "--wait"}, 4);
    CHECK(holders[1]->finish() == 0);
    CHECK(machine.seen(*any) == "1");
    const Json left = waiting(machine);
    REQUIRE(left.size() == 1);
    CHECK(left[0]["position"] == 1);
    CHECK(any->finish() == 0);
    CHECK(machine.seen(*behind) == "1");
}

TEST_CASE("a job that waits for any GPU is passed as often on one of them, and keeps that one alone") {
    const Machine machine("2xlaptop-2g");
    auto first = start(machine, {"--gpus", "0", "--fraction", "0.3"}),
         second = start(machine, {"--gpus", "1", "--fraction", "0.3"});
    auto any = queue_up(machine, {"--gpus", "any", "--fraction", "0.9", "--wait"}, 2);
    for (unsigned passed = 0; passed < kMaxPast; passed++)
        start(machine, {"--gpus", "0", "--fraction", "0.3"})->finish();
    machine.refused({"--gpus", "0", "--fraction", "0.3"}, 75);
    // On the other one nothing is kept for it, once it knows: before that, it could be passed as often there.
    REQUIRE(soon([&] { return somebody_steps_aside(machine); }));
    for (unsigned passed = 0; passed < 2 * kMaxPast; passed++) {
        const Words launched = machine.launch({"--gpus", "1", "--fraction", "0.3"}, {"/bin/true"});
        CHECK(run(launched, machine.outside()).exit_code == 0);
    }
    CHECK(first->finish() == 0);
    CHECK(machine.seen(*any) == "0");
}

TEST_CASE("a time to wait passes where the C library's clock stands still") {
    if (!kSanitizer.empty()) {
        skip("a sanitizer's runtime has to be preloaded before the clock");
        return;
    }
    const Machine machine("1xlaptop-2g");
    auto holder = start(machine, {"--fraction", "0.5"});
    Words words{"/usr/bin/timeout", "60"};
    const Words launched = machine.launch({"--fraction", "0.7", "--wait=200ms"}, {"/bin/echo", "started"});
    words.insert(words.end(), launched.begin(), launched.end());
    const Outcome outcome = run(words, machine.outside({"LD_PRELOAD=" + kGuests + "/libguest_clock.so"}));
    CHECK(outcome.exit_code == 75);
    CHECK(contains(outcome.err, "gave up waiting"));
}

TEST_CASE("a program that waits for its slice at its first context stands in the queue, too") {
    const Machine machine("2xlaptop-2g");
    auto holder = start(machine, {"--gpus", "1", "--fraction", "0.5"});
    auto program = start(machine, {"--fraction", "0.7", "--wait=300ms"});
    CHECK(program->code("retain 1") == kOutOfMemory);
    CHECK(program->finish() == 0);
    const Words lines = program->complaints();
    REQUIRE(lines.size() == 1);
    CHECK(contains(lines[0], "1401.4 MiB requested, 1001.0 MiB left. Held: "));
    CHECK_FALSE(contains(lines[0], "Try "));

    auto large = start(machine, {"--fraction", "0.7", "--wait"});
    int retained = -1;
    std::thread retaining([&] { retained = large->code("retain 1"); });
    const bool waits = so_many_wait(machine, 1);
    const Json all = waiting(machine);
    CHECK(holder->finish() == 0);
    retaining.join();
    CHECK(retained == kSuccess);
    REQUIRE(waits);
    CHECK(all.at(0)["command"] == "guest_linked");
    CHECK(waiting(machine).empty());
}

}  // namespace cuslice::tests
