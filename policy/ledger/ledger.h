// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/ledger/admission.h"
#include "policy/ledger/committed.h"
#include "policy/ledger/ledger_file.h"
#include "policy/ledger/roster.h"

namespace cuslice::ledger {

// Some accounts at one moment, as their members see them. Filled by watch().
struct Watched {
    static constexpr unsigned kMax = 512;
    uint64_t limit = kNoLimitBytes;  // bytes; of the account that has least left
    uint64_t used = 0;               // of the same
    unsigned count = 0;
    int32_t pids[kMax] = {};  // of all
};

// One GPU's ledger: this user's file, and what can be read of the others'. Thread-safe; all waiting is bounded.
class Ledger {
  public:
    // Opens the user's file in `folder`, for a GPU of `capacity` bytes. See open_own(). `keep_over_exec`: what is
    // joined is kept for the program that this process becomes.
    bool open(const char* folder, const char* uuid, uint64_t capacity, bool keep_over_exec, LedgerError* why) {
        LedgerFile& own = admission_.roster.file;
        return own.open(folder, uuid, capacity, keep_over_exec, why);
    }
    // The same for a file that is there, without making one.
    bool open_existing(const char* folder, const char* uuid, LedgerError* why) {
        return admission_.roster.file.open_existing(folder, uuid, why);
    }
    uint64_t capacity() const { return admission_.roster.file.capacity(); }
    // Another file under the same name has another.
    uint64_t id() const {
        const DisablingLockGuard lock(admission_.roster.file.mutex());
        return admission_.roster.file.contents().header.id;
    }
    // For a process that goes on without it. Not while it has a membership.
    void close();
    bool opened() const { return admission_.roster.file.opened(); }
    Found found() const {
        const DisablingLockGuard lock(admission_.roster.file.mutex());
        return admission_.roster.file.now().found;
    }

    // Sets the rule whose slice, of `limit` bytes, holds this process's reservations. The rule's jobs together count
    // as promised no more than the slice, whatever each has reserved. Before look() and join(); null: no rule.
    void reserves_under(const char* rule, uint64_t limit) { admission_.reserves_under(rule, limit); }

    /// Sets the most that another user's job is believed to have of the GPU, in bytes: the ceiling that the system's
    /// file sets for everybody. Before look() and join(). Whatever their ledgers say, a user's jobs together have no
    /// more than all of the GPU.
    void believes_others(uint64_t most_of_a_job) { admission_.believes_others(most_of_a_job); }

    // Makes this process a member. `in_use`: bytes that are in use on the GPU by everybody, as NVML has it; 0 where
    // that is not known. On refusal `*committed` says who stands in the way and `*available` what could be had. The
    // membership has to last as long as the ledger.
    Joined join(const Request& request, uint64_t in_use, Membership* membership, Committed* committed,
                uint64_t* available, LedgerError* why) {
        return admission_.join(request, in_use, membership, committed, available, why);
    }

    // Finds out what could be reserved now, and who stands in the way of more, without asking for any of it. `in_use`
    // as for join(). False where the ledger's lock can't be had. A process that waits thereby says that it still
    // does.
    bool look(uint64_t in_use, Committed* committed, uint64_t* available) {
        return admission_.look(in_use, committed, available);
    }

    // This process waits for so many bytes, from now on and until join() reserves something or leave_queue(): its
    // ticket says so to all others. It looks again at least every few seconds (kLooksWithin). Where all tickets are
    // taken, or the lock can't be had, it gets one when it next looks; until then it is as new each time. `command` as
    // in Request.
    void queue_up(uint64_t bytes, const char* command) { admission_.queue_up(bytes, command); }
    void leave_queue() { admission_.leave_queue(); }
    // True if this process has a ticket, and thereby a place in the queue.
    bool queued() const { return admission_.queued(); }
    // Nothing is to be kept for it here, as something is kept for it on another GPU.
    void step_aside(bool aside) { admission_.step_aside(aside); }

    // Takes back what dead members held. True if there were any. Also makes sure of this process's own places: of their
    // locks, and that the file is still there. `*why`: where nobody could look.
    bool take_back_dead(LedgerError* why = nullptr);

    // Adds what an account holds, and who its members are, to `*watched`; the dead are taken back first. False if this
    // user has no such account here.
    bool watch(AccountKind kind, const char* name, Watched* watched);

    // A group as it is now, for whoever may join it. False where the lock can't be had.
    bool look_at_group(const char* name, GroupTerms* terms);

    /// The fewest bytes that a process's first context of this kind has taken, as far as the file's users know; 0: none
    /// was seen. `kind` isn't 0.
    uint64_t least_context(uint64_t kind) const;
    /// Keeps it for processes to come, if it is news, unless the lock can't be had at once.
    void note_context(uint64_t kind, uint64_t bytes);

    // Sets an account's limit. False if this user has no such account here.
    bool set_limit(AccountKind kind, const char* name, uint64_t limit);

    // In a forked child: neither places nor locks are the child's, whatever the parent's threads were doing.
    void forget();

  private:
    AdmissionControl admission_;  // the others lie in it: references would be addresses for the loader to write
};

}  // namespace cuslice::ledger
