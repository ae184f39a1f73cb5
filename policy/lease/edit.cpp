// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/edit.h"

#include "policy/lease/change.h"
#include "policy/lease/file_maker.h"

namespace cuslice::lease {

namespace {

constexpr uint32_t new_or_old(uint32_t wanted, uint32_t old) { return wanted ? wanted : old; }

}  // namespace

Edited edit_share(State& state, uint64_t job, const char* uuid, const NewShare& share, uint64_t now) {
    const uint32_t place = find_job(state, job);
    if (job == 0 || place == kNoPlace)
        return Edited::no_job;
    const uint32_t gpu = find_gpu(state, uuid);
    if (gpu == kNoPlace || !uses(state.jobs[place], gpu))
        return Edited::not_on_gpu;
    const Claim& claim = state.jobs[place].claims[gpu];
    const uint32_t weight = new_or_old(share.weight, claim.weight);
    const uint32_t cap = new_or_old(share.cap, claim.cap);
    if (cap < weight)
        return Edited::cap_below_share;
    set_share(state, place, gpu, weight, cap, now);
    return Edited::yes;
}

bool LeaseEditor::open(const char* folder, LedgerError* why) {
    const bool opened = folder_.enter(folder, why) && open_existing_lease(folder_.where(), &open_, why) &&
                        folder_.keep_presence(kPresenceMark, ledger::Presence::Lasts::until_exec, why);
    if (opened)
        surroundings_.look_in(folder_);
    else
        close();
    return opened;
}

Edited LeaseEditor::set_share(uint64_t job, const char* uuid, const NewShare& share) {
    const ScratchState scratch;
    if (!scratch.get())
        return Edited::failed;
    Edited edited = Edited::failed;
    const Changed changed = change(*open_.file, *scratch.get(), folder_.presence().id(), surroundings_, [&] {
        edited = edit_share(*scratch.get(), job, uuid, share, surroundings_.now());
        return edited == Edited::yes;
    });
    const bool failed = changed == Changed::damaged || changed == Changed::crowded;
    return failed ? Edited::failed : edited;
}

void LeaseEditor::close() {
    close_lease(&open_);
    folder_.leave(true);
}

}  // namespace cuslice::lease
