// SPDX-License-Identifier: Apache-2.0
// Choosing and reordering GPUs. The books of the GPUs, and UUIDs as the driver tells them, say which one it is.
#include "tests/preload/device.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"

namespace cuslice::tests {
namespace {

const std::string kVisible = "CUDA_VISIBLE_DEVICES=";
const std::string kForm =
    " names no GPU: use its index (0, or 0-2 for three), the start of its UUID (GPU-5f) or its PCI id (0000:81:00.0), "
    "divided by commas; or any for one that has room, all, or none\n";

std::string number(uint64_t count) { return std::to_string(count); }

}  // namespace

TEST_CASE("a program sees the GPUs that gpus names, in its order, and NVML all of them in their own") {
    const Machine machine;
    CHECK(machine.seen({"--gpus", "3,2"}) == "32");
    CHECK(machine.seen({"--gpus", machine.uuids[1].substr(0, 12) + ",0"}) == "10");
    CHECK(machine.seen({}, {"CUSLICE_GPUS=2"}) == "2");
    CHECK(machine.seen({"--gpus", "1"}, {"CUSLICE_GPUS=2"}) == "1");
    CHECK(machine.seen({"--gpus", ""}) == failed_init(kNoDevice));
    auto guest = machine.start({"--gpus", "3,2"});
    REQUIRE(guest->code("init") == kSuccess);
    REQUIRE(guest->code("nvml") == kSuccess);
    CHECK(guest->code("nvmlmemory 3") == kSuccess);
    CHECK(guest->ask("getenv CUDA_VISIBLE_DEVICES") == "=" + machine.uuids[3] + "," + machine.uuids[2]);
    CHECK(guest->finish() == 0);
    CHECK(guest->err().empty());
}

TEST_CASE("a file in the current folder chooses too") {
    const Machine machine;
    const Folder here;
    here.write("cuslice.toml", "gpus = \"2,0\"\n");
    const Outcome outcome =
        run(machine.launch({}, {"/bin/sh", "-c", "echo $CUDA_VISIBLE_DEVICES"}), machine.outside(), here.path());
    CHECK(outcome.out == machine.uuids[2] + "," + machine.uuids[0] + "\n");
}

TEST_CASE("indices are nvidia-smi's, whatever CUDA's own order is") {
    const Machine machine("1xt4,1xa100-40g,1xt4");
    CHECK(machine.seen({}) == "102");
    for (const char* order : {"FASTEST_FIRST", "PCI_BUS_ID"}) {
        const std::string set = std::string("CUDA_DEVICE_ORDER=") + order;
        CHECK(machine.seen({"--gpus", "0,1"}, {set}) == "01");
        CHECK(machine.seen({"--gpus", "2"}, {set}) == "2");
    }
    // Slurm's list counts in CUDA's order: device 0 is the fast one.
    CHECK(machine.seen({"--gpus", "1"}, {kVisible + "0"}) == "1");
    CHECK(machine.refused({"--gpus", "0"}, 78, {kVisible + "0"}).find("allows 1 GPU-") != std::string::npos);
    CHECK(machine.seen({"--gpus", "0"}, {kVisible + "0", "CUDA_DEVICE_ORDER=PCI_BUS_ID"}) == "0");
}

TEST_CASE("a limit belongs to the physical GPU, whatever its place in the list") {
    const Machine machine;
    const Words options{"--gpus", "3,2", "--limit", "3=1GiB,2=1500MiB", "--headroom", "16MiB"};
    auto guest = machine.start(options);
    REQUIRE(guest->code("init") == kSuccess);
    CHECK(guest->number("total 0") == kGiB);
    CHECK(guest->number("total 1") == 1500 * kMiB);
    const auto fill = [&](const std::string& place, size_t index, uint64_t limit) {
        REQUIRE(guest->code("retain " + place) == kSuccess);
        CHECK(guest->code("fill " + number(16 * kMiB)) == kOutOfMemory);
        const uint64_t used = machine.held(*guest, index).used;
        CHECK(used <= limit);
        CHECK(used + 32 * kMiB > limit);
    };
    fill("0", 3, kGiB);
    fill("1", 2, 1500 * kMiB);
    CHECK_FALSE(machine.held(*guest, 0).known);
    CHECK_FALSE(machine.held(*guest, 1).known);
}

TEST_CASE("the slice is reserved at once on every GPU that gpus names") {
    const Machine machine;
    auto guest = machine.start({"--gpus", "3,2", "--fraction", "0.6"});
    REQUIRE(guest->code("init") == kSuccess);
    CHECK(machine.holders().size() == 2);
    const std::string refused = machine.refused({"--gpus", "1,2", "--fraction", "0.6"}, 75);
    CHECK(refused.find("cuslice: GPU 2: 1201.2 MiB requested, 800.8 MiB left. Held: pid ") == 0);
    CHECK(machine.holders().size() == 2);  // GPU 1 is not kept by the job that did not start
    CHECK(run(machine.launch({"--gpus", "1,0", "--fraction", "0.6"}, {"/bin/true"}), machine.outside()).exit_code == 0);
    CHECK(run(machine.launch({"--gpus", "2", "--fraction", "0.4"}, {"/bin/true"}), machine.outside()).exit_code == 0);
    // Where only one of them is limited, only that is reserved.
    auto one = machine.start({"--gpus", "0,1", "--limit", "1=1GiB"});
    REQUIRE(one->code("init") == kSuccess);
    CHECK(machine.holders().size() == 3);
    REQUIRE(guest->code("retain 1") == kSuccess);
    CHECK(machine.held(*guest, 2).used > 0);
    for (const auto& holder : machine.holders())
        if (holder["gpu"] == machine.uuids[2])
            CHECK(holder["used"] == machine.held(*guest, 2).used);
}

TEST_CASE("what the program sets itself counts in the list, and its children see the same") {
    const Machine machine;
    const auto with_own = [&](const std::string& own) {
        auto guest = machine.start({"--gpus", "3,2"});
        REQUIRE(guest->code(own) == kSuccess);
        const std::string seen = machine.seen(*guest);
        // A child of the program: what it inherits means the same once more.
        Guest child(
            machine.launch({"--gpus", "3,2"}, {"/bin/sh", "-c",
                                               (own == "unsetenv CUDA_VISIBLE_DEVICES"
                                                    ? "unset CUDA_VISIBLE_DEVICES"
                                                    : "export CUDA_VISIBLE_DEVICES=" + own.substr(own.rfind(' ') + 1)) +
                                                   "; exec " + kGuests + "/guest_linked linked"}),
            machine.outside());
        CHECK(machine.seen(child) == seen);
        return seen;
    };
    CHECK(with_own("setenv CUDA_VISIBLE_DEVICES 0") == "3");
    CHECK(with_own("setenv CUDA_VISIBLE_DEVICES 1") == "2");
    CHECK(with_own("setenv CUDA_VISIBLE_DEVICES 1,0") == "23");
    CHECK(with_own("setenv CUDA_VISIBLE_DEVICES 0,3,1") == "3");
    CHECK(with_own("setenv CUDA_VISIBLE_DEVICES 3") == failed_init(kNoDevice));
    CHECK(with_own("setenv CUDA_VISIBLE_DEVICES 0,0") == failed_init(kNoDevice));
    CHECK(with_own("setenv CUDA_VISIBLE_DEVICES -1") == failed_init(kNoDevice));
    CHECK(with_own("setenv CUDA_VISIBLE_DEVICES ") == failed_init(kNoDevice));
    CHECK(with_own("unsetenv CUDA_VISIBLE_DEVICES") == "32");
    CHECK(with_own("setenv CUDA_VISIBLE_DEVICES " + machine.uuids[2]) == "2");
}

TEST_CASE("the variable is written only where the program changed it, and says UUIDs then") {
    const Machine machine;
    auto guest = machine.start({"--gpus", "3,2"});
    REQUIRE(guest->code("setenv CUDA_VISIBLE_DEVICES 0") == 0);
    CHECK(guest->ask("getenv CUDA_VISIBLE_DEVICES") == "=0");
    REQUIRE(guest->code("init") == kSuccess);
    CHECK(guest->ask("getenv CUDA_VISIBLE_DEVICES") == "=" + machine.uuids[3]);
    // The driver has read it: what comes later changes nothing, and is left alone.
    REQUIRE(guest->code("setenv CUDA_VISIBLE_DEVICES 1") == 0);
    CHECK(guest->code("init") == kSuccess);
    CHECK(guest->ask("getenv CUDA_VISIBLE_DEVICES") == "=1");
    CHECK(machine.seen({}, {kVisible + "1,0"}) == "10");
    auto untouched = machine.start({}, {kVisible + "1,0"});
    REQUIRE(untouched->code("init") == kSuccess);
    CHECK(untouched->ask("getenv CUDA_VISIBLE_DEVICES") == "=1,0");
}

TEST_CASE("the list outside is respected, and a GPU that it leaves out is an error") {
    const Machine machine;
    CHECK(machine.seen({"--gpus", "3,2"}, {kVisible + "2,3"}) == "32");
    CHECK(machine.seen({"--gpus", "2"}, {kVisible + machine.uuids[3] + "," + machine.uuids[2]}) == "2");
    CHECK(machine.refused({"--gpus", "3,1"}, 78, {kVisible + "2,3"}) ==
          "cuslice: --gpus: 3,1: '1' is not among the GPUs that are left to choose from: CUDA_VISIBLE_DEVICES=2,3 "
          "allows 2 " +
              machine.uuids[2] + ", 3 " + machine.uuids[3] + "\n");
    CHECK(machine.refused({}, 78, {kVisible, "CUSLICE_GPUS=1"}) ==
          "cuslice: CUSLICE_GPUS: 1: '1' is not among the GPUs that are left to choose from: "
          "CUDA_VISIBLE_DEVICES=\"\" allows none\n");
}

TEST_CASE("what names no GPU, or not one, is refused before the program starts") {
    const Machine machine("2xlaptop-2g");
    const std::string both = "0 " + machine.uuids[0] + ", 1 " + machine.uuids[1] + "\n";
    CHECK(machine.refused({"--gpus", "2"}, 78) ==
          "cuslice: --gpus: 2: '2' names no GPU that is here; there are 2 GPUs: " + both);
    CHECK(machine.refused({"--gpus", "0,GPU-ffffff"}, 78) ==
          "cuslice: --gpus: 0,GPU-ffffff: 'GPU-ffffff' names no GPU that is here; there are 2 GPUs: " + both);
    // No fake GPU is divided, so neither driver nor NVML knows a MIG device.
    CHECK(machine.refused({"--gpus", "MIG-0c1f"}, 78) ==
          "cuslice: --gpus: MIG-0c1f: 'MIG-0c1f' names no GPU that is here; there are 2 GPUs: " + both);
    CHECK(machine.refused({"--gpus", "1," + machine.uuids[1]}, 78) ==
          "cuslice: --gpus: 1," + machine.uuids[1] + ": '" + machine.uuids[1] + "' and '1' are the same GPU " +
              machine.uuids[1] + "; name each GPU once\n");
    CHECK(machine.refused({"--gpus", "every"}, 78) == "cuslice: --gpus: every: 'every'" + kForm);
}

TEST_CASE("a nested run chooses within the outer one's list, and without a choice of its own keeps it") {
    const Machine machine;
    const auto nested = [&](const std::string& between, const Words& inner) {
        const Words program = machine.launch(inner, Guest::route("linked"));
        std::string line = between + " exec";
        for (const std::string& word : program)
            line += " '" + word + "'";
        auto guest = machine.start({"--gpus", "3,2,0"}, {}, {"/bin/sh", "-c", line});
        return machine.seen(*guest);
    };
    CHECK(nested("", {}) == "320");
    CHECK(nested("", {"--gpus", "0,3"}) == "03");
    CHECK(nested("CUDA_VISIBLE_DEVICES=1", {}) == "2");
    CHECK(nested("CUDA_VISIBLE_DEVICES=1,0", {"--gpus", "3"}) == "3");
    CHECK(nested("CUSLICE_GPUS=2", {"--gpus", "any"}).size() == 1);
    const Outcome refused =
        run(machine.launch({"--gpus", "3,2"}, machine.launch({"--gpus", "1"}, {"/bin/true"})), machine.outside());
    CHECK(refused.exit_code == 78);
    CHECK(refused.err.find(
              "'1' is not among the GPUs that are left to choose from: CUDA_VISIBLE_DEVICES allows 3 GPU-") !=
          std::string::npos);
    // A file that both launchers read has been applied by the outer one.
    const Folder here;
    SECTION("the current folder's") { here.write("cuslice.toml", "gpus = \"3,2\"\n"); }
    SECTION("the user's") { here.write("cuslice/cuslice.toml", "gpus = \"3,2\"\n"); }
    const Words inner = machine.launch({}, {"/bin/sh", "-c", "echo $CUDA_VISIBLE_DEVICES"});
    std::string line = "CUDA_VISIBLE_DEVICES=0 exec";
    for (const std::string& word : inner)
        line += " '" + word + "'";
    const Outcome again = run(machine.launch({}, {"/bin/sh", "-c", line}),
                              machine.outside({"XDG_CONFIG_HOME=" + here.path()}), here.path());
    CHECK(again.err.empty());
    CHECK(again.out == machine.uuids[3] + "\n");
}

TEST_CASE("under LD_PRELOAD alone the library resolves gpus itself, and fails closed") {
    const Machine machine;
    const auto bare = [&](const Words& settings) {
        return std::make_unique<Guest>(Guest::route("linked"), sliced(machine.fake, machine.books.path(), settings));
    };
    const auto seen = [&](const Words& settings) { return machine.seen(*bare(settings)); };
    CHECK(seen({"CUSLICE_GPUS=3,2"}) == "32");
    CHECK(seen({"CUSLICE_GPUS=" + machine.uuids[1]}) == "1");
    CHECK(seen({"CUSLICE_GPUS="}) == failed_init(kNoDevice));
    CHECK(seen({"CUSLICE_GPUS=2,3", kVisible + "3,2"}) == "23");
    CHECK(seen({"CUSLICE_GPUS=3,2", kVisible + machine.uuids[3] + "," + machine.uuids[2]}) == "32");
    auto wrong = bare({"CUSLICE_GPUS=3,4"});
    CHECK(machine.seen(*wrong) == failed_init(kInvalidValue));
    CHECK(wrong->code("init") == kInvalidValue);
    CHECK(wrong->code("count") == kNotInitialized);
    CHECK(wrong->code("retain 0") == kNotInitialized);
    REQUIRE(wrong->complaints().size() == 1);
    CHECK(wrong->complaints()[0].find(
              "cuslice: CUSLICE_GPUS: 3,4: '4' names no GPU that is here; there are 4 GPUs: ") == 0);
    auto outside = bare({"CUSLICE_GPUS=3", kVisible + "0,1"});
    CHECK(machine.seen(*outside) == failed_init(kInvalidValue));
    CHECK(outside->complaints().at(0).find("CUDA_VISIBLE_DEVICES=0,1 allows 0 GPU-") != std::string::npos);
    auto mig = bare({"CUSLICE_GPUS=MIG-0c1f"});
    CHECK(machine.seen(*mig) == failed_init(kInvalidValue));
    // A limit goes on naming the machine's GPUs.
    auto limited = bare({"CUSLICE_GPUS=3,2", "CUSLICE_LIMIT=3=1GiB"});
    REQUIRE(limited->code("init") == kSuccess);
    CHECK(limited->number("total 0") == kGiB);
    CHECK(limited->number("total 1") == 2002 * kMiB);
}

TEST_CASE("under LD_PRELOAD alone numbers in an order that only the driver knows are an error") {
    const Machine machine("1xt4,1xa100-40g");
    const auto bare = [&](const Words& settings) {
        return std::make_unique<Guest>(Guest::route("linked"), sliced(machine.fake, machine.books.path(), settings));
    };
    auto unknown = bare({"CUSLICE_GPUS=1", kVisible + "0"});
    CHECK(machine.seen(*unknown) == failed_init(kInvalidValue));
    CHECK(unknown->complaints().at(0) ==
          "cuslice: CUDA_VISIBLE_DEVICES: 0: CUDA's order of GPUs of several models is not known here, which gpus has "
          "to stay within: set CUDA_DEVICE_ORDER=PCI_BUS_ID, or write UUIDs; no GPU will be used");
    CHECK(machine.seen(*bare({"CUSLICE_GPUS=1", kVisible + "1", "CUDA_DEVICE_ORDER=PCI_BUS_ID"})) == "1");
    CHECK(machine.seen(*bare({"CUSLICE_GPUS=1"})) == "1");
}

TEST_CASE("where the launcher finds no driver the library resolves gpus") {
    const Machine machine;
    // A login node: no driver there, and one where the program runs.
    const Outcome outcome = run({kLaunch, "run", "--driver", "/dev/null", "--gpus", "3,2", "--", "/bin/sh", "-c",
                                 "echo $CUDA_VISIBLE_DEVICES; echo \"$CUSLICE_SETTINGS\""},
                                machine.outside());
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out.find("\n1;") == 0);
    CHECK(outcome.out.find(";flag.0 gpus * 3,2 --gpus") != std::string::npos);
    // Inside another run the outer list is no answer to the inner question.
    const Outcome nested = run({kLaunch, "run", "--driver", "/dev/null", "--gpus", "2", "--", "/bin/sh", "-c",
                                "echo $CUDA_VISIBLE_DEVICES ${CUSLICE_VISIBLE_DEVICES-unset}"},
                               machine.outside({kVisible + "1", "CUSLICE_VISIBLE_DEVICES=GPU-12,GPU-13"}));
    CHECK(nested.out == "GPU-13 unset\n");
    Guest there(Guest::route("linked"),
                sliced(machine.fake, machine.books.path(), {"CUSLICE_SETTINGS=1;flag.0 gpus * 3,2 --gpus"}));
    CHECK(machine.seen(there) == "32");
}

