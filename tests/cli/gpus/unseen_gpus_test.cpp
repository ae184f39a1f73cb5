// SPDX-License-Identifier: Apache-2.0
// Settings for a GPU that the program won't see.
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {
namespace {

const std::string kFirst = "GPU-50505050-5050-5050-5050-505050505050";
const std::string kSecond = "GPU-51515151-5151-5151-5151-515151515151";
const Words kStarted = {"/bin/echo", "started"};

struct TwoGpus {
    Outcome run(const Words& options, const Words& more = {}, const Words& program = kStarted) const {
        const Words order = with(plain_environment(folder.path()), {"CUDA_DEVICE_ORDER=PCI_BUS_ID"});
        return tests::run(launch(with({"--fake=2xstub"}, options), program), with(order, more), folder.path());
    }
    std::string refused(const Words& options, const Words& more = {}) const {
        const Outcome outcome = run(options, more);
        CHECK(outcome.exit_code == 78);
        CHECK(outcome.out.empty());
        return outcome.err;
    }
    void starts(const Words& options, const Words& more = {}) const {
        const Outcome outcome = run(options, more);
        CHECK(outcome.out == "started\n");
        CHECK(outcome.err.empty());
    }
    Folder folder;
};

}  // namespace

TEST_CASE("an option or a variable for a GPU that the program doesn't see is refused, with the GPU that was meant") {
    const TwoGpus machine;
    const std::string visible = "CUDA_VISIBLE_DEVICES=1";
    const std::string second = " leaves it 1 " + kSecond + "; the program's GPU 0 is 1 here: did you mean 1=";
    const std::string unseen = ": '0' names a GPU that the program doesn't see: ";
    CHECK(machine.refused({"--limit=0=1GiB"}, {visible}) ==
          "cuslice: --limit: 0=1GiB" + unseen + visible + second + "1GiB\n");
    CHECK(machine.refused({"--limit=0=1GiB", "--gpus=1"}) ==
          "cuslice: --limit: 0=1GiB" + unseen + "--gpus 1" + second + "1GiB\n");
    CHECK(machine.refused({"--split=0=4", "--gpus=1"}) ==
          "cuslice: --split: 0=4" + unseen + "--gpus 1" + second + "4\n");
    CHECK(machine.refused({"--fraction=0=0.5"}, {visible}) ==
          "cuslice: --fraction: 0=0.5" + unseen + visible + second + "0.5\n");
    CHECK(machine.refused({}, {visible, "CUSLICE_LIMIT=0=1GiB"}) ==
          "cuslice: CUSLICE_LIMIT: 0=1GiB" + unseen + visible + second + "1GiB\n");
    CHECK(machine.refused({"--limit=1=1GiB", "--gpus=0"}) ==
          "cuslice: --limit: 1=1GiB: '1' names a GPU that the program doesn't see: --gpus 0 leaves it 0 " + kFirst +
              "\n");
    CHECK(machine.refused({"--limit=GPU-50=1GiB"}, {"CUDA_VISIBLE_DEVICES="}) ==
          "cuslice: --limit: GPU-50=1GiB: 'GPU-50' names a GPU that the program doesn't see: CUDA_VISIBLE_DEVICES=\"\" "
          "leaves it none\n");
    CHECK(machine.refused({"--limit=0=1GiB", "--gpus="}) ==
          "cuslice: --limit: 0=1GiB" + unseen + "--gpus \"\" leaves it none\n");

    machine.starts({"--limit=1=1GiB"}, {visible});
    machine.starts({"--limit=1=1GiB,0=2GiB"}, {"CUDA_VISIBLE_DEVICES=1,0"});
    machine.starts({"--limit=1GiB,0=2GiB"});
}

TEST_CASE("what is shown of devices is refused for the same reason") {
    const TwoGpus machine;
    const Words words = {kLauncher, "devices", "--fake=2xstub", "--gpus=1", "--limit=0=1GiB"};
    const Outcome outcome = run(words, plain_environment(machine.folder.path()));
    CHECK(outcome.exit_code == 78);
    CHECK(outcome.err.find("'0' names a GPU that the program doesn't see: --gpus 1 leaves it 1 ") != std::string::npos);
}

TEST_CASE("a file names all GPUs of a machine: those that a program doesn't see are passed over, with a line at info") {
    const TwoGpus machine;
    const std::string file = machine.folder.write("cuslice.toml", "[gpu.0]\nlimit = \"1GiB\"\n");
    const Words visible = {"CUDA_VISIBLE_DEVICES=1"};
    machine.starts({}, visible);
    const Outcome told = machine.run({"--log=info"}, visible);
    CHECK(told.out == "started\n");
    CHECK(
        told.err.starts_with("cuslice: " + file + ":2:1: gpu.0.limit: 1GiB: '0' names a GPU that the program doesn't"));
}

TEST_CASE("another tool's variable for a GPU that the program doesn't see is no limit, and a line says so") {
    const TwoGpus machine;
    const Outcome told = machine.run({}, {"CUDA_VISIBLE_DEVICES=1", "CUDA_DEVICE_MEMORY_LIMIT_0=1g"});
    CHECK(told.out == "started\n");
    CHECK(told.err ==
          "cuslice: CUDA_DEVICE_MEMORY_LIMIT_0: 0=1g: '0' names a GPU that the program doesn't see: "
          "CUDA_VISIBLE_DEVICES=1 leaves it 1 " +
              kSecond + "; the program's GPU 0 is 1 here: did you mean 1=1g\n");
    CHECK(machine.run({}, {"CUDA_VISIBLE_DEVICES=1", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G"})
              .err.starts_with(
                  "cuslice: CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: 0=1G: '0' names a GPU that the program doesn't"));
    // They are set for more GPUs than there are.
    machine.starts({}, {"CUDA_VISIBLE_DEVICES=1", "CUDA_DEVICE_MEMORY_LIMIT_1=1g", "CUDA_DEVICE_MEMORY_LIMIT_7=1g"});
}

TEST_CASE("what an outer launcher was told is for its program's GPUs, also where an inner one leaves fewer") {
    const TwoGpus machine;
    const Outcome inner = machine.run({"--limit=0=1GiB,1=2GiB"}, {}, launch({"--gpus=1"}, kStarted));
    CHECK(inner.out == "started\n");
    CHECK(inner.err.empty());
}

}  // namespace cuslice::tests
