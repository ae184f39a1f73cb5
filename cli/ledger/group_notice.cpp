// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/group_notice.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/ledger/ledger_files.h"
#include "cli/settings/launcher_settings.h"
#include "cli/text/report.h"
#include "config/container_group.h"
#include "config/resolve.h"
#include "config/visible.h"
#include "policy/ledger/group_terms.h"
#include "policy/ledger/ledger.h"

namespace cuslice::cli {
namespace {

using ledger::GroupTerms;

// A group as one GPU's ledger has it.
struct Found {
    std::string uuid;
    uint64_t capacity = 0;
    GroupTerms terms;
};

constexpr size_t kUuidStart = 12;  // GPU- and eight digits, which name it everywhere

// In all ledgers of this user's.
std::vector<Found> find_group(const std::string& folder, const char* name) {
    std::vector<Found> found;
    const LedgerFiles files(folder);
    for (const LedgerFiles::One& file : files.all()) {
        if (!file.own)
            continue;
        ledger::Ledger own;
        Found one{file.uuid, 0, {}};
        if (!own.open_existing(folder.c_str(), file.uuid.c_str(), nullptr))
            continue;
        one.capacity = own.capacity();
        if (own.look_at_group(name, &one.terms))
            found.push_back(one);
        own.close();
    }
    return found;
}

// The lines about one group.
class Notice {
  public:
    Notice(const Environment& environment, const Settings& settings)
        : environment_(environment), settings_(settings), group_(group_name(settings)) {}

    void tell(Machine& machine);

  private:
    uint64_t limit_said(const Found& one, const std::vector<Gpu>& all) const;
    std::string describe(const Found& one) const;
    void tell_new(const std::vector<Found>& looked_at) const;
    std::vector<Gpu> visible(Machine& machine) const;
    void tell_each(const std::vector<Found>& known, Machine& machine);

    const Environment& environment_;
    const Settings& settings_;
    const std::string group_;
    std::vector<Gpu> all_;
};

// Settings count GPUs in PCI order, over all of the machine. kNoLimitBytes: they say none.
uint64_t Notice::limit_said(const Found& one, const std::vector<Gpu>& all) const {
    GpuIdentity identity;
    one.uuid.copy(identity.uuid, sizeof identity.uuid - 1);
    for (const Gpu& gpu : all)
        if (gpu.uuid == one.uuid)
            identity = identity_of(gpu, gpu.ordinal);
    auto limit = group_limit_for(settings_, identity);
    if (!limit && shares_container(settings_)) {
        const Amount slice = amount_for(settings_, identity, one.capacity);
        if (slice.limited)
            limit = slice.bytes;
    }
    return limit ? std::min(*limit, one.capacity) : ledger::kNoLimitBytes;
}

std::string Notice::describe(const Found& one) const {
    const std::string gpu = one.uuid.substr(0, kUuidStart);
    return std::string(describe_group(group_, gpu, one.terms, limit_said(one, all_)));
}

bool says_limit(const Settings& settings) {
    const auto entries = settings.entries();
    return std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
        return entry.key == Key::group_limit || (shares_container(settings) && is_amount(entry.key));
    });
}

// A group that no GPU has.
void Notice::tell_new(const std::vector<Found>& looked_at) const {
    GroupTerms terms;
    for (const Found& one : looked_at)
        if (one.terms.similar[0] && !shares_container(settings_))
            terms = one.terms;
    const uint64_t limit = says_limit(settings_) ? 0 : ledger::kNoLimitBytes;
    const std::string line(describe_group(group_, "", terms, limit));
    if (!line.empty())
        warn(line);
}

// By the list that the launcher has made by now. The machine is this process's own copy.
std::vector<Gpu> Notice::visible(Machine& machine) const {
    if (const auto list = environment_.get(kCudaVisible))
        machine.narrow(*list);
    return machine.allowed();
}

// The machine is asked only if there is something to say.
void Notice::tell_each(const std::vector<Found>& known, Machine& machine) {
    const bool none_said = !says_limit(settings_);
    const auto is_told = [&](const Found& one) { return !describe(one).empty(); };
    if (!none_said && std::none_of(known.begin(), known.end(), is_told))
        return;
    const std::vector<Gpu> seen = visible(machine);
    const bool nobody_knows = !machine.all().failure.empty();
    size_t here = 0;
    for (const Found& one : known) {
        const auto is_it = [&](const Gpu& gpu) { return gpu.uuid == one.uuid; };
        const bool there = std::any_of(seen.begin(), seen.end(), is_it);
        if (!there && !nobody_knows)
            continue;
        here++;
        if (const std::string line = describe(one); !line.empty())
            warn(line);
    }
    const size_t others = seen.size() - std::min(seen.size(), here);
    if (!none_said || nobody_knows || others == 0)
        return;
    const std::string place = std::to_string(others) + (here == 0 ? "" : " other") + (others == 1 ? " GPU" : " GPUs");
    GroupTerms nothing;
    nothing.known = true;
    warn(std::string(describe_group(group_, place, nothing, ledger::kNoLimitBytes)));
}

void Notice::tell(Machine& machine) {
    std::vector<Found> known = find_group(sharing_folder(settings_, environment_), group_.c_str());
    std::vector<Found> looked_at;
    looked_at.swap(known);
    for (const Found& one : looked_at)
        if (one.terms.known)
            known.push_back(one);
    if (known.empty())
        return tell_new(looked_at);
    if (settings_.needs_index())
        all_ = machine.all().list;
    tell_each(known, machine);
}

}  // namespace

void tell_group(const Environment& environment, const Settings& settings, Machine& machine) {
    if (!find(settings, Key::group))
        return;
    // In a process of its own: closing a ledger's file would drop the lock of a job that this process has a place in.
    const pid_t child = ::fork();
    if (child == 0) {
        Notice(environment, settings).tell(machine);
        ::_exit(0);
    }
    if (child > 0)
        ::waitpid(child, nullptr, 0);
}

}  // namespace cuslice::cli