TEST_CASE("devices shows the GPUs that are visible, in their order") {
    const Machine machine;
    const auto indices = [&](const Words& options, const Words& more = {}) {
        const Outcome outcome =
            run(joined({kLaunch, "devices", "--json", "--fake", machine.fake}, options), machine.outside(more));
        std::string text;
        const auto answer = Json::parse(outcome.out);
        for (const auto& device : answer["devices"])
            text += std::to_string(device["index"].get<int>());
        return text;
    };
    CHECK(indices({"--gpus", "3,2"}) == "32");
    CHECK(indices({}, {"CUSLICE_GPUS=1"}) == "1");
    CHECK(indices({"--gpus", ""}).empty());
    CHECK(indices({"--gpus", "any"}) == "0");
    CHECK(run({kLaunch, "devices", "--fake", machine.fake, "--gpus", "7"}, machine.outside()).exit_code == 78);
}

TEST_CASE("without the launcher a limit for a GPU that the program doesn't see is no limit, and a line says so") {
    const Machine machine("2xlaptop-2g");
    const auto said = [&](const Words& variables) {
        Guest guest(Guest::route("linked"),
                    sliced(machine.fake, machine.books.path(), joined({"CUDA_VISIBLE_DEVICES=1"}, variables)));
        retain_device(guest);
        CHECK(guest.finish() == 0);
        return guest.complaints();
    };
    const Words lines = said({"CUSLICE_LIMIT=0=1GiB"});
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].starts_with("cuslice: GPU 1 ("));
    CHECK(lines[0].ends_with("): no limit; CUSLICE_LIMIT sets one for '0', a GPU that this program doesn't see"));
    CHECK(said({"CUDA_DEVICE_MEMORY_LIMIT_0=1g"}).size() == 1);
    // A rank of several, whose own GPU has a limit.
    CHECK(said({"CUSLICE_LIMIT=0=1GiB,1=1GiB"}).empty());
    CHECK(said({"CUSLICE_LIMIT=1GiB,0=512MiB"}).empty());
}

}  // namespace cuslice::tests
