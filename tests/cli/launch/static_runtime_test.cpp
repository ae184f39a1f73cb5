// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/static_runtime.h"

#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {

TEST_CASE("a program with device code that needs no shared runtime carries the static one") {
    CHECK(cli::carries_static_runtime(CUSLICE_TEST_DEVICE_CODE_STATIC));
    CHECK_FALSE(cli::carries_static_runtime(CUSLICE_TEST_DEVICE_CODE_SHARED));
    CHECK_FALSE(cli::carries_static_runtime("/bin/true"));
    const Folder folder;
    CHECK_FALSE(cli::carries_static_runtime(folder.path()));
    CHECK_FALSE(cli::carries_static_runtime(folder.path() + "/nothing"));
    const std::string whole = read_text(CUSLICE_TEST_DEVICE_CODE_STATIC);
    for (const size_t size : {size_t{0}, size_t{3}, size_t{63}, size_t{64}, whole.size() / 2, whole.size() - 1})
        CHECK_FALSE(cli::carries_static_runtime(folder.write("cut", whole.substr(0, size))));
}

TEST_CASE("with a split it is said before such a program starts what it will see") {
    const Folder folder;
    const Words plain = plain_environment(folder.path());
    const std::string program = CUSLICE_TEST_DEVICE_CODE_STATIC;
    const auto said = [&](const Words& options, const std::string& which) {
        return run(launch(options, {which}), plain).err;
    };
    CHECK(said({"--fake=2xstub", "--split=0=2"}, program) ==
          "cuslice: " + program +
              ": is linked with the static CUDA runtime, which sees each split GPU as one, with the memory of its "
              "first partition. "
              "Start it with --redirect-runtime=program, or relink it with nvcc -cudart shared: "
              "NVCC_APPEND_FLAGS=\"-cudart shared\" make\n");
    CHECK(said({"--fake=2xstub"}, program).empty());
    // Where the library doesn't come at all, that is all there is to say.
    const std::string alone = CUSLICE_TEST_DEVICE_CODE_ALONE;
    CHECK(cli::carries_static_runtime(alone));
    const std::string line = said({"--fake=2xstub", "--split=0=2"}, alone);
    CHECK(line.starts_with("cuslice: " + alone + ": statically linked: "));
    CHECK(line.find('\n') == line.size() - 1);
    CHECK(said({"--fake=2xstub", "--split=0=2"}, "/bin/true").empty());
}

}  // namespace cuslice::tests
