// SPDX-License-Identifier: Apache-2.0
// GPUs of other kinds: MIG instances, and GPUs whose memory is the host's. Limits, jobs, groups and listings are as
// exact there as elsewhere, and what can't be had is refused by name.
#include <algorithm>

#include "fake/spec/machine.h"
#include "fake/spec/mig.h"
#include "tests/catch.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

const std::string kInstances = "[[gpu]]\nprofile = \"h200\"\nmig = [\"1g.18gb\", \"3g.71gb\"]\n";

// A machine of one GPU that MIG divides, and the names of its instances.
struct Divided {
    Divided() : fake(files.write("mig.toml", kInstances)) {
        cuslice::fake::MachineSpec machine;
        std::string error;
        REQUIRE(cuslice::fake::parse_machine(fake, kFakeFolder + "/profiles", machine, error));
        for (const auto& instance : cuslice::fake::instances_of(machine.at(0)))
            uuids.push_back(cuslice::fake::uuid_text(instance));
        REQUIRE(uuids.size() == 2);
    }
    Words command(const Words& options, const Words& program) const {
        return joined(joined(joined({kLaunch, "run", "--fake", fake}, options), {"--"}), program);
    }
    Words outside() const { return plain({"CUSLICE_FAKE_DIR=" + books.path()}); }
    Outcome launch(const Words& options, const Words& program) const {
        return run(command(options, program), outside());
    }
    std::unique_ptr<Guest> start(const Words& options) const {
        auto guest = std::make_unique<Guest>(command(options, Guest::route("linked")), outside());
        REQUIRE(guest->code("init") == kSuccess);
        return guest;
    }
    Json list(const std::string& what) const {
        const Outcome outcome = run({kLaunch, what, "--json", "--fake", fake}, outside());
        REQUIRE(outcome.exit_code == 0);
        return Json::parse(outcome.out);
    }

    Folder files, books;
    std::string fake;
    Words uuids;
};

}  // namespace

TEST_CASE("a limit that names a MIG instance is the limit there, in the launcher and in the program") {
    const Divided machine;
    const size_t which = GENERATE(0, 1);
    const std::string uuid = machine.uuids[which];
    CAPTURE(uuid);
    const auto guest = machine.start({"--gpus", uuid, "--limit", uuid + "=2GiB", "--headroom", "16MiB"});
    CHECK(guest->number("count") == 1);
    CHECK(guest->number("total 0") == 2 * kGiB);
    REQUIRE(guest->code("retain 0") == kSuccess);
    // One ledger: what the launcher reserved is what the program uses.
    const auto rows = machine.list("ps")["processes"];
    REQUIRE(rows.size() == 1);
    CHECK(rows[0]["gpu"] == uuid);
    CHECK(rows[0]["reserved"] == 2 * kGiB);
    CHECK(rows[0]["used"] == books_of(machine.books.path(), guest->pid(), uuid).used);
    CHECK(guest->code("fill " + std::to_string(kMiB)) == kOutOfMemory);
    CHECK(books_of(machine.books.path(), guest->pid(), uuid).peak <= 2 * kGiB);
    CHECK(books_of(machine.books.path(), guest->pid(), uuid).peak > 2 * kGiB - 64 * kMiB);
    CHECK(guest->finish() == 0);
}

TEST_CASE("a bare preload counts a MIG instance exactly, and takes a limit by its name") {
    const Divided machine;
    const std::string uuid = machine.uuids[0];
    Guest guest(Guest::route("linked"), sliced(machine.fake, machine.books.path(),
                                               {"CUSLICE_LIMIT=" + uuid + "=1GiB", "CUSLICE_HEADROOM=16MiB"}));
    retain_device(guest);
    // Contexts and modules are counted, as NVML reports this process's memory on the instance.
    CHECK(guest.number("info") == kGiB - 16 * kMiB - books_of(machine.books.path(), guest.pid()).used);
    CHECK(guest.code("fill " + std::to_string(kMiB)) == kOutOfMemory);
    CHECK(books_of(machine.books.path(), guest.pid()).peak <= kGiB);
    CHECK(guest.finish() == 0);
}

TEST_CASE("jobs and groups on a MIG instance share its ledger") {
    const Divided machine;
    const std::string uuid = machine.uuids[0];
    const auto first = machine.start({"--fraction", "0.6"});
    const Outcome second = machine.launch({"--fraction", "0.6"}, {"/bin/echo", "started"});
    CHECK(second.exit_code == 75);
    CHECK(second.err.find("cuslice: " + uuid + ": ") == 0);
    // The other instance has memory of its own.
    CHECK(machine.launch({"--gpus", machine.uuids[1], "--fraction", "0.6"}, {"/bin/echo", "started"}).out ==
          "started\n");
    CHECK(machine.launch({"--gpus", "any", "--fraction", "0.6"}, {"/bin/echo", "started"}).out == "started\n");
    CHECK(first->finish() == 0);

    const auto a = machine.start({"--group", "lab", "--group-limit", "2GiB", "--headroom", "16MiB"}),
               b = machine.start({"--group", "lab", "--group-limit", "2GiB", "--headroom", "16MiB"});
    REQUIRE(a->code("retain 0") == kSuccess);
    REQUIRE(b->code("retain 0") == kSuccess);
    CHECK(a->code("fill " + std::to_string(16 * kMiB)) == kOutOfMemory);
    CHECK(b->code("alloc more " + std::to_string(64 * kMiB)) == kOutOfMemory);
    const auto held = [&](Guest& guest) { return books_of(machine.books.path(), guest.pid(), uuid).used; };
    CHECK(held(*a) + held(*b) <= 2 * kGiB);
}

