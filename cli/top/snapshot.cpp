// SPDX-License-Identifier: Apache-2.0
#include "cli/top/snapshot.h"

#include <time.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <set>
#include <utility>

#include "cli/gpus/gpu_query.h"
#include "cli/ledger/users.h"
#include "config/resolve.h"
#include "config/split/identity.h"
#include "policy/ledger/process_identity.h"
#include "policy/stats/file.h"

namespace cuslice::cli::top {
namespace {

// A partition's UUID follows from its GPU's, so that a ledger's name says which it is of.
void add_places(const Gpu& gpu, std::map<std::string, Place>& places) {
    if (gpu.ordinal < 0)
        return;
    places[gpu.uuid] = {gpu.ordinal, {}};
    const GpuIdentity identity = identity_of(gpu, gpu.ordinal);
    for (unsigned part = 0; part < VirtualParts::kMax; ++part)
        places[identity_of_part(identity, part).uuid] = {gpu.ordinal, static_cast<int>(part)};
}

// Caches of processes in a job, and of those that have a file of figures here without being in one. A pid from
// another namespace may belong to nobody here, or to another process: read_stats() sees which.
std::vector<Cache> read_caches(const std::string& folder, const Holders& holders) {
    std::set<int> pids;
    for (const Holder& holder : holders.holding)
        pids.insert(holder.pid);
    const uint64_t here = ledger::read_pid_namespace();
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
        stats::Name name;
        if (stats::parse_name(entry.path().filename().c_str(), &name) && name.pid_namespace == here)
            pids.insert(name.pid);
    }
    std::vector<Cache> caches;
    for (const int pid : pids) {
        const ProcessStats process = read_stats(folder, pid);
        for (const GpuStats& gpu : process.gpus)
            caches.push_back({pid, process.command, gpu, process.command_line});
    }
    return caches;
}

// A GPU before its partitions, both in the machine's order, and what is not in its list behind them.
template <typename Row>
void sort_by_place(std::vector<Row>& rows, const std::map<std::string, Place>& places) {
    const auto rank = [&](const Row& row) {
        const auto found = places.find(row.gpu);
        return found == places.end() ? std::pair(INT_MAX, 0)
                                     : std::pair(found->second.index, found->second.partition.value_or(-1));
    };
    std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return rank(a) < rank(b); });
}

}  // namespace

AccountName account_of(const Holder& holder) { return {holder.gpu, holder.user, holder.kind, holder.name}; }

std::string Snapshot::user_called(unsigned user) const {
    const auto told = users.find(user);
    return told != users.end() ? told->second : user_name(user);
}

uint64_t Snapshot::reserved_beyond_use(const std::string& uuid) const {
    if (const auto told = beyond.find(uuid); told != beyond.end())
        return told->second;
    std::map<AccountName, uint64_t> of_accounts;
    for (const Holder& holder : holders.holding)
        if (holder.gpu == uuid && !holder.inner)
            of_accounts[account_of(holder)] = holder.reserved > holder.together ? holder.reserved - holder.together : 0;
    uint64_t sum = 0;
    for (const auto& [account, bytes] : of_accounts)
        sum += bytes;
    return sum;
}

Snapshot take_snapshot(const Settings& settings, const std::string& folder, const Gpus* gpus) {
    Snapshot snapshot;
    snapshot.gpus_known = gpus != nullptr;
    if (gpus != nullptr) {
        snapshot.gpus_failure = gpus->failure;
        if (gpus->failure.empty() && gpus->list.empty())
            snapshot.gpus_failure = "the driver has none";
        for (const Gpu& gpu : gpus->list) {
            const Amount amount = amount_for(settings, identity_of(gpu, gpu.ordinal), gpu.total);
            GpuLoad load{gpu, {}, std::string(amount.origin)};
            if (amount.limited)
                load.limit = amount.bytes;
            snapshot.gpus.push_back(load);
            add_places(gpu, snapshot.places);
        }
    }
    snapshot.holders = read_holders(folder);
    sort_by_place(snapshot.holders.holding, snapshot.places);
    sort_by_place(snapshot.holders.waiting, snapshot.places);
    sort_by_place(snapshot.holders.times, snapshot.places);
    snapshot.caches = read_caches(folder, snapshot.holders);
    return snapshot;
}

std::string time_of_day() {
    const time_t now = ::time(nullptr);
    tm local{};
    char text[16];
    ::localtime_r(&now, &local);
    return std::string(text, ::strftime(text, sizeof text, "%H:%M:%S", &local));
}

}  // namespace cuslice::cli::top
