// SPDX-License-Identifier: Apache-2.0
// The samples for people, in slices: each uses every GPU that it is shown.
#include <filesystem>
#include <string>

#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/skip.h"

namespace cuslice::tests {

TEST_CASE("towers uses as many GPUs as one is split into, in the driver API and on the runtime") {
    const std::string program = GENERATE("towers_driver", "towers_runtime12", "towers_runtime13", "towers_nvcc");
    std::string path = std::string(CUSLICE_TEST_SAMPLES) + "/" + program;
    const Machine machine("1xt4");
    Words redirect;
    if (program == "towers_nvcc") {
        // As nvcc builds it by default, with NVIDIA's runtime inside.
        path = CUSLICE_TEST_BUILD "/samples/towers_nvcc";
        redirect = {"--redirect-runtime=program"};
        if (!std::filesystem::exists(path))
            return skip("nvcc is needed to build a program with the static runtime");
    }
    INFO(program);
    const auto lines = [&](const Words& options, const Words& command) {
        const Outcome outcome = run(machine.launch(joined(redirect, options), command), machine.outside());
        INFO(outcome.err);
        CHECK(outcome.exit_code == 0);
        return split_lines(outcome.out);
    };
    CHECK(lines({"--split", "0=1GiB+2GiB+3GiB"}, {path}) ==
          Words{"Number of devices: 3", "GPU 0: Tesla T4, 1024 MiB, 4096 examples",
                "GPU 1: Tesla T4, 2048 MiB, 4096 examples", "GPU 2: Tesla T4, 3072 MiB, 4096 examples",
                "The kernels were not run, as on a fake GPU: the variables stay as they were."});
    // A process for each part, as launchers of ranks start them.
    for (const char* rank : {"0", "1", "2"}) {
        const std::string size = std::to_string(1024 * (std::stoi(rank) + 1));
        const Words shown =
            lines({"--split", "0=1GiB+2GiB+3GiB"}, {"/usr/bin/env", std::string("CUDA_VISIBLE_DEVICES=") + rank, path});
        REQUIRE(shown.size() == 3);
        CHECK(shown[0] == "Number of devices: 1");
        CHECK(shown[1] == "GPU 0: Tesla T4, " + size + " MiB, 12288 examples");
    }
    CHECK(lines({}, {path}).at(0) == "Number of devices: 1");
}

}  // namespace cuslice::tests
