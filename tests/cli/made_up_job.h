// SPDX-License-Identifier: Apache-2.0
// A job in a ledger of a test's own folder.
#pragma once

#include <errno.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "policy/ledger/ledger.h"
#include "tests/catch.h"

namespace cuslice::tests {

constexpr uint64_t kMiB = 1 << 20, kGiB = kMiB << 10;
/// The first of the stub driver's GPUs.
constexpr const char* kUuid = "GPU-50505050-5050-5050-5050-505050505050";

/// This process as a job of 1 GiB with this name of a command, which holds 256 MiB.
struct Job {
    Job(const std::string& folder, const char* command) {
        REQUIRE(ledger.open(folder.c_str(), kUuid, 8 * kGiB, false, nullptr));
        ledger::Committed committed;
        uint64_t available = 0;
        ledger::Request request;
        request.name = "1-made-up", request.limit = request.reserved = kGiB, request.command = command;
        REQUIRE(ledger.join(request, 0, &membership, &committed, &available, nullptr) == ledger::Joined::yes);
        REQUIRE(membership.reserve(256 * kMiB, 0, nullptr));
    }
    ledger::Ledger ledger;
    ledger::Membership membership;
};

/// As long as it lives, this process's command line begins with `name`, which isn't longer than its own name.
class CalledSo {
  public:
    explicit CalledSo(const std::string& name) : own_(program_invocation_name) {
        REQUIRE(name.size() <= own_.size());
        write(name);
    }
    ~CalledSo() { write(own_); }
    CalledSo(const CalledSo&) = delete;
    CalledSo& operator=(const CalledSo&) = delete;

  private:
    void write(const std::string& name) const {
        std::memset(program_invocation_name, 0, own_.size());
        std::memcpy(program_invocation_name, name.data(), name.size());
    }
    const std::string own_;
};

}  // namespace cuslice::tests
