// SPDX-License-Identifier: Apache-2.0
// Under which pid NVML lists this process.
#include "virtual_gpu/nvml/own_pid.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

#include "tests/catch.h"
#include "virtual_gpu/driver/nvml_table.h"

using namespace cuslice;

namespace {

const char* made_up_namespace = nullptr;  // null: the kernel's answer
const char* driver_version = "";
unsigned asked_for_version = 0;

/// Facts that this process finds out about its pid in the namespace, with that driver; null: no NVML to ask.
PidFacts facts_in(const char* name, const char* version) {
    void*& slot = cuslice_physical_nvml_slots[static_cast<size_t>(NvmlFunction::nvmlSystemGetDriverVersion)];
    const auto answer = +[](char* text, unsigned size) -> nvmlReturn_t {
        asked_for_version++;
        snprintf(text, size, "%s", driver_version);
        return NVML_SUCCESS;
    };
    slot = version ? reinterpret_cast<void*>(answer) : nullptr;
    driver_version = version;
    asked_for_version = 0;
    made_up_namespace = name;
    const PidFacts facts = pid_facts();
    made_up_namespace = nullptr;
    slot = nullptr;
    CHECK(facts.own == static_cast<unsigned>(getpid()));
    return facts;
}

constexpr const char *kFirst = "pid:[4026531836]", *kOther = "pid:[4026532999]";

}  // namespace

extern "C" {

ssize_t __real_readlink(const char* path, char* text, size_t size);
ssize_t __wrap_readlink(const char* path, char* text, size_t size);

ssize_t __wrap_readlink(const char* path, char* text, size_t size) {
    if (!made_up_namespace || std::strcmp(path, "/proc/self/ns/pid") != 0)
        return __real_readlink(path, text, size);
    const size_t length = std::min(std::strlen(made_up_namespace), size);
    std::memcpy(text, made_up_namespace, length);
    return static_cast<ssize_t>(length);
}
}

TEST_CASE("on the host, and from driver 545 on everywhere, NVML lists a process by its own pid") {
    CHECK(pid_in_nvml({812, 812, true, 535}) == 812);
    CHECK(pid_in_nvml({812, 812, true, 0}) == 812);
    CHECK(pid_in_nvml({12, 12, false, 545}) == 12);
    CHECK(pid_in_nvml({12, 4711, false, 580}) == 12);
}

TEST_CASE("in a container of an older driver it is known only by the host's /proc") {
    CHECK(pid_in_nvml({12, 4711, false, 535}) == 4711);
    CHECK(pid_in_nvml({12, 12, false, 544}) == 0);
    CHECK(pid_in_nvml({12, 0, false, 470}) == 0);  // no /proc at all
    CHECK(pid_in_nvml({12, 12, false, 0}) == 0);
    PidFacts unread;
    unread.own = 12;
    CHECK(pid_in_nvml(unread) == 0);
}

TEST_CASE("the outermost pid is the first of NSpid") {
    CHECK(outermost_pid("Name:\tx\nPid:\t12\nNSpid:\t4711\t12\nNSpgid:\t1\n") == 4711);
    CHECK(outermost_pid("Name:\tx\nNSpid:\t12\n") == 12);
    CHECK(outermost_pid("Name:\tNSpid:\t9\n") == 0);
    CHECK(outermost_pid("Name:\tx\nNSpid:\t") == 0);
    CHECK(outermost_pid("") == 0);
}

TEST_CASE("a process in the host's own namespace asks for nothing more") {
    const PidFacts facts = facts_in(kFirst, "535.104.05");
    CHECK(facts.first_namespace);
    CHECK(facts.driver == 0);
    CHECK(asked_for_version == 0);
    CHECK(facts.outermost == 0);
}

TEST_CASE("a process in a container asks for the driver's version, and of an old one for its outermost pid") {
    PidFacts facts = facts_in(kOther, "580.95.05");
    CHECK_FALSE(facts.first_namespace);
    CHECK(facts.driver == 580);
    CHECK(facts.outermost == 0);

    unsigned outermost = 0;
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (word == "NSpid:")
            status >> outermost;
    REQUIRE(outermost != 0);
    facts = facts_in(kOther, "535.104.05");
    CHECK_FALSE(facts.first_namespace);
    CHECK(facts.driver == 535);
    CHECK(facts.outermost == outermost);
    facts = facts_in(kOther, nullptr);
    CHECK(facts.driver == 0);
    CHECK(facts.outermost == outermost);
}
