// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/holders.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "cli/ledger/ledger_files.h"
#include "cli/ledger/users.h"
#include "cli/text/command_line.h"
#include "config/uuid/fake.h"
#include "policy/base/kernel_clock.h"
#include "policy/ledger/refusal.h"
#include "policy/ledger/total.h"

namespace cuslice::cli {
namespace {

using Granted = std::map<std::string, ledger::Granted>;  // by GPU

// A whole file at one moment. Read, not mapped: it may be another user's, who could cut it short under us.
bool read_file(const LedgerFiles::One& one, std::vector<char>& bytes, Holders& found) {
    ledger::LedgerError why;
    bool missing = false;
    const int file = ledger::open_foreign(one.path.c_str(), one.where.user, &missing, &why);
    bytes.resize(sizeof(ledger::File));
    const bool read = file >= 0 && ::pread(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    if (file >= 0)
        ::close(file);
    if (read)
        return true;
    if (missing)
        return false;
    found.failures.emplace_back(file < 0 ? why.text : one.path + ": it was cut short");
    found.own_failed = found.own_failed || one.own;
    return false;
}

// This user's own is believed to know best who of its processes lives.
ledger::Trusted trusted(const LedgerFiles::One& one) {
    return one.own ? ledger::Trusted::own : ledger::Trusted::others;
}

void add_holders(const ledger::File& file, const LedgerFiles::One& one, std::vector<Holder>& holding) {
    for (uint32_t i = 0; i < file.header.members && i < ledger::kMembers; i++) {
        const ledger::Member& member = file.members[i];
        if (member.state.load() != ledger::MemberState::live || member.account >= ledger::kAccounts ||
            !ledger::lives(member, one.where, trusted(one)) || ledger::is_doubled(file, member))
            continue;
        holding.push_back(holder_of(file, i, one));
    }
}

bool has_living_member(const ledger::File& file, const ledger::Account& account, const LedgerFiles::One& one) {
    if (ledger::is_free(account))
        return false;
    const auto index = static_cast<uint32_t>(&account - file.accounts);
    for (uint32_t i = 0; i < file.header.members && i < ledger::kMembers; i++)
        if (file.members[i].state.load() == ledger::MemberState::live && file.members[i].account == index &&
            ledger::lives(file.members[i], one.where, trusted(one)))
            return true;
    return false;
}

// False: the file remembers no job of this name.
bool add_peaks(const ledger::File& file, const LedgerFiles::One& one, const std::string& name, JobPeak& job) {
    bool found = false;
    for (const ledger::Account& account : file.accounts) {
        if (account.kind != ledger::AccountKind::job)
            continue;
        if (std::string_view(account.name, strnlen(account.name, sizeof account.name)) != name)
            continue;
        found = true;
        job.peak = std::max(job.peak, ledger::peak_of(account));
        const bool ended = !has_living_member(file, account, one);
        if (!ended || job.ended)
            job.limit = account.limit.load();
        job.ended = job.ended && ended;
    }
    return found;
}

void add_waiting(const ledger::File& file, const LedgerFiles::One& one, Granted& granted, Holders& found) {
    const uint64_t now = now_realtime();
    granted[one.uuid].note_all(file.header.granted, now);
    for (uint32_t i = 0; i < ledger::kTickets; i++)
        if (ledger::waits(file.tickets[i], one.where)) {
            WaitingProcess row{one.uuid, ledger::waiter_of(file.tickets[i], one.where.user, now), 0, 0, {}};
            const ledger::Waiter& waiter = row.waiter;
            row.command_line =
                read_command_line({waiter.pid, waiter.pid_namespace, waiter.start_time}, one.where.owner);
            found.waiting.push_back(std::move(row));
        }
}

// One queue for each GPU, whoever its waiters are.
void number(Granted& granted, Holders& found) {
    std::sort(found.waiting.begin(), found.waiting.end(), [](const WaitingProcess& a, const WaitingProcess& b) {
        return std::tie(a.gpu, a.waiter.order, a.waiter.user) < std::tie(b.gpu, b.waiter.order, b.waiter.user);
    });
    const WaitingProcess* before = nullptr;
    for (WaitingProcess& row : found.waiting) {
        row.position = before != nullptr && before->gpu == row.gpu ? before->position + 1 : 1;
        row.past = granted[row.gpu].past(row.waiter.order);
        before = &row;
    }
}

}  // namespace

Holders read_holders(const std::string& folder) {
    Holders found;
    Granted granted;
    const LedgerFiles files(folder);
    for (const LedgerFiles::One& one : files.all()) {
        if (one.own) {
            ledger::Ledger own;
            ledger::LedgerError locked;
            if (own.open_existing(folder.c_str(), one.uuid.c_str(), nullptr))
                own.take_back_dead(&locked);
            own.close();
            if (locked.text[0])
                found.failures.push_back(one.uuid + ": not all is up to date: " + locked.text);
        }
        std::vector<char> bytes;
        if (!read_file(one, bytes, found))
            continue;
        const auto& content = *reinterpret_cast<const ledger::File*>(bytes.data());
        uint64_t& capacity = found.capacities[one.uuid];
        capacity = std::max(capacity, content.header.capacity);
        add_holders(content, one, found.holding);
        add_waiting(content, one, granted, found);
    }
    std::sort(found.holding.begin(), found.holding.end(), [](const Holder& a, const Holder& b) {
        return std::tie(a.gpu, a.user, a.kind, a.name, a.pid) < std::tie(b.gpu, b.user, b.kind, b.name, b.pid);
    });
    number(granted, found);
    found.times = read_job_times(folder, found.holding);
    return found;
}

Holders without_fakes(Holders found) {
    std::erase_if(found.holding, [](const Holder& row) { return is_fake_uuid(row.gpu); });
    std::erase_if(found.waiting, [](const WaitingProcess& row) { return is_fake_uuid(row.gpu); });
    std::erase_if(found.times, [](const JobTime& row) { return is_fake_uuid(row.gpu); });
    std::erase_if(found.capacities, [](const auto& row) { return is_fake_uuid(row.first); });
    return found;
}

std::vector<JobPeak> read_peaks(const std::string& folder, const std::string& name,
                                std::vector<std::string>& failures) {
    std::vector<JobPeak> peaks;
    Holders read;
    const LedgerFiles files(folder);
    for (const LedgerFiles::One& one : files.all()) {
        std::vector<char> bytes;
        if (!one.own && ::geteuid() != 0)
            continue;
        JobPeak job{one.uuid, one.where.user, 0, 0, true};
        if (read_file(one, bytes, read) &&
            add_peaks(*reinterpret_cast<const ledger::File*>(bytes.data()), one, name, job))
            peaks.push_back(job);
    }
    std::sort(peaks.begin(), peaks.end(),
              [](const JobPeak& a, const JobPeak& b) { return std::tie(a.gpu, a.user) < std::tie(b.gpu, b.user); });
    failures.insert(failures.end(), read.failures.begin(), read.failures.end());
    return peaks;
}

Json json_of(const JobPeak& peak) {
    return {{"gpu", peak.gpu},
            {"uid", peak.user},
            {"user", user_name(peak.user)},
            {"peak", peak.peak},
            {"limit", peak.limit == ledger::kNoLimitBytes ? Json() : Json(peak.limit)},
            {"ended", peak.ended}};
}

Json json_of(const WaitingProcess& waiting) {
    return {{"gpu", waiting.gpu},
            {"fake", is_fake_uuid(waiting.gpu)},
            {"position", waiting.position},
            {"uid", waiting.waiter.user},
            {"user", user_name(waiting.waiter.user)},
            {"pid", waiting.waiter.pid},
            {"command", waiting.waiter.command},
            {"command_line", json_of_words(waiting.command_line)},
            {"bytes", waiting.waiter.bytes},
            {"seconds", ledger::seconds_since(waiting.waiter.since)},
            {"passed", waiting.past}};
}

}  // namespace cuslice::cli
