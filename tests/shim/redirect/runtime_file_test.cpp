// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/runtime_file.h"

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/catch.h"

namespace cuslice {

namespace {

const std::string kFake = std::string(CUSLICE_TEST_FAKE_FOLDER) + "/libcudart.so.13";
const std::string kOther = CUSLICE_TEST_LATE_RUNTIME;

bool has(const SharedRuntime& runtime, const char* name) { return runtime.find(name, runtime.argument) != nullptr; }

// A file in memory.
struct Written {
    Written() : descriptor(memfd_create("runtime", MFD_CLOEXEC)) { REQUIRE(descriptor >= 0); }
    ~Written() { close(descriptor); }
    Written(const Written&) = delete;
    Written& operator=(const Written&) = delete;
    const char* with(const std::string& bytes) const {
        REQUIRE(ftruncate(descriptor, 0) == 0);
        REQUIRE(pwrite(descriptor, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
        return path.c_str();
    }
    int descriptor;
    std::string path = "/proc/self/fd/" + std::to_string(descriptor);
};

}  // namespace

TEST_CASE("a runtime's file tells which functions it has, and which version it is of") {
    RuntimeFile file;
    CHECK_FALSE(file.read(kFake.c_str(), 12));
    REQUIRE(file.read(kFake.c_str(), 13));
    const SharedRuntime fake = file.functions();
    CHECK(std::string(fake.path) == kFake);
    CHECK(has(fake, "cudaMalloc"));
    CHECK(has(fake, "__cudaRegisterFatBinary"));
    CHECK_FALSE(has(fake, "cudaNotYetInvented"));
    // The library uses this one, and doesn't export it.
    CHECK_FALSE(has(fake, "dlopen"));
    CHECK(fake.lacking != nullptr);
    // In place of the one before.
    REQUIRE(file.read(kOther.c_str(), 99));
    CHECK(has(file.functions(), "cudaMany"));
    CHECK_FALSE(has(file.functions(), "cudaMalloc"));
    CHECK(file.functions().lacking == nullptr);
}

TEST_CASE("a file that is no runtime, or a part of one, has no functions outside itself") {
    RuntimeFile file;
    CHECK_FALSE(file.read("/dev/null", 99));
    CHECK_FALSE(file.read("/nowhere", 99));
    std::ifstream stream(kOther, std::ios::binary);
    const std::string whole(std::istreambuf_iterator<char>(stream), {});
    const Written written;
    // The end of a file is the table of its sections, of which one is enough.
    for (size_t length = 0; length < whole.size(); length += 61) {
        CAPTURE(length);
        const bool read = file.read(written.with(whole.substr(0, length)), 99);
        CHECK(read <= (length > whole.size() / 2));
        CHECK(has(file.functions(), "cudaMany") == read);
    }
    // Numbers that lie, one after the other: nothing outside the file is read, whatever is found.
    for (size_t at = 0; at < whole.size(); at += 13) {
        std::string spoiled = whole;
        spoiled[at] = static_cast<char>(~spoiled[at]);
        if (file.read(written.with(spoiled), 99))
            has(file.functions(), "cudaMany");
    }
}

}  // namespace cuslice
