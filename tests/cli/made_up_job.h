// A job in a ledger of a test's own folder.
#pragma once

#include <cstdint>
#include <string>

#include "policy/ledger/ledger.h"
#include "tests/catch.h"

namespace cuslice::tests {

constexpr std::uint64_t kMiB = 1 << 20, kGiB = kMiB << 10;
/// The first of the stub driver's GPUs.
constexpr const char* kUuid = "GPU-50505050-5050-5050-5050-505050505050";

/// This process as a job of 1 GiB with this name of a command, which holds 256 MiB.
struct Job {
    Job(const std::string& folder, const char* command) {
        REQUIRE(ledger.open(folder.c_str(), kUuid, 8 * kGiB, false, nullptr));
        ledger::Committed committed;
        std::uint64_t available = 0;
        ledger::Request request;
        request.name = "1-made-up", request.limit = request.reserved = kGiB, request.command = command;
        REQUIRE(ledger.join(request, 0, &membership, &committed, &available, nullptr) == ledger::Joined::yes);
        REQUIRE(membership.reserve(256 * kMiB, 0, nullptr));
    }
    ledger::Ledger ledger;
    ledger::Membership membership;
};

}  // namespace cuslice::tests
