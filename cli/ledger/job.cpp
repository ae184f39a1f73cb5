// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/job.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/gpus/unseen_gpus.h"
#include "cli/ledger/reservation.h"
#include "cli/ledger/waiting.h"
#include "cli/settings/launcher_settings.h"
#include "cli/text/exit_codes.h"
#include "cli/text/report.h"
#include "config/resolve.h"
#include "config/split/plan.h"
#include "policy/base/kernel_clock.h"

namespace cuslice::cli {
namespace {

using ledger::Joined;

// One job's name for as long as the machine runs: pids are used again, also by containers at the same time.
std::string new_name() {
    uint64_t random = 0;
    // getrandom itself is newer than the C library 2.17.
    if (::syscall(SYS_getrandom, &random, sizeof random, 0) != static_cast<long>(sizeof random))
        random = kernel_clock(CLOCK_MONOTONIC);
    char name[48];
    std::snprintf(name, sizeof name, "%d-%08x", ::getpid(), static_cast<unsigned>(random));
    return name;
}

// Nothing to share or reserve where nothing limits anything. A part has a limit in any case.
bool limits_anything(const Settings& settings) {
    for (const Entry& entry : settings.entries())
        if (is_amount(entry.key))
            return true;
    return splits_any(settings);
}

// One job about to begin.
class Start {
  public:
    Start(const Environment& environment, const Settings& settings, Machine& machine, const std::string& command)
        : folder_(sharing_folder(settings, environment)),
          name_(new_name()),
          command_(command),
          settings_(settings),
          waiting_(settings, machine, command) {}

    /// Value of CUSLICE_JOB: the job's name, and the ledgers in which the job was made.
    std::string name() const { return name_ + made_in_; }
    bool ledger_failed() const { return ledger_failed_; }
    int take_each(const std::vector<Gpu>& gpus);
    int take_any(const std::vector<Gpu>& gpus, bool reserve, const Gpu** chosen);

  private:
    void open(Reservation& one, bool needed);
    static std::string advice(const Reservation& one);
    Joined take(Reservation& one);
    void keep(std::unique_ptr<Reservation>& one);

