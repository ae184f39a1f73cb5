// SPDX-License-Identifier: Apache-2.0
#include "cli/top/choice.h"

#include <algorithm>

#include "cli/text/command_line.h"
#include "policy/ledger/accounts.h"

namespace cuslice::cli::top {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool has(std::string_view text, std::string_view part) {
    return std::search(text.begin(), text.end(), part.begin(), part.end(),
                       [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

// The texts by which a row is found.
struct Row {
    std::string_view gpu;
    unsigned user;
    std::string_view name;
    int pid;
    std::string command;
};

bool matches(const Snapshot& snapshot, const Row& row, std::string_view filter) {
    return has(row.gpu, filter) || has(snapshot.user_called(row.user), filter) || has(row.name, filter) ||
           has(row.command, filter) || has(std::to_string(row.pid), filter);
}

using Account = std::vector<Holder>;

std::vector<Account> accounts_of(const std::vector<Holder>& holding) {
    std::vector<Account> accounts;
    for (const Holder& holder : holding) {
        if (accounts.empty() || account_of(accounts.back().front()) != account_of(holder))
            accounts.emplace_back();
        accounts.back().push_back(holder);
    }
    return accounts;
}

bool is_chosen(const Snapshot& snapshot, const Account& account, std::string_view filter) {
    return std::any_of(account.begin(), account.end(), [&](const Holder& holder) {
        const std::string command = command_text(holder.command_line, holder.command, CommandDetail::line);
        return matches(snapshot, {holder.gpu, holder.user, holder.name, holder.pid, command}, filter);
    });
}

// Held memory as a part of the limit; none where there is no limit.
double share_of(const Holder& holder) {
    const bool limited = holder.limit != ledger::kNoLimitBytes && holder.limit != 0;
    return limited ? static_cast<double>(holder.together) / static_cast<double>(holder.limit) : -1;
}

// True if `a` is to be above `b`. Amounts begin with the largest.
bool is_before(const Snapshot& snapshot, const Holder& a, const Holder& b, Order order) {
    switch (order) {
        case Order::used:
            return a.together > b.together;
        case Order::share:
            return share_of(a) > share_of(b);
        case Order::user:
            return snapshot.user_called(a.user) < snapshot.user_called(b.user);
        case Order::command:
            return command_text(a.command_line, a.command, CommandDetail::line) <
                   command_text(b.command_line, b.command, CommandDetail::line);
        default:
            return false;  // the machine's
    }
}

}  // namespace

std::string_view name_of(Order order) {
    constexpr std::string_view kNames[] = {"GPU", "used", "part of the limit", "user", "command"};
    return kNames[static_cast<size_t>(order)];
}

Snapshot chosen(const Snapshot& snapshot, const Choice& choice) {
    Snapshot part = snapshot;
    for (const GpuLoad& load : snapshot.gpus)
        part.beyond[load.gpu.uuid] = snapshot.reserved_beyond_use(load.gpu.uuid);
    std::vector<Account> accounts = accounts_of(snapshot.holders.holding);
    if (!choice.filter.empty()) {
        std::erase_if(accounts, [&](const Account& one) { return !is_chosen(snapshot, one, choice.filter); });
        std::erase_if(part.holders.waiting, [&](const WaitingProcess& one) {
            const std::string command = command_text(one.command_line, one.waiter.command, CommandDetail::line);
            return !matches(snapshot, {one.gpu, one.waiter.user, {}, one.waiter.pid, command}, choice.filter);
        });
        std::erase_if(part.holders.times, [&](const JobTime& one) {
            const std::string command = command_text(one.command_line, "", CommandDetail::line);
            const int pid = one.pids.empty() ? 0 : one.pids.front();
            return !matches(snapshot, {one.gpu, one.user, one.name, pid, command}, choice.filter);
        });
        std::erase_if(part.caches, [&](const Cache& one) {
            const std::string command = command_text(one.command_line, one.command, CommandDetail::line);
            return !has(one.stats.uuid, choice.filter) && !has(command, choice.filter) &&
                   !has(std::to_string(one.pid), choice.filter);
        });
    }
    std::stable_sort(accounts.begin(), accounts.end(), [&](const Account& a, const Account& b) {
        return is_before(snapshot, a.front(), b.front(), choice.order);
    });
    if (choice.reversed)
        std::reverse(accounts.begin(), accounts.end());
    part.holders.holding.clear();
    for (const Account& account : accounts)
        part.holders.holding.insert(part.holders.holding.end(), account.begin(), account.end());
    return part;
}

}  // namespace cuslice::cli::top
