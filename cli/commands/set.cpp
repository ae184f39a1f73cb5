// SPDX-License-Identifier: Apache-2.0
// cuslice set: another limit for a job or a group that is running, or another share of a GPU's time for a job.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/commands.h"
#include "cli/ledger/ledger_files.h"
#include "cli/ledger/set_share.h"
#include "cli/settings/launcher_settings.h"
#include "cli/text/exit_codes.h"
#include "cli/text/report.h"
#include "config/container_group.h"
#include "config/resolve.h"
#include "config/size.h"
#include "policy/ledger/ledger.h"

namespace cuslice::cli {
namespace {

// Only what the line itself says: a limit of the environment is not meant for somebody else's job.
bool read_flags(const Invocation& invocation, Settings& settings, ConfigError& error) {
    for (const Flag& flag : invocation.arguments.flags) {
        const std::string name = "--" + std::string(traits_of(flag.key).name);
        if (!add_list(settings, flag.key, {Source::flag, 0}, name, flag.value, error))
            return false;
    }
    return true;
}

bool is_of_time(Key key) { return key == Key::share || key == Key::share_cap; }

bool has_any(const Settings& settings, bool (*is)(Key)) {
    return std::ranges::any_of(settings.entries(), [&](const Entry& entry) { return is(entry.key); });
}

// All settings in effect but the new share: a cap alone has its share in the lease.
bool load_all(Invocation invocation, Settings& all, ConfigError& error) {
    std::erase_if(invocation.arguments.flags, [](const Flag& flag) { return is_of_time(flag.key); });
    return load_launcher(all, invocation, error);
}

}  // namespace

int set_limit(const Invocation& invocation) {
    ConfigError error;
    Settings wanted, all;
    if (!read_flags(invocation, wanted, error) || !load_all(invocation, all, error))
        return fail(error, kConfig);
    const Entry* group = find(wanted, Key::group);
    const std::string job = invocation.arguments.job;
    const std::string name = group ? std::string(group_name(wanted).view()) : job;
    if ((group != nullptr) == !job.empty())
        return fail(
            "set: name a group or a job: cuslice set --group NAME --limit SIZE, or --job NAME as cuslice ps shows it",
            kUsage);
    const auto entries = wanted.entries();
    const bool limits = has_any(wanted, is_amount), shares = has_any(wanted, is_of_time);
    if (!limits && !shares)
        return fail(group ? "set: a limit is needed: cuslice set --group " + name + " --limit SIZE"
                          : "set: a limit or a share is needed: cuslice set --job " + name + " --limit SIZE",
                    kUsage);
    if (group && shares)
        return fail("set: a share of a GPU's time is a job's, and not a group's: --job NAME", kUsage);
    if (std::any_of(entries.begin(), entries.end(), [](const Entry& entry) { return entry.plus_context; }))
        return fail("set: +context is settled when a program starts; give the size alone", kUsage);
    if (wanted.needs_index())
        return fail("set: name GPUs by the start of their UUID here, as cuslice ps shows them", kConfig);

    const std::string path = sharing_folder(all, invocation.environment);
    if (shares) {
        const int code = set_share(wanted, all, path, job);
        if (code != 0 || !limits)
            return code;
    }
    unsigned changed = 0;
    bool asked = false;
    const LedgerFiles files(path);
    for (const LedgerFiles::One& one : files.all()) {
        if (!one.own)
            continue;
        GpuIdentity identity;
        one.uuid.copy(identity.uuid, sizeof identity.uuid - 1);
        ledger::Ledger own;
        ledger::LedgerError unused;
        if (!own.open_existing(path.c_str(), one.uuid.c_str(), &unused))
            continue;
        const Amount amount = amount_for(wanted, identity, own.capacity());
        asked = asked || amount.limited;
        const auto kind = group ? ledger::AccountKind::group : ledger::AccountKind::job;
        // An account that nobody is in any more has its limit from whoever comes next.
        ledger::Watched members;
        const bool lives = own.watch(kind, name.c_str(), &members) && members.count != 0;
        const bool done = lives && amount.limited && own.set_limit(kind, name.c_str(), amount.bytes);
        own.close();
        if (!done)
            continue;
        changed++;
        std::printf("%s: %s %s: %s\n", one.uuid.c_str(), group ? "group" : "job", name.c_str(),
                    std::string(format_size(amount.bytes)).c_str());
    }
    if (changed)
        return 0;
    return fail("set: no program runs in " + std::string(group ? "a group " : "a job ") + name +
                    (asked ? "" : " on a GPU that --limit or --fraction names") +
                    ", so there is no limit to change; cuslice ps shows what there is",
                kNoGpu);
}

}  // namespace cuslice::cli
