// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/rule_share.h"

#include <string.h>

#include <algorithm>

#include "policy/ledger/accounts.h"
#include "policy/ledger/committed.h"
#include "policy/ledger/liveness.h"

namespace cuslice::ledger {

namespace {

// Finds, for each account that is `counted`, the rule's account in which one of its processes is, too; kAccounts:
// none. One pass over all pairs of members: another user's file can make it no longer than that.
void find_rules(const Contents& contents, const bool (&counted)[kAccounts], uint32_t (&rule_of)[kAccounts]) {
    std::fill_n(rule_of, kAccounts, kAccounts);
    for (const Member& in_rule : contents.members) {
        const uint32_t rule = in_rule.account;
        if (!is_live(in_rule) || rule >= kAccounts || contents.accounts[rule].kind != AccountKind::rule)
            continue;
        for (const Member& in_job : contents.members) {
            const uint32_t job = in_job.account;
            if (!is_live(in_job) || job >= kAccounts || !counted[job])
                continue;
            if (is_same_process(in_job, in_rule))
                rule_of[job] = rule;
        }
    }
}

// Bytes that the jobs of a rule are promised together, and the most of them that they could ever take: memory in the
// rule's account and in none of theirs can't be had by them.
struct PromisedByRule {
    uint64_t promised = 0, most = 0;  // bytes
};
PromisedByRule promised_by(const Contents& contents, uint32_t rule, const uint32_t (&rule_of)[kAccounts]) {
    PromisedByRule sum;
    uint64_t used = 0;
    for (uint32_t i = 0; i < kAccounts; i++) {
        if (rule_of[i] != rule)
            continue;
        sum.promised += promised(contents.accounts[i]);
        used += __atomic_load_n(&contents.accounts[i].total.bytes, __ATOMIC_RELAXED);
    }
    const Account& account = contents.accounts[rule];
    const uint64_t all = __atomic_load_n(&account.total.bytes, __ATOMIC_RELAXED), limit = account.limit.load();
    const uint64_t others = all - std::min(all, used);
    sum.most = std::max(limit - std::min(limit, others), used);
    return sum;
}

}  // namespace

void count_rules(const Contents& contents, const bool (&counted)[kAccounts], const char* own, Committed* committed) {
    uint32_t rule_of[kAccounts];
    find_rules(contents, counted, rule_of);
    for (uint32_t i = 0; i < kAccounts; i++) {
        const Account& account = contents.accounts[i];
        if (is_free(account) || account.kind != AccountKind::rule)
            continue;
        const PromisedByRule sum = promised_by(contents, i, rule_of);
        const uint64_t most = std::min(sum.promised, sum.most);
        committed->promised -= std::min(sum.promised - most, committed->promised);
        if (own && strncmp(account.name, own, sizeof account.name) == 0)
            committed->left_of_rule = sum.most - most;
    }
}

}  // namespace cuslice::ledger
