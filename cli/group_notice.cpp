#include "cli/group_notice.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/launcher_settings.h"
#include "cli/ledger_files.h"
#include "config/container_group.h"
#include "config/resolve.h"
#include "config/size.h"
#include "policy/ledger/ledger.h"

namespace cuslice::cli {
namespace {

// A group that lives on one GPU.
struct Found {
    std::string uuid;
    std::uint64_t limit, capacity;
};

constexpr std::size_t kUuidStart = 12;  // GPU- and eight digits, which name it everywhere

std::string setting_of(std::uint64_t bytes) {
    constexpr std::uint64_t kMiB = 1 << 20;
    return bytes % kMiB == 0 ? std::to_string(bytes / kMiB) + "MiB" : std::to_string(bytes / 1024) + "KiB";
}

std::vector<Found> living_groups(const std::string& folder, const char* name) {
    std::vector<Found> found;
    const LedgerFiles files(folder);
    for (const LedgerFiles::One& one : files.all()) {
        if (!one.own) continue;
        ledger::Ledger own;
        ledger::Watched watched;
        if (!own.open_existing(folder.c_str(), one.uuid.c_str(), nullptr)) continue;
        if (own.watch(ledger::AccountKind::group, name, &watched) && watched.count != 0)
            found.push_back({one.uuid, watched.limit, own.capacity()});
        own.close();
    }
    return found;
}

void look(const Environment& environment, const Settings& settings, const Installation& installation,
          Machine& machine) {
    const std::string group(group_name(settings).view());
    const std::string folder = sharing_folder(settings, environment);
    std::vector<Found> found = living_groups(folder, group.c_str());
    if (found.empty()) return;
    // Settings count GPUs in PCI order, over all of the machine.
    const std::vector<Gpu> all = settings.needs_index() ? machine.all().list : std::vector<Gpu>();
    const auto asked = [&](const Found& one) -> std::optional<std::uint64_t> {
        GpuIdentity identity;
        one.uuid.copy(identity.uuid, sizeof identity.uuid - 1);
        for (const Gpu& gpu : all)
            if (gpu.uuid == one.uuid) identity = identity_of(gpu, gpu.ordinal);
        const auto limit = group_limit_for(settings, identity);
        return limit ? std::optional(std::min(*limit, one.capacity)) : std::nullopt;
    };
    std::erase_if(found, [&](const Found& one) { return asked(one).value_or(one.limit) == one.limit; });
    if (found.empty()) return;
    const Gpus seen = query_visible(environment, settings, installation);
    for (const Found& one : found) {
        const bool there =
            std::any_of(seen.list.begin(), seen.list.end(), [&](const Gpu& gpu) { return gpu.uuid == one.uuid; });
        if (seen.failure.empty() && !there) continue;
        const bool none = one.limit == ledger::kNoLimitBytes;
        const std::uint64_t wanted = *asked(one);
        warn("group " + group + ": on " + one.uuid.substr(0, kUuidStart) + " its limit is " +
             (none ? "none" : std::string(format_size(one.limit).view())) + " and stays so; the " +
             std::string(format_size(wanted).view()) + " given here are ignored. To change it: cuslice set --group " +
             group + " --limit " + setting_of(wanted));
    }
}

}  // namespace

void warn_group_limit(const Environment& environment, const Settings& settings, const Installation& installation,
                      Machine& machine) {
    const Entry* group = find(settings, Key::group);
    const bool limited = std::any_of(settings.entries().begin(), settings.entries().end(),
                                     [](const Entry& entry) { return entry.key == Key::group_limit; });
    if (!group || !limited) return;
    // In a process of its own: closing a ledger's file would drop the lock of a job that this process has a place in.
    const pid_t child = ::fork();
    if (child == 0) {
        look(environment, settings, installation, machine);
        ::_exit(0);
    }
    if (child > 0) ::waitpid(child, nullptr, 0);
}

}  // namespace cuslice::cli
