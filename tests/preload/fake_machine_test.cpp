// SPDX-License-Identifier: Apache-2.0
// --fake-machine: fake GPUs that one run has for itself, or that runs share by a name.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/catch.h"
#include "tests/preload/device.h"
#include "tests/preload/machine.h"
#include "tests/soon.h"

namespace cuslice::tests {
namespace {

const Words kNew{"--fake-machine", "new"};

/// The folders of machines that are there, "new." without the letters that chance gave them.
Words machines(const Machine& machine) {
    Words names;
    for (const auto& entry : std::filesystem::directory_iterator(machine.books.path())) {
        const std::string name = entry.path().filename();
        if (name.starts_with("new."))
            names.push_back("new.");
        if (name.starts_with("machine."))
            names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

/// Starts CUDA in the guest, and returns how much memory the fake driver then reports as free.
uint64_t free_for(Guest& guest) {
    retain_device(guest);
    return guest.number("info");
}

}  // namespace

TEST_CASE("two runs that ask for a new fake machine don't see each other's memory, and others see neither") {
    const Machine machine("1xlaptop-2g");
    const auto first = machine.start(kNew);
    const uint64_t alone = free_for(*first);
    REQUIRE(first->code("alloc a " + std::to_string(1500 * kMiB)) == kSuccess);
    const auto second = machine.start({}, {"CUSLICE_FAKE_MACHINE=new"});
    CHECK(free_for(*second) == alone);
    CHECK(second->code("alloc a " + std::to_string(1500 * kMiB)) == kSuccess);
    const auto users = machine.start({});
    CHECK(free_for(*users) == alone);
    CHECK(machines(machine) == Words{"new.", "new."});
    // Without the option they are one machine.
    const auto another = machine.start({});
    CHECK(free_for(*another) < alone);
}

TEST_CASE("children share the new fake machine of their launcher, also behind another launcher") {
    const Machine machine("1xlaptop-2g");
    const Words inner{kLaunch, "run", "--"};
    const Outcome outcome =
        run(machine.launch(kNew, joined({"/bin/sh", "-c", "echo $CUSLICE_FAKE_DIR; \"$@\"", "sh"},
                                        joined(inner, {"/bin/sh", "-c", "echo $CUSLICE_FAKE_DIR"}))),
            machine.outside());
    const std::string folder = outcome.out.substr(0, outcome.out.find('\n'));
    CHECK(outcome.out == folder + "\n" + folder + "\n");
    CHECK(folder.starts_with(machine.books.path() + "/new."));
    CHECK(outcome.err.empty());
    CHECK(soon([&] { return machines(machine).empty(); }));
}

TEST_CASE("a fake machine of a file's means nothing where CUSLICE_FAKE_DIR is set, as inside another machine") {
    const Machine machine("1xlaptop-2g");
    const Folder home;
    home.write("cuslice/cuslice.toml", "fake-machine = \"new\"\n");
    const Words show = machine.launch({}, {"/bin/sh", "-c", "echo $CUSLICE_FAKE_DIR"});
    CHECK(run(show, machine.outside({"XDG_CONFIG_HOME=" + home.path()})).out == machine.books.path() + "\n");
    CHECK(run(show, machine.outside({"XDG_CONFIG_HOME=" + home.path(), "CUSLICE_FAKE_MACHINE=a"})).out ==
          machine.books.path() + "/machine.a\n");
}

TEST_CASE("a new fake machine is gone when its program has ended, however it ended") {
    const Machine machine("1xlaptop-2g");
    auto guest = machine.start(kNew);
    free_for(*guest);
    CHECK(machines(machine) == Words{"new."});
    SECTION("by itself") { guest.reset(); }
    SECTION("by kill -9") { guest->kill(SIGKILL); }
    CHECK(soon([&] { return machines(machine).empty(); }));
}

TEST_CASE("a new fake machine lasts as long as a child that its program leaves behind") {
    const Machine machine("1xlaptop-2g");
    const std::string leave = "sleep 1000 >/dev/null 2>&1 & echo $!; exit 3";
    const Outcome outcome = run(machine.launch(kNew, {"/bin/sh", "-c", leave}), machine.outside());
    CHECK(outcome.exit_code == 3);
    CHECK(machines(machine) == Words{"new."});
    // One that is abandoned is removed by the next, and this one isn't taken for one.
    const std::string abandoned = machine.books.path() + "/new.abcdef";
    std::filesystem::create_directory(abandoned);
    CHECK(run(machine.launch(kNew, {"/bin/true"}), machine.outside()).exit_code == 0);
    CHECK_FALSE(std::filesystem::exists(abandoned));
    CHECK(soon([&] { return machines(machine) == Words{"new."}; }));
    ::kill(std::stoi(outcome.out), SIGKILL);
    CHECK(soon([&] { return machines(machine).empty(); }));
}

TEST_CASE("a named fake machine is shared by all who name it, and stays; ps looks there") {
    const Machine machine("1xlaptop-2g");
    const Words lab{"--fake-machine", "lab"};
    const auto first = machine.start(joined(lab, {"--limit", "1GiB"}));
    const uint64_t alone = free_for(*first);
    const auto second = machine.start(joined(lab, {"--log", "info"}));
    CHECK(free_for(*second) < 2002 * kMiB - 2 * 300 * kMiB + 1);
    CHECK(alone > 0);
    const auto holders = [&](const Words& options) {
        const Outcome outcome =
            run(joined({kLaunch, "ps", "--json", "--fake", machine.fake}, options), machine.outside());
        REQUIRE(outcome.exit_code == 0);
        return Json::parse(outcome.out)["processes"].size();
    };
    CHECK(holders(lab) == 1);
    CHECK(holders({}) == 0);
    CHECK(machines(machine) == Words{"machine.lab"});
    // From inside, another machine is beside it and not in it.
    const Words inner = {kLaunch, "run", "--fake-machine", "other", "/bin/sh", "-c", "echo $CUSLICE_FAKE_DIR"};
    CHECK(run(machine.launch(lab, inner), machine.outside()).out == machine.books.path() + "/machine.other\n");
    CHECK(machines(machine) == Words{"machine.lab", "machine.other"});
}

TEST_CASE("a fake machine that can't be made, or that there is no launcher for, stops everything") {
    const Machine machine("1xlaptop-2g");
    const std::string file = machine.books.write("file", "");
    const Outcome refused = run(machine.launch(kNew, {"/bin/echo", "started"}), plain({"CUSLICE_FAKE_DIR=" + file}));
    CHECK(refused.exit_code == 78);
    CHECK(refused.out.empty());
    CHECK(refused.err == "cuslice: --fake-machine: new: no machine can be made in " + file +
                             ": Not a directory; CUSLICE_FAKE_DIR names another folder\n");
    // Anybody could have made it, in /dev/shm, and files are removed in it.
    const std::string link = machine.books.path() + "/link";
    std::filesystem::create_directory_symlink("/tmp", link);
    CHECK(run(machine.launch(kNew, {"/bin/echo"}), plain({"CUSLICE_FAKE_DIR=" + link})).exit_code == 78);
    const std::string other = machine.books.path() + "/other";
    std::filesystem::create_directory(other);
    if (::chown(other.c_str(), 65534, 65534) == 0)
        CHECK(run(machine.launch(kNew, {"/bin/echo"}), plain({"CUSLICE_FAKE_DIR=" + other})).exit_code == 78);
    const auto guest = std::make_unique<Guest>(
        Guest::route("linked"), sliced(machine.fake, machine.books.path(), {"CUSLICE_FAKE_MACHINE=new"}));
    CHECK(guest->code("init") != kSuccess);
    // Without fake GPUs it means nothing.
    CHECK(run({kLaunch, "run", "--fake-machine", "new", "/bin/echo", "x"}, machine.outside()).out == "x\n");
    CHECK(machines(machine).empty());
}

}  // namespace cuslice::tests
