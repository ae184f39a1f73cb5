// SPDX-License-Identifier: Apache-2.0
// Another share for a job that is running, by somebody who is no member of it.
#include "policy/lease/edit.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/policy/lease/place.h"
#include "tests/policy/lease/table.h"

using namespace cuslice::tests;
namespace lease = cuslice::lease;
namespace ledger = cuslice::ledger;
using lease::Edited;

namespace {

constexpr uint64_t kJob = 7;

// "50/100": weight and cap of the first job on the first GPU.
std::string share_in(const lease::State& state) {
    const lease::Claim& claim = state.jobs[0].claims[0];
    return std::to_string(claim.weight) + "/" + std::to_string(claim.cap);
}

std::string share_in(const LedgerFolder& folder) { return share_in(*ReadLease(folder).state); }

Edited set_share(const LedgerFolder& folder, const lease::NewShare& share, uint64_t job = kJob,
                 const char* uuid = kUuid) {
    lease::LeaseEditor editor;
    lease::LedgerError why;
    REQUIRE(editor.open(folder.path.c_str(), &why));
    return editor.set_share(job, uuid, share);
}

size_t files_in(const LedgerFolder& folder) {
    const std::filesystem::directory_iterator all(folder.path);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
}

std::string path_of_lease(const LedgerFolder& folder) {
    char path[ledger::kPathBytes];
    return lease::lease_path(folder.path.c_str(), geteuid(), 0, path) ? path : "";
}

}  // namespace

TEST_CASE("a new share is what was asked for, and what wasn't stays") {
    Table table;
    table.add(50);
    lease::State& state = *table.state;
    REQUIRE(lease::number_of_gpu(state, "GPU-0") == 0);
    REQUIRE(lease::number_of_gpu(state, "GPU-1") == 1);
    const auto edit = [&](const lease::NewShare& share, uint64_t job = 1, const char* uuid = "GPU-0") {
        return lease::edit_share(state, job, uuid, share, table.now);
    };
    CHECK(edit({.weight = 40}) == Edited::yes);
    CHECK(share_in(state) == "40/100");
    CHECK(edit({.cap = 60}) == Edited::yes);
    CHECK(share_in(state) == "40/60");
    CHECK(edit({.weight = 70, .cap = 80}) == Edited::yes);
    CHECK(edit({.weight = 90}) == Edited::cap_below_share);
    CHECK(edit({.cap = 69}) == Edited::cap_below_share);
    CHECK(edit({.weight = 10}, 2) == Edited::no_job);
    CHECK(edit({.weight = 10}, 0) == Edited::no_job);
    CHECK(edit({.weight = 10}, 1, "GPU-1") == Edited::not_on_gpu);
    CHECK(edit({.weight = 10}, 1, "GPU-2") == Edited::not_on_gpu);
    CHECK(share_in(state) == "70/80");
}

TEST_CASE("a job has its new share in the file, also for processes of it that come later") {
    const LedgerFolder folder;
    const auto one = lease_place();
    REQUIRE(one->join(folder, kJob));
    REQUIRE(one->acquire().granted);
    const size_t files = files_in(folder);
    CHECK(set_share(folder, {.weight = 20}) == Edited::yes);
    CHECK(one->process.lease().held());  // a cap would end its turn by the clock
    CHECK(set_share(folder, {.cap = 30}) == Edited::yes);
    CHECK(share_in(folder) == "20/30");
    CHECK(files_in(folder) == files);
    const auto later = lease_place();
    REQUIRE(later->join(folder, kJob));
    CHECK(share_in(folder) == "20/30");
    CHECK(set_share(folder, {.weight = 10}, kJob + 1) == Edited::no_job);
}

TEST_CASE("where there is no lease, none is made") {
    const LedgerFolder folder;
    lease::LeaseEditor editor;
    lease::LedgerError why;
    CHECK_FALSE(editor.open(folder.path.c_str(), &why));
    CHECK(std::string(why.text).find("there is no lease in " + folder.path) != std::string::npos);
    CHECK(files_in(folder) == 0);
    CHECK_FALSE(editor.open((folder.path + "/none").c_str(), &why));
}

TEST_CASE("a damaged lease is left as it is") {
    const LedgerFolder folder;
    const auto one = lease_place();
    REQUIRE(one->join(folder, kJob));
    lease::LeaseEditor editor;
    REQUIRE(editor.open(folder.path.c_str(), nullptr));
    std::fstream(path_of_lease(folder)).seekp(offsetof(lease::File, buffers)) << std::string(100, '\xff');
    std::fstream(path_of_lease(folder)).seekp(offsetof(lease::File, current)) << std::string(8, '\xff');
    CHECK(editor.set_share(kJob, kUuid, {.weight = 10}) == Edited::failed);
    editor.close();
    lease::LedgerError why;
    CHECK_FALSE(editor.open(folder.path.c_str(), &why));
    CHECK(why.text[0] != '\0');
}
