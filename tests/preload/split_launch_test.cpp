// SPDX-License-Identifier: Apache-2.0
// GPUs that `cuslice run` hands to a program when they are split: which physical ones, and which virtual ones
// CUDA_VISIBLE_DEVICES names.
#include <algorithm>
#include <filesystem>

#include "config/split/identity.h"
#include "config/split/plan.h"
#include "tests/preload/machine.h"

namespace cuslice::tests {
namespace {

const std::string kVisible = "CUDA_VISIBLE_DEVICES=";

// The machine, and names of its virtual GPUs: "3a" is the first part of GPU 3.
struct SplitMachine : Machine {
    using Machine::Machine;

    std::string part(size_t gpu, unsigned number) const {
        GpuIdentity identity;
        uuids.at(gpu).copy(identity.uuid, sizeof identity.uuid - 1);
        return identity_of_part(identity, number).uuid;
    }
    // "30": the machine's indices of physical GPUs; "3a0": parts of them.
    std::string short_of(std::string list) const {
        std::string text;
        for (size_t at = 0; at < list.size();) {
            const size_t comma = std::min(list.find(',', at), list.size());
            const std::string uuid = list.substr(at, comma - at);
            std::string name = "?";
            for (size_t gpu = 0; gpu < uuids.size(); ++gpu) {
                if (uuid == uuids[gpu])
                    name = std::to_string(gpu);
                for (unsigned number = 0; number < 8; ++number)
                    if (uuid == part(gpu, number))
                        name = std::to_string(gpu) + static_cast<char>('a' + number);
            }
            text += name;
            at = comma + 1;
        }
        return text;
    }
    // GPUs that a program gets: "CHOSEN, VISIBLE".
    std::string given(const Words& command, const Words& more = {}) const {
        const Outcome outcome = run(command, outside(more));
        CHECK(outcome.err.empty());
        CHECK(outcome.exit_code == 0);
        const size_t comma = outcome.out.find(' ');
        const std::string chosen = outcome.out.substr(0, comma), visible = outcome.out.substr(comma + 1);
        const auto shown = [&](const std::string& list) { return list == "unset" ? list : short_of(list); };
        return shown(chosen) + ", " + shown(visible);
    }
    Words show() const {
        return {"/bin/sh", "-c",
                "printf '%s %s' \"${CUSLICE_VISIBLE_DEVICES-unset}\" \"${CUDA_VISIBLE_DEVICES-unset}\""};
    }
    std::string given_by(const Words& options, const Words& more = {}) const {
        return given(launch(options, show()), more);
    }
    // Inside an outer launcher; `between` is what a shell sets there.
    Words nested(const Words& outer, const std::string& between, const Words& inner) const {
        std::string line = between + " exec";
        for (const std::string& word : inner) {
            line += " '";
            for (const char letter : word)
                line += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
            line += "'";
        }
        return launch(outer, {"/bin/sh", "-c", line});
    }
    std::string given_inside(const Words& outer, const std::string& between, const Words& inner) const {
        return given(nested(outer, between, launch(inner, show())));
    }
    std::string refused_inside(const Words& outer, const Words& inner) const {
        const Outcome outcome = run(nested(outer, "", launch(inner, {"/bin/echo", "started"})), outside());
        CHECK(outcome.exit_code == 78);
        CHECK(outcome.out.empty());
        return outcome.err;
    }
};

}  // namespace

TEST_CASE("with a split the chosen GPUs are handed on apart, and CUDA_VISIBLE_DEVICES is the program's to set") {
    const SplitMachine machine;
    CHECK(machine.given_by({"--split", "0=2"}) == "0123, unset");
    CHECK(machine.given_by({"--split", "0=2", "--gpus", "3,0"}) == "30, unset");
    CHECK(machine.given_by({"--split", "0=2"}, {kVisible + "2,0"}) == "20, unset");
    CHECK(machine.given_by({"--split", "2"}, {kVisible + machine.uuids[1]}) == "1, unset");
    CHECK(machine.given_by({"--split", "2"}, {kVisible}) == ", unset");
    CHECK(machine.given_by({"--split", "2=2", "--gpus", "2"}, {kVisible + "3,2"}) == "2, unset");
    CHECK(machine.given_by({"--split", "2", "--gpus", ""}) == ", unset");
    CHECK(machine.given_by({"--split", "2", "--gpus", "any"}, {kVisible + "3"}) == "3, unset");
    CHECK(machine.given_by({}, {"CUSLICE_SPLIT=3=1,2", "CUSLICE_GPUS=1,3"}) == "13, unset");
    // Nothing is split: as ever.
    CHECK(machine.given_by({"--split", "1"}) == "unset, unset");
    CHECK(machine.given_by({"--split", "1", "--gpus", "3,2"}) == "32, 32");
    CHECK(machine.given_by({"--oversubscribe"}, {kVisible + machine.uuids[1]}) == "unset, 1");
}

TEST_CASE("with a split GPUs that nobody ordered are in CUDA's own order") {
    const SplitMachine machine("1xt4,1xa100-40g");
    CHECK(machine.given_by({"--split", "2"}) == "10, unset");
    CHECK(machine.given_by({"--split", "2"}, {"CUDA_DEVICE_ORDER=PCI_BUS_ID"}) == "01, unset");
    CHECK(machine.given_by({"--split", "2"}, {kVisible + "1"}) == "0, unset");
}

TEST_CASE("a split that the machine's GPUs don't allow is refused before the program starts") {
    const SplitMachine machine("2xlaptop-2g");
    CHECK(machine.refused({"--split", "0=1GiB+1GiB"}, 78) ==
          "cuslice: --split: 0=1GiB+1GiB: 2048.0 MiB are more than the 2002.0 MiB of GPU 0; --split 0=2 gives equal "
          "partitions, and --oversubscribe allows it\n");
    CHECK(machine.given_by({"--split", "0=1GiB+1GiB", "--oversubscribe"}) == "01, unset");
    CHECK(machine.refused({"--split", "2"}, 78, {"CUSLICE_FRACTION=0.05"}) ==
          "cuslice: --split: 2: 2 partitions of the 100.1 MiB of GPU 0 (CUSLICE_FRACTION) have 50.0 MiB each: a "
          "partition has at "
          "least 64MiB\n");
    CHECK(machine.refused({"--split", "2=2"}, 78).find("'2' names no GPU that is here; there are 2 GPUs: 0 ") !=
          std::string::npos);
    CHECK(machine.refused({"--split", "0=1GiB@0+512MiB@1,1=2"}, 78).find("1=2: GPU 1's partitions have no places") !=
          std::string::npos);
    CHECK(machine.refused({}, 78, {"CUSLICE_SPLIT=1=3GiB"}).starts_with("cuslice: CUSLICE_SPLIT: 1=3GiB: 3072.0 MiB"));
    // A split of a GPU that the program doesn't get would be nowhere.
    const std::string unseen = "cuslice: --split: 0=2: '0' names a GPU that the program doesn't see: ";
    CHECK(machine.refused({"--split", "0=2", "--gpus", "1"}, 78).starts_with(unseen + "--gpus 1 leaves it 1 "));
    CHECK(machine.refused({"--split", "0=2"}, 78, {kVisible + "1"}).starts_with(unseen + kVisible + "1 leaves it 1 "));
}

// NCCL itself says it only once every rank has loaded its model.
TEST_CASE("what starts ranks on the parts of a GPU is told what NCCL will say, before it starts") {
    const SplitMachine machine("1xlaptop-2g");
    const Folder bin;
    const auto program = [&](const std::string& name) {
        const std::string path = bin.write(name, "#!/bin/sh\necho started\n");
        std::filesystem::permissions(path, std::filesystem::perms::owner_all);
        return path;
    };
    const auto said = [&](const Words& options, const Words& words, const Words& more = {}) {
        const Outcome outcome = run(machine.launch(options, words), machine.outside(more));
        CHECK(outcome.out == "started\n");
        return outcome.err;
    };
    const auto line = [](const std::string& launcher) {
        return "cuslice: " + launcher +
               ": NCCL sees the physical GPU in every rank, and refuses several ranks on one. Use the backend gloo, or "
               "with NCCL 2.30 or newer set NCCL_MULTI_RANK_GPU_ENABLE=1\n";
    };
    const Words split{"--split", "0=2"};
    for (const char* name : {"torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "orterun", "horovodrun"}) {
        const Words words{program(name), "-n", "2", "./a.out"};
        CHECK(said(split, words) == line(name));
        CHECK(said({"--limit", "1GiB"}, words).empty());
    }
    const std::string python = program("python3.11");
    CHECK(said(split, {python, "-u", "-m", "torch.distributed.run", "train.py"}) ==
          line("python -m torch.distributed.run"));
    CHECK(said(split, {python, "-m", "torch.distributed.launch"}) == line("python -m torch.distributed.launch"));
    // Programs of their own, and the arguments of one.
    CHECK(said(split, {python, "-m", "pytest"}).empty());
    CHECK(said(split, {python, "train.py", "-m", "torch.distributed.run"}).empty());
    CHECK(said(split, {python, "-m"}).empty());
    CHECK(said(split, {program("my-mpirun")}).empty());
    // No hint where NCCL is already told to allow several ranks on one GPU.
    const Words torchrun{program("torchrun")};
    CHECK(said(split, torchrun, {"NCCL_MULTI_RANK_GPU_ENABLE=1"}).empty());
    CHECK(said(split, torchrun, {"NCCL_MULTI_RANK_GPU_ENABLE=0"}) == line("torchrun"));
    // NCCL sees the parts then.
    CHECK(said(joined(split, {"--redirect-runtime=all"}), torchrun).empty());
    CHECK(said(joined(split, {"--redirect-runtime=program"}), torchrun) == line("torchrun"));
}

// No GPU has shown yet that it works, so it is the user's to set.
TEST_CASE("with a split, NCCL_MULTI_RANK_GPU_ENABLE stays as it was") {
    const SplitMachine machine("1xlaptop-2g");
    const Words show{"/bin/sh", "-c", "echo ${NCCL_MULTI_RANK_GPU_ENABLE-unset}"};
    const Words launch = machine.launch({"--split", "0=2"}, show);
    CHECK(run(launch, machine.outside()).out == "unset\n");
    CHECK(run(launch, machine.outside({"NCCL_MULTI_RANK_GPU_ENABLE=1"})).out == "1\n");
}

TEST_CASE("any is a GPU that can be split so") {
    const SplitMachine machine("1xlaptop-2g,1xt4,1xlaptop-2g");
    CHECK(machine.given_by({"--gpus", "any", "--split", "2GiB+2GiB"}) == "1, unset");
    CHECK(
        machine.refused({"--gpus", "any", "--split", "20GiB+2GiB"}, 78).starts_with("cuslice: --split: 20GiB+2GiB: "));
}

TEST_CASE("the slice is reserved as a whole, as without a split, and the job is there to share the parts' limits") {
    const SplitMachine machine("2xlaptop-2g");
    const Words hold{"/bin/sh", "-c", "echo \"$CUSLICE_JOB\"; read line"};
    const auto job = [&](const Words& options) {
        const Outcome outcome =
            run(machine.launch(options, {"/bin/sh", "-c", "echo ${CUSLICE_JOB+set}"}), machine.outside());
        return outcome.out;
    };
    CHECK(job({}) == "\n");
    CHECK(job({"--split", "0=2"}) == "set\n");
    CHECK(job({"--split", "0=2", "--per-process"}) == "\n");
    auto guest = machine.start({"--gpus", "0", "--fraction", "0.6", "--split", "2"}, {}, {"/bin/cat"});
    REQUIRE(guest->ask("here") == "here");  // it has its slice, or it would not run
    const std::string refused = machine.refused({"--gpus", "0", "--fraction", "0.6"}, 75);
    INFO(refused);
    CHECK(refused.starts_with("cuslice: GPU 0: 1201.2 MiB requested, 800.8 MiB left. Held: pid "));
}

TEST_CASE("where there is no driver to ask nothing is known, and nothing changed") {
    const SplitMachine machine;
    const Words command = {kLaunch, "run", "--driver", "/dev/null", "--split", "0=99GiB+99GiB", "--"};
    CHECK(machine.given(joined(command, machine.show())) == "unset, unset");
    CHECK(machine.given(joined(command, machine.show()), {kVisible + machine.uuids[2]}) == "unset, 2");
}

TEST_CASE("a nested run keeps what an outer one has split and what was selected of it") {
    const SplitMachine machine;
    const Words outer{"--gpus", "3,2", "--split", "3=2"};  // 3a, 3b, 2
    CHECK(machine.given_inside(outer, "", {}) == "32, unset");
    CHECK(machine.given_inside(outer, "CUDA_VISIBLE_DEVICES=1,2", {}) == "32, 3b2");
    CHECK(machine.given_inside(outer, "CUDA_VISIBLE_DEVICES=" + machine.part(3, 1), {}) == "32, 3b");
    CHECK(machine.given_inside(outer, "CUDA_VISIBLE_DEVICES=9", {}) == "32, ");
    CHECK(machine.given_inside(outer, "CUDA_VISIBLE_DEVICES=", {}) == "32, ");
    CHECK(machine.given_inside(outer, "CUDA_VISIBLE_DEVICES=1,2,0", {"--limit", "1500MiB"}) == "32, 3b23a");
    // Within what is visible, and what was selected stays so.
    CHECK(machine.given_inside(outer, "", {"--gpus", "2,3"}) == "23, unset");
    CHECK(machine.given_inside(outer, "CUDA_VISIBLE_DEVICES=1,2", {"--gpus", "3"}) == "3, 3b");
    CHECK(machine.given_inside(outer, "CUDA_VISIBLE_DEVICES=1,2", {"--gpus", "2,3"}) == "23, 3b2");
    CHECK(machine.given_inside(outer, "CUDA_VISIBLE_DEVICES=0", {"--gpus", "any"}) == "3, 3a");
    CHECK(machine.refused_inside(outer, {"--gpus", "1"})
              .find("'1' is not among the GPUs that are left to choose from: CUDA_VISIBLE_DEVICES allows 3 GPU-") !=
          std::string::npos);
    const Outcome outside =
        run(machine.nested(outer, "CUDA_VISIBLE_DEVICES=0", machine.launch({"--gpus", "2"}, {"/bin/echo", "started"})),
            machine.outside());
    CHECK(outside.exit_code == 78);
    CHECK(outside.err.find("'2' is not among the GPUs") != std::string::npos);
    // Three deep.
    const Words third = machine.nested({}, "CUDA_VISIBLE_DEVICES=1", machine.launch({}, machine.show()));
    CHECK(machine.given(machine.nested(outer, "CUDA_VISIBLE_DEVICES=2,1", third)) == "32, 3b");
}

TEST_CASE("a nested run splits what is whole, and no part again") {
    const SplitMachine machine;
    const Words outer{"--gpus", "3,2", "--split", "3=2"};
    CHECK(machine.given_inside(outer, "", {"--split", "2=2"}) == "32, unset");
    CHECK(machine.given_inside(outer, "CUDA_VISIBLE_DEVICES=1,2", {"--split", "2=2"}) == "32, 3b2a2b");
    CHECK(machine.given_inside(outer, "CUDA_VISIBLE_DEVICES=1", {"--split", "3=2"}) == "32, 3b");
    CHECK(machine.refused_inside(outer, {"--split", "3=4"}) ==
          "cuslice: --split: 3=4: GPU 3 " + machine.uuids[3] +
              " is split already by an outer cuslice run (3=2 by --split), and a partition can't be split again: leave "
              "it "
              "out here, or say it there\n");
    CHECK(machine.refused_inside(outer, {"--split", "1"}).starts_with("cuslice: --split: 1: GPU 3 "));
    CHECK(machine.given_inside(outer, "CUDA_VISIBLE_DEVICES=2", {"--split", "2"}) == "32, 2a2b");
    // Parts by size no longer fit in a smaller slice.
    CHECK(machine.refused_inside({"--split", "0=1GiB+512MiB"}, {"--limit", "1GiB"})
              .starts_with(
                  "cuslice: --split: 0=1GiB+512MiB: 1536.0 MiB are more than the 1024.0 MiB of GPU 0 (--limit)"));
    // Chosen without a split outside, split inside.
    CHECK(machine.given_inside({"--gpus", "3,2"}, "", {"--split", "3=2"}) == "32, unset");
    CHECK(machine.given_inside({"--gpus", "3,2"}, "CUDA_VISIBLE_DEVICES=1", {"--split", "2=2"}) == "2, unset");
    // A file that both read.
    const Folder here;
    here.write("cuslice.toml", "[gpu.3]\nsplit = [\"1GiB\", \"rest\"]\n");
    const Words inner = machine.launch({}, machine.show());
    const Outcome outcome = run(machine.nested({}, "CUDA_VISIBLE_DEVICES=4", inner), machine.outside(), here.path());
    CHECK(outcome.err.empty());
    CHECK(outcome.out.ends_with(" " + machine.part(3, 1)));
}

}  // namespace cuslice::tests
