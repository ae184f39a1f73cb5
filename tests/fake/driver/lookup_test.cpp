// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress against the list of all functions, and against a genuine driver where one is at hand.

#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/child.h"
#include "tests/skip.h"

namespace {

struct Row {
    const char *symbol, *name;
    int version;
    bool per_thread;
};
constexpr bool legacy = false, per_thread = true;
const Row rows[] = {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) {#symbol, #name, version, stream},
#include "virtual_gpu/driver/functions.def"
};

/// A driver, opened without putting its names before anybody else's.
struct Driver {
    explicit Driver(const char* path) : handle(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
        if (handle == nullptr)
            return;
        v1 = reinterpret_cast<decltype(v1)>(dlsym(handle, "cuGetProcAddress"));
        v2 = reinterpret_cast<decltype(v2)>(dlsym(handle, "cuGetProcAddress_v2"));
    }
    void* handle;
    CUresult (*v1)(const char*, void**, int, cuuint64_t) = nullptr;
    CUresult (*v2)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*) = nullptr;
};

struct Answer {
    int result, status;
    std::string symbol;  // the name under which the address is exported; "?" if it isn't, "" for null
    bool operator==(const Answer&) const = default;
};

/// The exported name of an address.
std::string symbol_of(void* address) {
    Dl_info info{};
    if (address == nullptr)
        return "";
    return dladdr(address, &info) != 0 && info.dli_sname != nullptr && info.dli_saddr == address ? info.dli_sname : "?";
}

/// The CUDA version that a driver says it is of.
int cuda_version(const Driver& driver) {
    int version = 0;
    reinterpret_cast<CUresult (*)(int*)>(dlsym(driver.handle, "cuDriverGetVersion"))(&version);
    return version;
}

constexpr int untouched = 0x1234;

Answer ask_v2(const Driver& driver, const char* name, int version, cuuint64_t flags) {
    void* address = reinterpret_cast<void*>(untouched);
    CUdriverProcAddressQueryResult status{};
    const CUresult result = driver.v2(name, &address, version, flags, &status);
    return {result, result == CUDA_SUCCESS ? static_cast<int>(status) : -1,
            address == reinterpret_cast<void*>(untouched) ? "untouched" : symbol_of(address)};
}

Answer ask_v1(const Driver& driver, const char* name, int version, cuuint64_t flags) {
    void* address = reinterpret_cast<void*>(untouched);
    const CUresult result = driver.v1(name, &address, version, flags);
    return {result, -1, address == reinterpret_cast<void*>(untouched) ? "untouched" : symbol_of(address)};
}

}  // namespace

TEST_CASE("every function of the list is exported and found at its version") {
    const Driver fake(FAKE_DRIVER);
    REQUIRE(fake.v2 != nullptr);
    for (const Row& row : rows) {
        INFO(row.symbol);
        const bool there = row.version <= cuda_version(fake);
        CHECK((dlsym(fake.handle, row.symbol) != nullptr) == there);
        if (!there)
            CHECK(ask_v2(fake, row.name, row.version, 0).symbol != row.symbol);
        if (!there)
            continue;
        if (row.version == 0)
            continue;  // not in cudaTypedefs.h
        const cuuint64_t flags = row.per_thread ? 2 : 1;
        CHECK(ask_v2(fake, row.name, row.version, flags) == Answer{0, 0, row.symbol});
        CHECK(ask_v1(fake, row.name, row.version, flags) == Answer{0, -1, row.symbol});
    }
}

TEST_CASE("a form answers until the next one's version, and never before its own") {
    const Driver fake(FAKE_DRIVER);
    std::map<std::pair<std::string, bool>, std::map<int, std::string>> forms;
    std::set<std::string> has_per_thread;
    for (const Row& row : rows) {
        if (row.version == 0 || row.version > cuda_version(fake))
            continue;
        forms[{row.name, row.per_thread}][row.version] = row.symbol;
        if (row.per_thread)
            has_per_thread.insert(row.name);
    }
    for (const auto& [key, by_version] : forms) {
        INFO(key.first);
        const cuuint64_t flags = key.second ? 2 : 0;
        CHECK(ask_v2(fake, key.first.c_str(), by_version.begin()->first - 10, flags) == Answer{0, 2, ""});
        CHECK(ask_v1(fake, key.first.c_str(), by_version.begin()->first - 10, flags) == Answer{500, -1, "untouched"});
        for (auto at = by_version.begin(); at != by_version.end(); ++at) {
            const auto next = std::next(at);
            const int last = next == by_version.end() ? 99000 : next->first - 10;
            CHECK(ask_v2(fake, key.first.c_str(), last, flags) == Answer{0, 0, at->second});
        }
        if (!key.second && !has_per_thread.contains(key.first)) {
            CHECK(ask_v2(fake, key.first.c_str(), 99000, 2).symbol == by_version.rbegin()->second);
        }
    }
}

