// SPDX-License-Identifier: Apache-2.0
// A group's limit binds whoever names the group, with or without a limit of its own, and whoever brought it. The GPU's
// accounting, which knows nothing of cuslice, is the reference.
#include <signal.h>

#include <fstream>

#include "tests/preload/device.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"

namespace cuslice::tests {
namespace {

constexpr uint64_t kLaptop = 2002 * kMiB;

std::string bytes(uint64_t count) { return std::to_string(count); }

/// A machine of one GPU, and members of its groups.
struct Lab {
    explicit Lab(const std::string& fake = "1xlaptop-2g") : machine(fake) {}

    /// Under LD_PRELOAD alone.
    std::unique_ptr<Guest> preloaded(const Words& settings) const {
        auto guest = std::make_unique<Guest>(
            Guest::route("linked"),
            sliced(machine.fake, machine.books.path(), joined({"CUSLICE_HEADROOM=16MiB"}, settings)));
        REQUIRE(guest->code("init") == kSuccess);
        return guest;
    }
    std::unique_ptr<Guest> launched(const Words& options, const Words& more = {}) const {
        auto guest = machine.start(joined({"--headroom", "16MiB"}, options), more);
        REQUIRE(guest->code("init") == kSuccess);
        return guest;
    }
    /// One that names the group alone, in one of the ways in which it can be named.
    std::unique_ptr<Guest> named(const std::string& way) const {
        if (way == "variable")
            return preloaded({"CUSLICE_GROUP=lab"});
        if (way == "file") {
            const std::string file = machine.books.write("lab.toml", "group = \"lab\"\n");
            return preloaded({"CUSLICE_CONFIG=" + file});
        }
        if (way == "option")
            return launched({"--group", "lab"});
        if (way == "launcher's variable")
            return launched({}, {"CUSLICE_GROUP=lab"});
        if (way == "each process")
            return launched({"--group", "lab", "--per-process"});
        // A variable that is set inside a job, which the launcher has not seen.
        return machine.start(
            {}, {}, joined({"/usr/bin/env", "CUSLICE_GROUP=lab", "CUSLICE_HEADROOM=16MiB"}, Guest::route("linked")));
    }
    uint64_t held(Guest& guest) const { return books_of(machine.books.path(), guest.pid()).used; }
    /// As lines about groups name the GPU.
    std::string gpu() const { return machine.uuids.at(0).substr(0, 12); }