    const std::string folder_, name_, command_;
    const Settings& settings_;
    Waiting waiting_;
    bool ledger_failed_ = false;
    int code_ = 0;  // the launcher's, where the job can't start
    std::string made_in_;
};

// `needed`: without a ledger nothing starts, as each process would have the limit to itself.
void Start::open(Reservation& one, bool needed) {
    if (ledger_failed_)
        return;
    if (one.open(folder_)) {
        if (one.rebuilt())
            warn("the ledger in " + folder_ + " was damaged or of another version and has been recreated");
        return;
    }
    ledger_failed_ = true;
    if (!needed)
        return;
    code_ = one.no_place() ? kConfig : kRefused;
    warn("the limit can't be shared between processes: " + one.failure() + advice(one) +
         ", or give each process a limit of its own with --per-process");
}

std::string Start::advice(const Reservation& one) {
    if (one.no_place())
        return ". Make room there (in a container: docker run --shm-size), name another folder with --dir";
    if (one.stranger())
        return ". Have an administrator remove what is in the way, name another folder with --dir";
    return ". Name another folder with --dir";
}

void Start::keep(std::unique_ptr<Reservation>& one) {
    static Reservations kept;  // as long as the process, which becomes the program
    if (one->taken())
        made_in_ += one->made_in();
    kept.push_back(std::move(one));
}

// Where a place can't be had for another reason than memory, nothing starts either.
Joined Start::take(Reservation& one) {
    const Joined how = one.take(name_, command_);
    if (how == Joined::yes || how == Joined::refused)
        return how;
    warn("nothing can be reserved on " + one.name() + ": " + one.failure());
    code_ = kRefused;
    return how;
}

// In the order of their UUIDs: two jobs that wait while they hold a part never wait for each other.
int Start::take_each(const std::vector<Gpu>& gpus) {
    std::vector<Gpu> sorted = gpus;
    std::sort(sorted.begin(), sorted.end(), [](const Gpu& a, const Gpu& b) { return a.uuid < b.uuid; });
    for (const Gpu& gpu : sorted) {
        Reservations one;
        one.push_back(std::make_unique<Reservation>(gpu, settings_));
        if (one[0]->asked() == 0)
            continue;
        open(*one[0], true);
        if (code_ != 0)
            return code_;
        while ((one[0]->seen() && !one[0]->fits()) || take(*one[0]) == Joined::refused) {
            if (waiting_.go_on(one))
                continue;
            warn(waiting_.last_word(*one[0]));
            one[0]->close();
            return kRefused;
        }
        if (code_ != 0)
            return one[0]->close(), code_;
        waiting_.ended(*one[0]);
        keep(one[0]);
    }
    return 0;
}

// The emptiest on which the slice fits. Somebody else may take it between the look and the claim; then the next one.
int Start::take_any(const std::vector<Gpu>& gpus, bool reserve, const Gpu** chosen) {
    Reservations all;
    for (const Gpu& gpu : gpus) {
        all.push_back(std::make_unique<Reservation>(gpu, settings_));
        open(*all.back(), reserve);
        if (code_ != 0)
            return code_;
    }
    for (const auto& one : all)
        one->look();
    Reservation* taken = nullptr;
    while (taken == nullptr) {
        std::stable_sort(all.begin(), all.end(),
                         [](const auto& a, const auto& b) { return a->available() > b->available(); });
        for (const auto& one : all) {
            if (taken != nullptr || !one->fits())
                continue;
            const bool asks = reserve && !ledger_failed_ && one->asked() != 0;
            if (!asks || take(*one) == Joined::yes)
                taken = one.get();
        }
        if (code_ != 0)
            break;
        // Without a reservation nothing is refused: the library holds the program to its limit.
        if (taken == nullptr && (!reserve || ledger_failed_))
            taken = all.front().get();
        if (taken != nullptr || waiting_.go_on(all))
            continue;
        for (const auto& one : all) {
            warn(waiting_.last_word(*one));
            one->close();
        }
        return kRefused;
    }
    if (code_ != 0) {
        for (const auto& one : all)
            one->close();
        return code_;
    }
    waiting_.ended(*taken);
    for (const Gpu& gpu : gpus)
        if (gpu.uuid == taken->gpu().uuid)
            *chosen = &gpu;
    for (auto& one : all) {
        one->close();
        if (one.get() == taken)
            keep(one);
    }
    return 0;
}

}  // namespace

Gpu emptiest(const Environment& environment, const Settings& settings, Machine& machine, const Selection& selection) {
    const Gpu* chosen = nullptr;
    Start(environment, settings, machine, "").take_any(selection.gpus, false, &chosen);
    return *chosen;
}

int start_job(Environment& environment, const Settings& settings, Machine& machine, Selection& selection,
              const std::string& command) {
    const bool alone = is_on(settings, Key::per_process);
    const bool limits = !alone && limits_anything(settings);
    // The lease of a GPU's time knows jobs by their names, also where no memory is shared.
    const bool shares = limits || (!alone && shares_time(settings));
    const std::string outer = environment.get(kJobVariable).value_or("");
    // An outer job has its reservation, and this one lies within it.
    const bool reserves = limits && outer.empty() && !admits_at_first_context(settings);
    Start start(environment, settings, machine, command);

    int code = 0;
    if (selection.how == Selection::How::any) {
        const Gpu* chosen = nullptr;
        code = start.take_any(selection.gpus, reserves, &chosen);
        if (chosen)
            select_one(selection, *chosen);
        if (chosen && limits)
            warn_unlimited(settings, selection.gpus.front());
    } else if (reserves) {
        const bool listed = selection.how == Selection::How::listed;
        if (listed)
            code = start.take_each(selection.gpus);
        else if (const auto gpu = machine.only())
            code = start.take_each({*gpu});
        else if (machine.hung())
            warn(machine.all().failure + ": nothing is reserved before the program starts");
    }
    if (shares && !(reserves && start.ledger_failed()))
        environment.set(kJobVariable, outer.empty() ? start.name() : outer + "," + start.name());
    return code;
}

}  // namespace cuslice::cli
