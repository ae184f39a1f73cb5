// SPDX-License-Identifier: Apache-2.0
// Other tools' variables that cuslice does not serve.
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {
namespace {

std::string said(const Words& variables, const Words& program = {"/bin/true"}) {
    const Folder folder;
    // Without MPS, whatever runs on this machine.
    const Words plain = with(plain_environment(folder.path()), {"CUDA_MPS_PIPE_DIRECTORY=" + folder.path()});
    const Outcome outcome = run(launch({}, program), with(plain, variables));
    CHECK(outcome.exit_code == 0);
    return outcome.err;
}

const std::string kNoPolicy = ": has no effect here: cuslice limits memory, and shares out time by --share alone\n";

}  // namespace

TEST_CASE("a variable of HAMi or MPS that asks for what isn't served is named, with what there is instead") {
    CHECK(said({"CUDA_DEVICE_SM_LIMIT=50", "CUDA_DEVICE_SM_LIMIT_1=30"}).empty());
    CHECK(said({"CUDA_TASK_PRIORITY=1"}) == "cuslice: CUDA_TASK_PRIORITY: 1" + kNoPolicy);
    CHECK(said({"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25"}) ==
          "cuslice: CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: 25: has no effect here: there is no MPS server, and cuslice "
          "doesn't limit multiprocessors; --share gives a part of the GPU's time\n");
    CHECK(said({"CUDA_OVERSUBSCRIBE=true"}) ==
          "cuslice: CUDA_OVERSUBSCRIBE: true: has no effect here: cuslice does not extend a GPU into host memory; an "
          "allocation past the limit fails\n");
    CHECK(said({"CUDA_DISABLE_CONTROL=true"}).starts_with("cuslice: CUDA_DISABLE_CONTROL: true: has no effect here: "));
    CHECK(said({"ACTIVE_OOM_KILLER=true"}).starts_with("cuslice: ACTIVE_OOM_KILLER: true: has no effect here: "));
}

TEST_CASE("KAI-Scheduler's share is named where nothing limits the program by it") {
    const std::string why =
        ": has no effect here: KAI-Scheduler's share limits nothing by itself; set CUSLICE_LIMIT or CUSLICE_FRACTION\n";
    CHECK(said({"GPU_PORTION=0.5"}) == "cuslice: GPU_PORTION: 0.5" + why);
    CHECK(said({"GPU_MEMORY_LIMIT=4096"}) == "cuslice: GPU_MEMORY_LIMIT: 4096" + why);
    for (const char* limit :
         {"CUDA_DEVICE_MEMORY_LIMIT=4096m", "CUDA_DEVICE_MEMORY_LIMIT_0=4096m", "CUSLICE_LIMIT=4GiB"})
        CHECK(said({"GPU_PORTION=0.5", "GPU_MEMORY_LIMIT=4096", limit}).find("KAI") == std::string::npos);
    CHECK(said({"GPU_PORTION=1", "GPU_MEMORY_LIMIT="}).empty());
}

TEST_CASE("nothing is said of values that ask for nothing, of unknown variables, or twice") {
    CHECK(said({"CUDA_OVERSUBSCRIBE=false", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100"}).empty());
    CHECK(said({"CUDA_TASK_PRIORITYS=1", "CUDA_TASK_PRIORITY_X=1", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE_0=5"}).empty());
    CHECK(said({"CUDA_TASK_PRIORITY=1"}, launch({}, {"/bin/true"})) == "cuslice: CUDA_TASK_PRIORITY: 1" + kNoPolicy);
}

TEST_CASE("nothing is said where the tool itself is there to serve its variables") {
    const Folder folder;
    folder.write("control", "");
    CHECK(said({"CUDA_TASK_PRIORITY=1", "LD_PRELOAD=" + kLibrary + ":/nowhere/libvgpu.so"}).find("has no effect") ==
          std::string::npos);
    const Words plain = with(plain_environment(folder.path()), {"CUDA_MPS_PIPE_DIRECTORY=" + folder.path()});
    const Outcome served = run(launch({}, {"/bin/true"}), with(plain, {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25"}));
    CHECK(served.err.empty());
}

}  // namespace cuslice::tests