TEST_CASE("names and arguments that are wrong are answered as drivers do") {
    const Driver fake(FAKE_DRIVER);
    CHECK(ask_v2(fake, "", 0, 0) == Answer{0, 1, ""});
    CHECK(ask_v1(fake, "", 0, 0) == Answer{500, -1, "untouched"});
    CHECK(ask_v2(fake, "cuNoSuchThing", 13000, 0) == Answer{0, 1, ""});
    CHECK(ask_v2(fake, "cuMemAlloc_v2", 13000, 0) == Answer{0, 1, ""});  // a symbol is not a name
    CHECK(ask_v2(fake, "cuInit", 13000, 4) == Answer{1, -1, "untouched"});
    CHECK(ask_v2(fake, "cuMemcpyHtoD", 13000, 3).symbol == "cuMemcpyHtoD_v2_ptds");
    CHECK(fake.v2(nullptr, nullptr, 13000, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a newer driver's functions are there when they are asked for, and not else") {
    CHECK(ask_v2(Driver(FAKE_DRIVER), "cuFakeNewerDriverFunction", 99000, 0) == Answer{0, 1, ""});
    CHECK(
        fake_test::in_child({{"CUSLICE_FAKE", "t4"}, {"CUSLICE_FAKE_NEWER", "1"}}, [](const fake_test::Report& report) {
            const Driver fake(FAKE_DRIVER);
            EXPECT(ask_v2(fake, "cuFakeNewerDriverFunction", 12090, 0) == (Answer{0, 2, ""}));
            EXPECT(ask_v2(fake, "cuFakeNewerDriverFunction", 13000, 0) == (Answer{0, 0, "cuFakeNewerDriverFunction"}));
            EXPECT(ask_v2(fake, "cuMemAlloc", 13000, 0) == (Answer{0, 0, "cuMemAlloc_v2"}));
            EXPECT(ask_v2(fake, "cuMemAlloc", 14000, 0) == (Answer{0, 0, "cuMemAlloc_v3"}));
            int effect = 0;
            void* address = nullptr;
            EXPECT_EQUAL(fake.v2("cuFakeNewerDriverFunction", &address, 13000, 0, nullptr), CUDA_SUCCESS);
            EXPECT_EQUAL(reinterpret_cast<CUresult (*)(int*)>(address)(&effect), CUDA_SUCCESS);
            EXPECT_EQUAL(effect, 20130);
        }) == "");
}

// CUSLICE_TEST_GENUINE_DRIVER names an NVIDIA libcuda.so.1 (look-ups need no GPU); without it, it is one that
// lab/genuine/fetch.py has brought.
TEST_CASE("where both have a function, a genuine driver answers every look-up the same") {
    const char* given = std::getenv("CUSLICE_TEST_GENUINE_DRIVER");
    const char* path = given != nullptr ? given : FAKE_GENUINE_DRIVER;
    if (access(path, R_OK) != 0) {
        cuslice::tests::skip("there is no genuine driver " + std::string(path));
        return;
    }
    const Driver fake(FAKE_DRIVER), genuine(path);
    REQUIRE(genuine.v2 != nullptr);
    std::set<int> versions = {0, 1, 1000, 14000, 99999};
    std::set<std::string> names = {"", "cuNoSuchThing", "cuMemAlloc_v2"};
    std::map<std::string, bool> both;
    for (const Row& row : rows) {
        versions.insert(row.version);
        names.insert(row.name);
        both.try_emplace(row.name, true);
        both[row.name] = both[row.name] && dlsym(genuine.handle, row.symbol) != nullptr;
    }
    int compared = 0;
    for (const std::string& name : names) {
        if (both.contains(name) && !both[name])
            continue;
        for (const int version : versions) {
            for (const cuuint64_t flags : {0, 1, 2, 3, 4, 8}) {
                INFO(name << " version " << version << " flags " << flags);
                CHECK(ask_v2(fake, name.c_str(), version, flags) == ask_v2(genuine, name.c_str(), version, flags));
                CHECK(ask_v1(fake, name.c_str(), version, flags) == ask_v1(genuine, name.c_str(), version, flags));
                compared += 2;
            }
        }
    }
    WARN(compared << " look-ups compared");
}
