// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/set_share.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "cli/ledger/holders.h"
#include "cli/ledger/job_times.h"
#include "cli/text/exit_codes.h"
#include "cli/text/report.h"
#include "config/resolve.h"
#include "policy/lease/edit.h"
#include "policy/lease/job_id.h"

namespace cuslice::cli {
namespace {

GpuIdentity identity_of(const std::string& uuid) {
    GpuIdentity identity;
    uuid.copy(identity.uuid, sizeof identity.uuid - 1);
    return identity;
}

// Within the rule's. 0: nothing is asked for on this GPU.
uint32_t percent_for(const Settings& wanted, const Settings& all, Key key, const GpuIdentity& gpu) {
    const Entry* const asked = find(wanted, key, gpu);
    if (asked == nullptr)
        return 0;
    const Entry* const most = find_ceiling(all, key, Source::rule, gpu);
    return static_cast<uint32_t>(most == nullptr ? asked->number : std::min(asked->number, most->number));
}

// One GPU of which the job has a share, and the share that it is to have.
struct Change {
    const JobTime& before;
    lease::NewShare share;

    bool any() const { return share.weight != 0 || share.cap != 0; }
};

std::string told(const Change& change) {
    const uint32_t share = change.share.weight != 0 ? change.share.weight : change.before.share;
    const uint32_t cap = change.share.cap != 0 ? change.share.cap : change.before.cap;
    return change.before.gpu + ": job " + change.before.name + ": share " + share_text(share) + ", cap " +
           cap_text(cap);
}

int refuse(const Change& change, lease::Edited edited) {
    const JobTime& job = change.before;
    const std::string name = "set: job " + job.name;
    if (edited == lease::Edited::cap_below_share)
        return fail(name + " on " + job.gpu + ": a cap is not below the share; now it has " + share_text(job.share) +
                        " and a cap of " + share_text(job.cap),
                    kConfig);
    if (edited == lease::Edited::failed)
        return fail("set: the lease of the GPUs' time can't be changed: it is damaged, or changes all the time",
                    kUnavailable);
    return fail(name + " has ended", kNoGpu);
}

int apply(lease::LeaseEditor& editor, const Change& change) {
    const JobTime& job = change.before;
    const lease::Edited edited = editor.set_share(job.number, job.gpu.c_str(), change.share);
    if (edited != lease::Edited::yes)
        return refuse(change, edited);
    std::puts(told(change).c_str());
    return 0;
}

// Also by a name that its processes don't tell, or by its number's digits.
bool is_called(const JobTime& one, const std::string& job) {
    return one.name == job || one.number == lease::job_id(job);
}

bool runs(const std::vector<Holder>& holding, const std::string& job) {
    return std::ranges::any_of(holding, [&](const Holder& one) { return one.kind == "job" && one.name == job; });
}

int refuse_stranger(const std::vector<Holder>& holding, const std::string& job) {
    if (runs(holding, job))
        return fail("set: job " + job + " was started without --share: its launches aren't hooked", kNoGpu);
    return fail("set: no job " + job + " has a share of a GPU's time; cuslice ps shows those that have", kNoGpu);
}

}  // namespace

int set_share(const Settings& wanted, const Settings& all, const std::string& folder, const std::string& job) {
    const std::vector<Holder> holding = read_holders(folder).holding;
    std::vector<JobTime> shares = read_job_times(folder, holding);
    std::erase_if(shares, [&](const JobTime& one) { return !is_called(one, job); });
    if (shares.empty())
        return refuse_stranger(holding, job);
    lease::LeaseEditor editor;
    lease::LedgerError why;
    if (!editor.open(folder.c_str(), &why))
        return fail("set: " + std::string(why.text), kUnavailable);
    unsigned changed = 0;
    for (const JobTime& one : shares) {
        const GpuIdentity gpu = identity_of(one.gpu);
        const Change change{one,
                            {percent_for(wanted, all, Key::share, gpu), percent_for(wanted, all, Key::share_cap, gpu)}};
        if (!change.any())
            continue;
        if (const int code = apply(editor, change); code != 0)
            return code;
        changed++;
    }
    if (changed != 0)
        return 0;
    return fail("set: job " + job + " has no share of a GPU that --share or --share-cap names", kNoGpu);
}

}  // namespace cuslice::cli