    Machine machine;
};

/// Every line that has been written so far.
std::string said(Guest& guest) {
    std::string text;
    for (const std::string& line : guest.complaints())
        text += line + "\n";
    return text;
}

const char* const kWays[] = {"variable", "file", "option", "launcher's variable", "each process", "inside a job"};

}  // namespace

TEST_CASE("whoever names a group alone is bound by its limit, and is shown it") {
    const Lab lab;
    auto first = lab.preloaded({"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1GiB"});
    REQUIRE(first->code("retain 0") == kSuccess);
    REQUIRE(first->code("alloc x " + bytes(300 * kMiB)) == kSuccess);
    for (const char* way : kWays) {
        CAPTURE(way);
        auto second = lab.named(way);
        REQUIRE(second->code("init") == kSuccess);
        // Before its first context, too.
        CHECK(second->number("total 0") == kGiB);
        REQUIRE(second->code("nvml") == kSuccess);
        CHECK(second->number("nvmlmemory 0") == kGiB);
        REQUIRE(second->code("retain 0") == kSuccess);
        CHECK(second->number("total 0") == kGiB);
        CHECK(second->number("nvmlmemory 0") == kGiB);
        CHECK(second->number("info", 2) == kGiB);
        CHECK(second->number("info") == first->number("info"));
        CHECK(second->code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
        CHECK(lab.held(*first) + lab.held(*second) <= kGiB);
        CHECK(lab.held(*first) + lab.held(*second) > kGiB - 48 * kMiB);
        CHECK(first->code("alloc y " + bytes(32 * kMiB)) == kOutOfMemory);
        CHECK(said(*second).find("of the 1024.0 MiB limit of group lab are in use") != std::string::npos);
        bool listed = false;
        for (const auto& row : lab.machine.holders())
            listed = listed || (row["pid"] == second->pid() && row["kind"] == "group" && row["limit"] == kGiB &&
                                row["used"] == lab.held(*second));
        CHECK(listed);
        CHECK(second->finish() == 0);
    }
}

TEST_CASE("a group's limit counts for its running members whoever brings it, and takes nothing away") {
    const Lab lab;
    const std::string way = GENERATE("preloaded", "launched", "with a limit of its own");
    CAPTURE(way);
    auto first = lab.preloaded({"CUSLICE_GROUP=lab"});
    REQUIRE(first->code("retain 0") == kSuccess);
    REQUIRE(first->code("alloc a " + bytes(700 * kMiB)) == kSuccess);
    REQUIRE(first->code("alloc b " + bytes(400 * kMiB)) == kSuccess);
    const uint64_t held = lab.held(*first);
    auto second = way == "preloaded"  ? lab.preloaded({"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1GiB"})
                  : way == "launched" ? lab.launched({"--group", "lab", "--group-limit", "1GiB"})
                                      : lab.launched({"--group", "lab", "--group-limit", "1GiB", "--limit", "600MiB"});
    // More is held than the new limit: what is there stays, and nothing more is granted.
    CHECK(second->code("retain 0") == kOutOfMemory);
    CHECK(lab.held(*first) == held);
    CHECK(lab.held(*second) == 0);
    CHECK(first->number("total 0") == kGiB);
    CHECK(first->number("info") == 0);
    CHECK(first->code("alloc c " + bytes(kMiB)) == kOutOfMemory);
    const std::string line = "group lab: on ";
    const std::string brought = said(*second);
    REQUIRE(brought.find(line) != std::string::npos);
    CHECK(brought.find("had no limit") != std::string::npos);
    CHECK(brought.find("1024.0 MiB") != std::string::npos);
    CHECK(brought.find("nothing is taken away") != std::string::npos);
    CHECK(brought.find(line) == brought.rfind(line));
    // Under it again, both are served.
    CHECK(first->code("free a") == kSuccess);
    CHECK(second->code("retain 0") == kSuccess);
    CHECK(second->code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
    CHECK(first->code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
    CHECK(lab.held(*first) + lab.held(*second) <= kGiB);
    // It is the group's, and not a member's who may leave.
    CHECK(second->finish() == 0);
    CHECK(first->number("total 0") == kGiB);
    auto third = lab.preloaded({"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1500MiB"});
    CHECK(third->code("retain 0") == kSuccess);
    CHECK(third->number("total 0") == kGiB);
}

TEST_CASE("the group's limit binds whatever else a member that names it alone is set to") {
    const Lab lab;
    auto first = lab.preloaded({"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1GiB"});
    REQUIRE(first->code("retain 0") == kSuccess);
    REQUIRE(first->code("alloc x " + bytes(300 * kMiB)) == kSuccess);
    for (const Words& settings :
         {Words{"CUSLICE_ALLOCATOR=growth"}, Words{"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=deferred"},
          Words{"CUSLICE_ALLOCATOR=prealloc"}, Words{"CUSLICE_SPLIT=0=1200MiB+600MiB"}, Words{"CUSLICE_LIMIT=1500MiB"},
          Words{"CUSLICE_LIMIT=1200MiB", "CUSLICE_JOB=another"}, Words{"CUSLICE_RECORD=/dev/null"}}) {
        CAPTURE(settings);
        auto second = lab.preloaded(joined({"CUSLICE_GROUP=lab"}, settings));
        REQUIRE(second->code("retain 0") == kSuccess);
        CHECK(second->code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
        CHECK(lab.held(*first) + lab.held(*second) <= kGiB);
        CHECK(lab.held(*first) + lab.held(*second) > kGiB - 64 * kMiB);
    }
    // NVIDIA's runtime, which makes its contexts where no hook is.
    auto hidden = lab.preloaded({"CUSLICE_GROUP=lab"});
    REQUIRE(hidden->code("hidden 0") == kSuccess);
    REQUIRE(hidden->code("alloc first 512") == kSuccess);
    CHECK(hidden->number("total 0") == kGiB);
    CHECK(hidden->code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
    CHECK(lab.held(*first) + lab.held(*hidden) <= kGiB);
    CHECK(said(*hidden).find("this program shares the group's limit of 1024.0 MiB") != std::string::npos);
}

TEST_CASE("a group has a limit for each GPU, which binds a member on those that it uses") {
    const Machine machine("2xlaptop-2g");
    const auto start = [&](const Words& settings) {
        auto guest = std::make_unique<Guest>(
            Guest::route("linked"),
            sliced(machine.fake, machine.books.path(), joined({"CUSLICE_HEADROOM=16MiB"}, settings)));
        REQUIRE(guest->code("init") == kSuccess);
        return guest;
    };
    auto first = start({"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=0=700MiB,1=900MiB"});
    auto second = start({"CUSLICE_GROUP=lab"});
    const uint64_t limits[] = {700 * kMiB, 900 * kMiB};
    for (const char* gpu : {"0", "1"}) {
        CAPTURE(gpu);
        const uint64_t limit = limits[*gpu - '0'];
        for (Guest* guest : {first.get(), second.get()}) {
            REQUIRE(guest->code(std::string("retain ") + gpu) == kSuccess);
            REQUIRE(guest->code(std::string("current ") + gpu) == kSuccess);
            CHECK(guest->number(std::string("total ") + gpu) == limit);
        }
        CHECK(second->code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
        const auto place = static_cast<size_t>(*gpu - '0');
        CHECK(machine.held(*first, place).used + machine.held(*second, place).used <= limit);
        CHECK(machine.held(*first, place).used + machine.held(*second, place).used > limit - 48 * kMiB);
    }
}

TEST_CASE("a group without a limit leaves a program as it was") {
    const Lab lab;
    Guest plain(Guest::route("linked"), sliced(lab.machine.fake, lab.machine.books.path()));
    REQUIRE(plain.code("init") == kSuccess);
    auto member = lab.preloaded({"CUSLICE_GROUP=lab"});
    CHECK(member->number("total 0") == kLaptop);
    for (Guest* guest : {&plain, member.get()}) {
        REQUIRE(guest->code("retain 0") == kSuccess);
        REQUIRE(guest->code("nvml") == kSuccess);
    }
    REQUIRE(member->code("alloc x " + bytes(300 * kMiB)) == kSuccess);
    for (const char* asked : {"total 0", "info", "nvmlmemory 0", "nvmlmemory2 0", "nvmlprocesses 0"}) {
        CAPTURE(asked);
        CHECK(member->ask(asked) == plain.ask(asked));
    }
    // Down to the last that the driver has, of which nothing is kept back.
    const uint64_t free = plain.number("info");
    CHECK(member->code("alloc most " + bytes(free)) == kSuccess);
    CHECK(plain.number("info") == 0);
    CHECK(member->code("alloc more " + bytes(kMiB)) == kOutOfMemory);
    CHECK(said(*member).find("out of memory") == std::string::npos);  // it is the driver's own refusal
}

TEST_CASE("one line says which limit a group's new member has, once for a job") {
    const Lab lab("1xt4");
    const auto launched = [&](const Words& options) {
        auto guest = lab.launched(options);
        REQUIRE(guest->code("retain 0") == kSuccess);
        return guest;
    };
    auto first = launched({"--group", "lab", "--group-limit", "4GiB"});
    CHECK(said(*first).empty());
    auto second = launched({"--group", "lab"});
    const std::string used = std::to_string(lab.held(*first) / kMiB);
    CHECK(said(*second) == "cuslice: group lab: on " + lab.gpu() +
                               " this program shares the group's limit of 4096.0 MiB, of which " + used +
                               ".0 MiB are in use\n");
    // Neither a process of it that comes later, nor a context that does.
    CHECK(second->code("release 0") == kSuccess);
    CHECK(second->code("retain 0") == kSuccess);
    REQUIRE(second->code("exec linked") == kSuccess);
    retain_device(*second);
    CHECK(split_lines(said(*second)).size() == 1);

    // Nobody else says it under LD_PRELOAD alone: once in a process, for its first context on the GPU.
    auto alone = lab.preloaded({"CUSLICE_GROUP=lab"});
    CHECK(said(*alone).empty());
    for (int i = 0; i < 3; i++) {
        REQUIRE(alone->code("retain 0") == kSuccess);
        REQUIRE(alone->code("release 0") == kSuccess);
    }
    const Words lines = split_lines(said(*alone));
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].find("cuslice: group lab: on GPU 0 (") == 0);
    CHECK(lines[0].find(" this program shares the group's limit of 4096.0 MiB, of which ") != std::string::npos);
    // A program of a job that names its group itself.
    auto inside = lab.named("inside a job");
    retain_device(*inside);
    CHECK(split_lines(said(*inside)).size() == 1);
    // The same limit is nothing new to its member.
    auto same = lab.preloaded({"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=4GiB"});
    REQUIRE(same->code("retain 0") == kSuccess);
    CHECK(said(*same).empty());
    auto other = lab.preloaded({"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=6GiB"});
    REQUIRE(other->code("retain 0") == kSuccess);
    CHECK(said(*other).find("its limit is 4096.0 MiB and stays so; the 6144.0 MiB given here are ignored") !=
          std::string::npos);
}

TEST_CASE("a new group without a limit, or with nearly the name of another one, gets a line") {
    const Lab lab("1xt4");
    const auto lines = [&](const Words& options) {
        auto guest = lab.launched(options);
        REQUIRE(guest->code("retain 0") == kSuccess);
        return said(*guest);
    };
    const auto preloaded = [&](const Words& settings) {
        auto guest = lab.preloaded(settings);
        REQUIRE(guest->code("retain 0") == kSuccess);
        return said(*guest);
    };
    CHECK(lines({"--group", "first"}) ==
          "cuslice: group first: it is new and has no limit: set one with --group-limit SIZE\n");
    CHECK(preloaded({"CUSLICE_GROUP=second"}).find(" it is new and has no limit: set one with --group-limit SIZE\n") !=
          std::string::npos);
    auto member = lab.preloaded({"CUSLICE_GROUP=laboratory", "CUSLICE_GROUP_LIMIT=4GiB"});
    REQUIRE(member->code("retain 0") == kSuccess);
    CHECK(said(*member).empty());
    // A letter more, less, another one, and two exchanged.
    for (const std::string name : {"laboratoryy", "laboratry", "Laboratory", "laobratory"}) {
        CAPTURE(name);
        const bool limited = name.size() % 2 == 0;
        const std::string told =
            limited ? lines({"--group", name, "--group-limit", "1GiB"}) : preloaded({"CUSLICE_GROUP=" + name});
        CHECK(split_lines(told).size() == 1);
        CHECK(told.find("group " + name + ": ") != std::string::npos);
        CHECK(told.find("did you mean laboratory?") != std::string::npos);
        CHECK((told.find("has no limit") != std::string::npos) == !limited);
        // It is a group by now.
        const std::string again = limited ? lines({"--group", name, "--group-limit", "1GiB"}) : "";
        CHECK(again.empty());
    }
    CHECK(preloaded({"CUSLICE_GROUP=laboratory-2", "CUSLICE_GROUP_LIMIT=1GiB"}).empty());
}

TEST_CASE("the launcher tells of the GPUs that its program will see, and of those on which the group has no limit") {
    const Machine machine("3xlaptop-2g");
    const auto first = machine.start({"--gpus", "1", "--group", "lab", "--group-limit", "1GiB"});
    retain_device(*first);
    const auto told = [&](const Words& options) {
        const Outcome outcome =
            run(machine.launch(joined({"--group", "lab"}, options), {"/bin/true"}), machine.outside());
        CHECK(outcome.exit_code == 0);
        return outcome.err;
    };
    const std::string shares = "cuslice: group lab: on " + machine.uuids[1].substr(0, 12) +
                               " this program shares the group's limit of 1024.0 MiB, of which " +
                               std::to_string(machine.held(*first, 1).used / kMiB) + ".0 MiB are in use\n";
    const std::string none = " it has no limit: set one with --group-limit SIZE\n";
    CHECK(told({}) == shares + "cuslice: group lab: on 2 other GPUs" + none);
    CHECK(told({"--gpus", "1"}) == shares);
    CHECK(told({"--gpus", "2"}) == "cuslice: group lab: on 1 GPU" + none);
    CHECK(told({"--gpus", "2", "--group-limit", "1GiB"}).empty());
}

TEST_CASE("a program that only its group limits is refused its memory where the group can't be reached") {
    const Lab lab;
    const std::string folder = lab.machine.books.write("no-folder", "");
    auto unlimited = lab.preloaded({"CUSLICE_GROUP=lab", "CUSLICE_DIR=" + folder});
    CHECK(unlimited->code("retain 0") == kOutOfMemory);
    const Words lines = unlimited->complaints();
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].find("the limit can't be shared with other processes, so every allocation fails: ") !=
          std::string::npos);
    CHECK(lab.held(*unlimited) == 0);
}

TEST_CASE("a refusal names a group's processes, which are in no job, and not as what is outside cuslice") {
    const Lab lab;
    const std::string group = GENERATE("with a limit", "without one");
    CAPTURE(group);
    auto member = lab.preloaded(group == "with a limit" ? Words{"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1500MiB"}
                                                        : Words{"CUSLICE_GROUP=lab"});
    REQUIRE(member->code("retain 0") == kSuccess);
    REQUIRE(member->code("alloc x " + bytes(900 * kMiB)) == kSuccess);
    const std::string held = std::to_string(lab.held(*member) / kMiB) + ".0 MiB";
    const std::string refused = lab.machine.refused({"--limit", "1500MiB"}, 75);
    CHECK(refused.find("Held: pid " + std::to_string(member->pid()) + " (guest_linked, user ") != std::string::npos);
    CHECK(refused.find(") " + held + " for ") != std::string::npos);
    CHECK(refused.find("outside cuslice") == std::string::npos);
    // A job's process holds it in the job's account.
    auto in_job = lab.launched({"--group", "lab", "--limit", "500MiB"});
    REQUIRE(in_job->code("retain 0") == kSuccess);
    const std::string both = lab.machine.refused({"--limit", "1500MiB"}, 75);
    CHECK(both.find("pid " + std::to_string(in_job->pid()) + " (") != std::string::npos);
    CHECK(both.find("pid " + std::to_string(in_job->pid()) + " (") ==
          both.rfind("pid " + std::to_string(in_job->pid()) + " ("));
    CHECK(both.find(") 500.0 MiB for ") != std::string::npos);
    CHECK(both.find("outside cuslice") == std::string::npos);
}

}  // namespace cuslice::tests
