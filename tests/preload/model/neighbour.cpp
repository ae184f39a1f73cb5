// SPDX-License-Identifier: Apache-2.0
// The hostile user's steps, and the question after each: whether somebody is refused what is theirs.
#include <algorithm>

#include "policy/ledger/refusal.h"
#include "tests/preload/model/round.h"

namespace cuslice::tests::model {

void Round::hostile_step() {
    const std::string did = hostile_->step();
    if (did.empty())
        return;
    totals_.actions["hostile step"]++;
    log("hostile: " + did);
    ask_for_own();
}

// With a quarter of a limit in use, what a context takes and what is kept free of it fits as well.
bool Round::has_little(const Member& member, unsigned gpu) {
    constexpr uint64_t kPart = 4;
    const Limits limits = limits_of(member.user);
    const auto held = place_.held(gpu);
    uint64_t together = 0, own = 0;
    for (const Member& other : members_) {
        if (other.user != member.user || !other.worker)
            continue;
        std::vector<Identity> all = other.parents;
        all.push_back(identity_of(other));
        for (const Identity& one : all) {
            const auto found = held.find(one);
            if (found == held.end())
                continue;
            together += found->second;
            if (&other == &member)
                own += found->second;
        }
    }
    return own * kPart <= limits.process && together * kPart <= limits.together;
}

// Nobody of its own user's stands still, which may be with the ledger's lock, and the folder is as it should be.
bool Round::is_undisturbed(const Member& member) const {
    return place_.is_mended() && place_.has_room() && !is_blurred() &&
           std::none_of(std::begin(members_), std::end(members_), [&](const Member& other) {
               return other.user == member.user && other.worker && other.worker->is_stopped();
           });
}

bool Round::reserves(const Member& member) const {
    const auto mode = combination_.mode;
    return mode == Combination::Mode::split || (member.user == 0 && mode != Combination::Mode::prealloc);
}

// Where a slice would fit but for memory outside of all jobs, a start looks for so long whether that gets charged to a
// job that has more reserved than it uses (docs/design/ledger.md). Anybody's honest reservation has this effect, and so
// does one that he claims. Milliseconds.
uint64_t Round::settling_of(const Member& member) const {
    return hostile_ && hostile_->claims() && reserves(member) ? ledger::kSettles : 0;
}

// It was refused its first context, and its limit has room for that: see hostile.h for what he may bring about.
void Round::check_refusal(const Member& member, const std::string& words) {
    const bool may_be_his = (reserves(member) && hostile_->claims()) || hostile_->has_all_names();
    const bool named = words.find("user " + std::to_string(kHostileUser)) != std::string::npos;
    if (!may_be_his || !named)
        fail("program " + std::to_string(member.number) + " was refused what is its own, saying: " + words);
}

void Round::ask_for_own() {
    std::vector<Member*> fit;
    for (Member& member : members_)
        if (member.worker && !member.worker->is_stopped())
            fit.push_back(&member);
    if (fit.empty())
        return;
    Member& member = *fit[hostile_->below(fit.size())];
    if (!is_undisturbed(member) || combination_.mode == Combination::Mode::prealloc)
        return;
    if (!member.ready)
        return retain(member);
    const unsigned gpu = place_.gpus() > 1 && member.current == "1";
    if (!has_little(member, gpu))
        return;
    const std::string name = fresh("o");
    expect(member, "alloc " + name + " " + std::to_string(kMiB), {kSuccess});
    expect(member, "free " + name, {kSuccess});
}

}  // namespace cuslice::tests::model
