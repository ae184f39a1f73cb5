#include "cli/job.h"

#include <sys/random.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/gpu_query.h"
#include "config/resolve.h"
#include "policy/ledger/refusal.h"

namespace cuslice::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Between two looks at the ledger, and between two questions to the driver, which take longer.
constexpr std::chrono::milliseconds kPoll{100}, kQuery{2000};

// One job's name for as long as the machine runs: pids are used again, also by containers at the same time.
std::string new_name() {
    std::uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random))
        random = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
    char name[48];
    std::snprintf(name, sizeof name, "%d-%08x", ::getpid(), static_cast<unsigned>(random));
    return name;
}

// Nothing to share or reserve where nothing limits anything.
bool limits_anything(const Settings& settings) {
    for (const Entry& entry : settings.entries())
        if (is_amount(entry.key)) return true;
    return false;
}

// Settings count GPUs in PCI order, over all of the machine.
int index_of(const Gpu& gpu, const Environment& environment, const Settings& settings,
             const Installation& installation) {
    for (const Gpu& one : query_driver(environment, settings, installation).list)
        if (one.uuid == gpu.uuid) return one.ordinal;
    return -1;
}

std::uint64_t in_use(const Gpu& gpu) { return gpu.free && *gpu.free < gpu.total ? gpu.total - *gpu.free : 0; }

}  // namespace

int start_job(Environment& environment, const Settings& settings, const Installation& installation,
              const std::string& command) {
    const Entry* alone = find(settings, Key::per_process);
    if ((alone && alone->number) || !limits_anything(settings)) return 0;
    const std::string outer = environment.get(kJobVariable).value_or(""), name = new_name();
    const Environment as_it_was = environment;
    environment.set(kJobVariable, outer.empty() ? name : outer + "," + name);
    // An outer job has its reservation, and this one lies within it.
    if (!outer.empty()) return 0;

    const Gpus gpus = query_visible(as_it_was, settings, installation);
    if (!gpus.failure.empty() || gpus.list.size() != 1) return 0;
    const Gpu& gpu = gpus.list.front();
    const int index = settings.needs_index() ? index_of(gpu, as_it_was, settings, installation) : gpu.ordinal;
    const Amount amount = amount_for(settings, identity_of(gpu, index), gpu.total);
    if (!amount.limited) return 0;

    const std::string path(sharing_folder(settings, environment.get(kFakeFolderVariable).value_or("")).view());
    // They live until the program ends: the descriptor, and with it the lock, goes on over exec.
    static ledger::Ledger ledger;
    static ledger::Membership place;
    static ledger::Refusal refusal;
    if (!ledger.open(path.c_str(), gpu.uuid.c_str(), gpu.total, true, &refusal.failure)) {
        complain("the slice can't be shared between processes (" + std::string(refusal.failure.text) +
                     "): each has one of its own",
                 0);
        environment = as_it_was;
        return 0;
    }
    if (ledger.found() == ledger::Found::rebuilt)
        complain("the ledger in " + path + " was damaged or of another version, and was made anew", 0);

    ledger::Request request;
    request.name = name.c_str();
    request.command = command.c_str();
    request.limit = request.reserved = refusal.asked = amount.bytes;
    const Entry* wait = find(settings, Key::wait);
    const auto start = Clock::now();
    auto asked_driver = start;
    refusal.in_use = in_use(gpu);
    for (bool said = false;;) {
        refusal.how =
            ledger.join(request, refusal.in_use, &place, &refusal.committed, &refusal.available, &refusal.failure);
        if (refusal.how != ledger::Joined::refused) break;
        const std::string line =
            "GPU " + std::to_string(index) + ": " + std::string(ledger::describe_refusal(refusal).view());
        const auto now = Clock::now();
        const bool patient =
            wait && wait->number && (wait->number == kForEver || now - start < std::chrono::milliseconds(wait->number));
        if (!patient) return complain(line, kRefused);
        if (!said) complain("waiting. " + line, 0);
        said = true;
        std::this_thread::sleep_for(kPoll);
        if (now - asked_driver < kQuery) continue;
        asked_driver = now;
        const Gpus again = query_visible(as_it_was, settings, installation);
        if (again.list.size() == 1) refusal.in_use = in_use(again.list.front());
    }
    if (refusal.how == ledger::Joined::unavailable)
        complain("nothing is reserved on GPU " + std::to_string(index) + " (" + refusal.failure.text + ")", 0);
    return 0;
}

}  // namespace cuslice::cli
