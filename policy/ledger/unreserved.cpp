// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/unreserved.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "policy/ledger/file.h"
#include "policy/ledger/liveness.h"
#include "policy/ledger/total.h"

namespace cuslice::ledger {

namespace {

// A table by pid, large enough for most processes to have a line of their own in it.
constexpr uint32_t kLines = 1024;
constexpr uint16_t kNobody = 0xffff;
static_assert(kMembers < kNobody);

uint32_t line_of(const Member& member) { return static_cast<uint32_t>(member.pid) % kLines; }

bool is_counted(const Contents& contents, const Member& member) {
    return is_live(member) && member.account < kAccounts && !is_free(contents.accounts[member.account]);
}

bool is_inner(const Contents& contents, const Member& member) { return contents.accounts[member.account].inner != 0; }

// True if the process of place `number` has one in a job, or an earlier one in another group or rule.
bool has_another(const Contents& contents, uint32_t number) {
    const Member& member = contents.members[number];
    for (uint32_t i = 0; i < contents.members.size(); i++) {
        const Member& other = contents.members[i];
        if (i == number || !is_counted(contents, other) || !is_same_process(other, member))
            continue;
        if (!is_inner(contents, other) || i < number)
            return true;
    }
    return false;
}

// The first line of each pid, of those that are in jobs.
struct InJobs {
    explicit InJobs(const Contents& contents) {
        for (uint16_t& line : first)
            line = kNobody;
        for (uint32_t i = 0; i < contents.members.size(); i++) {
            const Member& member = contents.members[i];
            if (is_counted(contents, member) && !is_inner(contents, member) && first[line_of(member)] == kNobody)
                first[line_of(member)] = static_cast<uint16_t>(i);
        }
    }
    bool has(const Contents& contents, const Member& member) const {
        const uint16_t found = first[line_of(member)];
        return found != kNobody && is_same_process(contents.members[found], member);
    }
    uint16_t first[kLines];
};

bool may_be_unreserved(const Contents& contents, const InJobs& in_jobs, uint32_t number) {
    const Member& member = contents.members[number];
    return is_counted(contents, member) && is_inner(contents, member) && !in_jobs.has(contents, member);
}

// No GPU has 256 TiB: a file may say anything.
uint64_t held_by(const Stripe* stripes) {
    constexpr int64_t kMost = int64_t{1} << 48;
    int64_t sum = 0;
    for (uint32_t i = 0; i < kStripes; i++)
        sum = plus(sum, stripes[i].held.load(std::memory_order_relaxed));
    return static_cast<uint64_t>(std::clamp<int64_t>(sum, 0, kMost));
}

void add_process(const Member& member, unsigned user, uint64_t held, Committed* committed) {
    committed->unreserved += held;
    if (committed->count == Committed::kMax) {
        committed->left_out++;
        return;
    }
    Holder& holder = committed->holders[committed->count++];
    holder = {};
    holder.user = user;
    holder.pid = member.pid;
    holder.pid_namespace = member.pid_namespace;
    holder.start_time = member.start_time;
    memcpy(holder.command, member.command, sizeof holder.command);
    holder.command[sizeof holder.command - 1] = '\0';
    holder.since = member.since;
    holder.used = held;
}

}  // namespace

void add_unreserved(const Contents& contents, const File& own, unsigned user, Committed* committed) {
    const InJobs in_jobs(contents);
    for (uint32_t i = 0; i < contents.members.size(); i++) {
        if (!may_be_unreserved(contents, in_jobs, i))
            continue;
        const uint64_t held = held_by(own.stripes + size_t{i} * kStripes);
        if (held != 0 && !has_another(contents, i))
            add_process(contents.members[i], user, held, committed);
    }
}

void add_unreserved(const Contents& contents, int descriptor, const UserFolder& where, Committed* committed) {
    const InJobs in_jobs(contents);
    for (uint32_t i = 0; i < contents.members.size(); i++) {
        if (!may_be_unreserved(contents, in_jobs, i))
            continue;
        Stripe stripes[kStripes];
        const size_t offset = offsetof(File, stripes) + size_t{i} * sizeof stripes;
        if (!read_at(descriptor, static_cast<void*>(stripes), sizeof stripes, offset))
            continue;
        const uint64_t held = held_by(stripes);
        if (held == 0 || has_another(contents, i) || !lives(contents.members[i], where, Trusted::others))
            continue;
        add_process(contents.members[i], where.user, held, committed);
    }
}

}  // namespace cuslice::ledger
