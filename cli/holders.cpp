#include "cli/holders.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <tuple>

#include "cli/users.h"
#include "policy/base/kernel_clock.h"
#include "policy/ledger/refusal.h"
#include "policy/ledger/total.h"
#include "policy/ledger/users.h"

namespace cuslice::cli {
namespace {

using Granted = std::map<std::string, ledger::Granted>;  // by GPU

// A whole file at one moment. Read, not mapped: it may be another user's, who could cut it short under us.
bool read_file(const std::string& path, unsigned user, std::vector<char>& bytes, int& file, Holders& found) {
    ledger::LedgerError why;
    bool missing = false;
    file = ledger::open_foreign(path.c_str(), user, &missing, &why);
    bytes.resize(sizeof(ledger::File));
    if (file >= 0 && ::pread(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size())) return true;
    if (missing) return false;
    found.failures.emplace_back(file < 0 ? why.text : path + ": it was cut short");
    found.own_failed = found.own_failed || user == ledger::this_user(path.substr(0, path.rfind('/')).c_str());
    return false;
}

std::string name_of(ledger::AccountKind kind) {
    if (kind == ledger::AccountKind::rule) return "rule";
    return kind == ledger::AccountKind::group ? "group" : "job";
}

void add_holders(const ledger::File& file, int descriptor, const std::string& uuid, unsigned user,
                 std::vector<Holder>& holding) {
    for (std::uint32_t i = 0; i < file.header.members && i < ledger::kMembers; i++) {
        const ledger::Member& member = file.members[i];
        if (member.state.load() != ledger::MemberState::live || member.account >= ledger::kAccounts ||
            !ledger::lives(member, i, descriptor) || ledger::is_doubled(file, member))
            continue;
        const ledger::Account& account = file.accounts[member.account];
        Holder row;
        row.gpu = uuid;
        row.user = user;
        row.kind = name_of(account.kind);
        row.inner = account.inner != 0;
        row.name.assign(account.name, strnlen(account.name, sizeof account.name));
        row.pid = member.pid;
        row.command.assign(member.command, strnlen(member.command, sizeof member.command));
        std::int64_t held = 0;
        std::uint64_t last_use = 0;
        for (std::uint32_t stripe = 0; stripe < ledger::kStripes; stripe++) {
            held = ledger::plus(held, file.stripes[i * ledger::kStripes + stripe].held.load());
            last_use = std::max(last_use, file.stripes[i * ledger::kStripes + stripe].last_use.load());
        }
        row.used = held > 0 ? static_cast<std::uint64_t>(held) : 0;
        row.together = account.total.bytes;
        row.peak = ledger::peak_of(account.total, account.peak);
        row.reserved = account.reserved.load();
        row.limit = account.limit.load();
        row.since = member.since;
        const std::uint64_t now = now_monotonic_seconds();
        // Both in whole seconds, of two clocks: nobody is idle for longer than since the beginning.
        row.idle_seconds = std::min(now > last_use ? now - last_use : 0, ledger::seconds_since(row.since));
        holding.push_back(row);
    }
}

bool has_living_member(const ledger::File& file, const ledger::Account& account, int descriptor) {
    if (account.state.load() == ledger::AccountState::free) return false;
    const auto index = static_cast<std::uint32_t>(&account - file.accounts);
    for (std::uint32_t i = 0; i < file.header.members && i < ledger::kMembers; i++)
        if (file.members[i].state.load() == ledger::MemberState::live && file.members[i].account == index &&
            ledger::lives(file.members[i], i, descriptor))
            return true;
    return false;
}

// False: the file remembers no job of this name.
bool add_peaks(const ledger::File& file, int descriptor, const std::string& name, JobPeak& job) {
    bool found = false;
    for (const ledger::Account& account : file.accounts) {
        if (account.kind != ledger::AccountKind::job) continue;
        if (std::string_view(account.name, strnlen(account.name, sizeof account.name)) != name) continue;
        found = true;
        job.peak = std::max(job.peak, ledger::peak_of(account.total, account.peak));
        const bool ended = !has_living_member(file, account, descriptor);
        if (!ended || job.ended) job.limit = account.limit.load();
        job.ended = job.ended && ended;
    }
    return found;
}

void add_waiting(const ledger::File& file, int descriptor, const std::string& uuid, unsigned user, Granted& granted,
                 Holders& found) {
    const std::uint64_t now = now_realtime();
    granted[uuid].note_all(file.header.granted, now);
    for (std::uint32_t i = 0; i < ledger::kTickets; i++)
        if (ledger::waits(file.tickets[i], i, descriptor))
            found.waiting.push_back({uuid, ledger::waiter_of(file.tickets[i], user, now)});
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
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
        unsigned user = 0;
        char uuid[64];
        if (!ledger::parse_ledger_name(entry.path().filename().c_str(), &user, uuid)) continue;
        if (user == ledger::this_user(folder.c_str())) {
            ledger::Ledger own;
            ledger::LedgerError locked;
            if (own.open_existing(folder.c_str(), uuid, nullptr)) own.take_back_dead(&locked);
            own.close();
            if (locked.text[0]) found.failures.push_back(std::string(uuid) + ": not all is up to date: " + locked.text);
        }
        std::vector<char> bytes;
        int file = -1;
        if (read_file(entry.path().string(), user, bytes, file, found)) {
            const auto& content = *reinterpret_cast<const ledger::File*>(bytes.data());
            std::uint64_t& capacity = found.capacities[uuid];
            capacity = std::max(capacity, content.header.capacity);
            add_holders(content, file, uuid, user, found.holding);
            add_waiting(content, file, uuid, user, granted, found);
        }
        if (file >= 0) ::close(file);
    }
    std::sort(found.holding.begin(), found.holding.end(), [](const Holder& a, const Holder& b) {
        return std::tie(a.gpu, a.user, a.kind, a.name, a.pid) < std::tie(b.gpu, b.user, b.kind, b.name, b.pid);
    });
    number(granted, found);
    return found;
}

std::vector<JobPeak> read_peaks(const std::string& folder, const std::string& name,
                                std::vector<std::string>& failures) {
    std::vector<JobPeak> peaks;
    Holders read;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
        unsigned user = 0;
        char uuid[64];
        std::vector<char> bytes;
        int descriptor = -1;
        if (!ledger::parse_ledger_name(entry.path().filename().c_str(), &user, uuid)) continue;
        if (user != ledger::this_user(folder.c_str()) && ::geteuid() != 0) continue;
        JobPeak job{uuid, user, 0, 0, true};
        if (read_file(entry.path().string(), user, bytes, descriptor, read) &&
            add_peaks(*reinterpret_cast<const ledger::File*>(bytes.data()), descriptor, name, job))
            peaks.push_back(job);
        if (descriptor >= 0) ::close(descriptor);
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

Json json_of(const Holder& holder) {
    return {{"gpu", holder.gpu},
            {"uid", holder.user},
            {"user", user_name(holder.user)},
            {"kind", holder.kind},
            {"name", holder.name},
            {"pid", holder.pid},
            {"command", holder.command},
            {"used", holder.used},
            {"together", holder.together},
            {"peak", holder.peak},
            {"reserved", holder.reserved},
            {"limit", holder.limit == ledger::kNoLimitBytes ? Json() : Json(holder.limit)},
            {"seconds", ledger::seconds_since(holder.since)},
            {"idle_seconds", holder.idle_seconds}};
}

Json json_of(const WaitingProcess& waiting) {
    return {{"gpu", waiting.gpu},
            {"position", waiting.position},
            {"uid", waiting.waiter.user},
            {"user", user_name(waiting.waiter.user)},
            {"pid", waiting.waiter.pid},
            {"command", waiting.waiter.command},
            {"bytes", waiting.waiter.bytes},
            {"seconds", ledger::seconds_since(waiting.waiter.since)},
            {"passed", waiting.past}};
}

std::string age_text(std::uint64_t seconds) { return std::string(ledger::format_age(seconds).view()); }

}  // namespace cuslice::cli