TEST_CASE("devices shows the MIG instance that a program would see") {
    const Divided machine;
    const auto devices = machine.list("devices")["devices"];
    REQUIRE(devices.size() == 1);
    CHECK(devices[0]["uuid"] == machine.uuids[0]);
    CHECK(devices[0]["index"].is_null());
    CHECK(devices[0]["name"] == "NVIDIA H200 MIG 1g.18gb");
    CHECK(devices[0]["free"] == devices[0]["total"]);
}

TEST_CASE("what MIG doesn't allow is refused by name, in the launcher and in the program") {
    const Divided machine;
    const std::string both = machine.uuids[0] + "," + machine.uuids[1];
    const auto err = [&](const Words& options) {
        const Outcome outcome = machine.launch(options, {"/bin/echo", "started"});
        CHECK(outcome.exit_code == 78);
        CHECK(outcome.out.empty());
        return outcome.err;
    };
    CHECK(err({"--split", "2"}) ==
          "cuslice: --split: 2: a MIG instance can't be split: make smaller instances of its GPU\n");
    CHECK(err({"--gpus", both}).find("CUDA shows a program one MIG instance and nothing beside it") !=
          std::string::npos);
    CHECK(err({"--limit", "0=1GiB"}).find("'0' names no GPU that is here; there are 2 GPUs: MIG-") !=
          std::string::npos);
    const auto bare = [&](const std::string& setting) {
        Guest guest(Guest::route("linked"), sliced(machine.fake, machine.books.path(), {setting}));
        CHECK(guest.code("init") != kSuccess);
        guest.finish();
        return guest.err();
    };
    CHECK(bare("CUSLICE_SPLIT=2").find("a MIG instance can't be split") != std::string::npos);
    CHECK(bare("CUSLICE_GPUS=" + both).find("one MIG instance and nothing beside it") != std::string::npos);
    CHECK(bare("CUSLICE_LIMIT=0=1GiB").find("'0' names no GPU that is here") != std::string::npos);
}

TEST_CASE("on a GPU whose memory is the host's the limit holds, whatever NVML tells of processes") {
    const Folder files, books;
    const std::string keys =
        GENERATE("", "process-memory = false", "process-list = \"empty\"", "process-list = \"unsupported\"");
    const std::string allocator = GENERATE("direct", "growth");
    CAPTURE(keys, allocator);
    const std::string fake = files.write("gb10.toml", "[driver]\n" + keys + "\n[[gpu]]\nprofile = \"gb10\"\n");
    Guest guest(Guest::route("linked"),
                sliced(fake, books.path(),
                       {"CUSLICE_LIMIT=2GiB", "CUSLICE_HEADROOM=512MiB", "CUSLICE_ALLOCATOR=" + allocator}));
    retain_device(guest);
    CHECK(guest.number("total 0") == 2 * kGiB);
    CHECK(guest.code("fill " + std::to_string(kMiB)) == kOutOfMemory);
    // Without NVML's figure of the process its context isn't known, and the headroom has to have room for it.
    CHECK(books_of(books.path(), guest.pid()).peak <= 2 * kGiB);
    CHECK(books_of(books.path(), guest.pid()).peak >= 2 * kGiB - (512 + 16) * kMiB);
    CHECK(guest.code("freeall") == kSuccess);
    CHECK(guest.finish() == 0);
    // One line says what isn't counted; there is none if everything is.
    const std::string line =
        "cuslice: GPU 0 (NVIDIA GB10): NVML does not report this process's memory, and the GPU uses host memory, so "
        "contexts and modules are not counted: leave room for them with headroom, which is 512.0 MiB";
    const Words said = guest.complaints();
    CHECK(std::count(said.begin(), said.end(), line) == (keys.empty() ? 0 : 1));
}

TEST_CASE("a GPU whose memory is the host's can't be split, and the launcher and the library say so") {
    const Machine machine("gb10");
    const std::string why = "memory is the host's, whose size NVML doesn't report: it can't be split";
    CHECK(machine.refused({"--split", "2"}, 78).find(why) != std::string::npos);
    Guest guest(Guest::route("linked"), sliced("gb10", machine.books.path(), {"CUSLICE_SPLIT=2"}));
    CHECK(guest.code("init") != kSuccess);
    guest.finish();
    CHECK(guest.err().find(why) != std::string::npos);
}

TEST_CASE("jobs, groups and --gpus any work on a GPU whose memory is the host's") {
    const Machine machine("gb10");
    const auto first = machine.start({"--fraction", "0.6"});
    retain_device(*first);
    CHECK(machine.refused({"--fraction", "0.6"}, 75).find("Held: pid ") != std::string::npos);
    CHECK(machine.seen({"--gpus", "any", "--fraction", "0.3"}) == "0");
    const auto rows = machine.holders();
    REQUIRE(rows.size() == 1);
    CHECK(rows[0]["used"] == machine.held(*first, 0).used);
    CHECK(first->finish() == 0);
    const auto grouped = machine.start({"--group", "lab", "--group-limit", "4GiB"});
    REQUIRE(grouped->code("init") == kSuccess);
    CHECK(grouped->number("total 0") == 4 * kGiB);
}

}  // namespace cuslice::tests
