// cuslice ps: who holds and is promised how much of which GPU.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <tuple>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/json.h"
#include "cli/launcher_settings.h"
#include "cli/table.h"
#include "cli/users.h"
#include "config/resolve.h"
#include "config/size.h"
#include "policy/base/kernel_clock.h"
#include "policy/ledger/queue.h"
#include "policy/ledger/refusal.h"
#include "policy/ledger/total.h"
#include "policy/ledger/users.h"

namespace cuslice::cli {
namespace {

/// One process in one account, or an account's line for a group or job.
struct Row {
    std::string gpu;
    unsigned user = 0;
    std::string kind, name;
    int pid = 0;
    std::string command;
    std::uint64_t used = 0, job_used = 0, reserved = 0, limit = 0;
    std::uint64_t since = 0, idle_seconds = 0;
};

/// One process that waits for a slice of a GPU.
struct WaitingRow {
    std::string gpu;
    ledger::Waiter waiter;
    unsigned position = 0, past = 0;
};

/// What the ledgers say.
struct Found {
    std::vector<Row> rows;
    std::vector<WaitingRow> waiting;
    std::map<std::string, ledger::Granted> granted;  // by GPU
};

/// What could not be looked at, and why.
struct Failures {
    std::vector<std::string> texts;
    bool own = false;  // of this user's ledgers
};

// A whole file at one moment. Read, not mapped: it may be another user's, who could cut it short under us.
bool read_file(const std::string& path, unsigned user, std::vector<char>& bytes, int& file, Failures& failures) {
    ledger::LedgerError why;
    bool missing = false;
    file = ledger::open_foreign(path.c_str(), user, &missing, &why);
    bytes.resize(sizeof(ledger::File));
    if (file >= 0 && ::pread(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size())) return true;
    if (missing) return false;
    failures.texts.emplace_back(file < 0 ? why.text : path + ": it was cut short");
    failures.own = failures.own || user == ledger::this_user(path.substr(0, path.rfind('/')).c_str());
    return false;
}

void add_rows(const ledger::File& file, int descriptor, const std::string& uuid, unsigned user,
              std::vector<Row>& rows) {
    for (std::uint32_t i = 0; i < file.header.members && i < ledger::kMembers; i++) {
        const ledger::Member& member = file.members[i];
        if (member.state.load() != ledger::MemberState::live || member.account >= ledger::kAccounts ||
            !ledger::lives(member, i, descriptor) || ledger::is_doubled(file, member))
            continue;
        const ledger::Account& account = file.accounts[member.account];
        Row row;
        row.gpu = uuid;
        row.user = user;
        row.kind = account.kind == ledger::AccountKind::group ? "group" : "job";
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
        row.job_used = account.total.bytes;
        row.reserved = account.reserved.load();
        row.limit = account.limit.load();
        row.since = member.since;
        const std::uint64_t now = now_monotonic_seconds();
        // Both in whole seconds, of two clocks: nobody is idle for longer than since the beginning.
        row.idle_seconds = std::min(now > last_use ? now - last_use : 0, ledger::seconds_since(row.since));
        rows.push_back(row);
    }
}

void add_waiting(const ledger::File& file, int descriptor, const std::string& uuid, unsigned user, Found& found) {
    const std::uint64_t now = now_realtime();
    found.granted[uuid].note_all(file.header.granted, now);
    for (std::uint32_t i = 0; i < ledger::kTickets; i++)
        if (ledger::waits(file.tickets[i], i, descriptor))
            found.waiting.push_back({uuid, ledger::waiter_of(file.tickets[i], user, now)});
}

// One queue for each GPU, whoever its waiters are.
void number(Found& found) {
    std::sort(found.waiting.begin(), found.waiting.end(), [](const WaitingRow& a, const WaitingRow& b) {
        return std::tie(a.gpu, a.waiter.order, a.waiter.user) < std::tie(b.gpu, b.waiter.order, b.waiter.user);
    });
    const WaitingRow* before = nullptr;
    for (WaitingRow& row : found.waiting) {
        row.position = before != nullptr && before->gpu == row.gpu ? before->position + 1 : 1;
        row.past = found.granted[row.gpu].past(row.waiter.order);
        before = &row;
    }
}

// What our own dead held is taken back before anything is shown; of other users' files only the living are.
Found read_all(const std::string& folder, Failures& failures) {
    Found found;
    std::vector<Row>& rows = found.rows;
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
            if (locked.text[0]) failures.texts.push_back(std::string(uuid) + ": not all is up to date: " + locked.text);
        }
        std::vector<char> bytes;
        int file = -1;
        if (read_file(entry.path().string(), user, bytes, file, failures)) {
            const auto& content = *reinterpret_cast<const ledger::File*>(bytes.data());
            add_rows(content, file, uuid, user, rows);
            add_waiting(content, file, uuid, user, found);
        }
        if (file >= 0) ::close(file);
    }
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
        return std::tie(a.gpu, a.user, a.kind, a.name, a.pid) < std::tie(b.gpu, b.user, b.kind, b.name, b.pid);
    });
    number(found);
    return found;
}

std::string size_text(std::uint64_t bytes) { return bytes == ledger::kNoLimitBytes ? "-" : format_mib(bytes); }

std::string age_text(std::uint64_t seconds) { return std::string(ledger::format_age(seconds).view()); }

std::string as_table(const std::vector<Row>& rows) {
    std::vector<std::vector<std::string>> cells = {
        {"GPU", "PID", "USER", "SINCE", "COMMAND", "KIND", "NAME", "USED", "TOGETHER", "RESERVED", "LIMIT", "IDLE"}};
    for (const Row& row : rows) {
        // The start of a UUID is enough to name a GPU by.
        cells.push_back({row.gpu.substr(0, 12), std::to_string(row.pid), user_name(row.user),
                         age_text(ledger::seconds_since(row.since)), row.command, row.kind, row.name,
                         size_text(row.used), size_text(row.job_used), size_text(row.reserved), size_text(row.limit),
                         age_text(row.idle_seconds)});
    }
    return format_table(cells, 2);
}

std::string as_table(const std::vector<WaitingRow>& rows) {
    std::vector<std::vector<std::string>> cells = {
        {"GPU", "QUEUE", "USER", "PID", "COMMAND", "WANTS", "SINCE", "PASSED"}};
    for (const WaitingRow& row : rows)
        cells.push_back({row.gpu.substr(0, 12), std::to_string(row.position), user_name(row.waiter.user),
                         std::to_string(row.waiter.pid), row.waiter.command, size_text(row.waiter.bytes),
                         age_text(ledger::seconds_since(row.waiter.since)), std::to_string(row.past)});
    return format_table(cells, 2);
}

std::string as_json(const Found& found) {
    Json list = Json::array(), waiting = Json::array();
    for (const WaitingRow& row : found.waiting) {
        waiting.push_back({{"gpu", row.gpu},
                           {"position", row.position},
                           {"uid", row.waiter.user},
                           {"user", user_name(row.waiter.user)},
                           {"pid", row.waiter.pid},
                           {"command", row.waiter.command},
                           {"bytes", row.waiter.bytes},
                           {"seconds", ledger::seconds_since(row.waiter.since)},
                           {"passed", row.past}});
    }
    for (const Row& row : found.rows) {
        list.push_back({{"gpu", row.gpu},
                        {"uid", row.user},
                        {"user", user_name(row.user)},
                        {"kind", row.kind},
                        {"name", row.name},
                        {"pid", row.pid},
                        {"command", row.command},
                        {"used", row.used},
                        {"together", row.job_used},
                        {"reserved", row.reserved},
                        {"limit", row.limit == ledger::kNoLimitBytes ? Json() : Json(row.limit)},
                        {"seconds", ledger::seconds_since(row.since)},
                        {"idle_seconds", row.idle_seconds}});
    }
    return json_text({{"version", 1}, {"processes", list}, {"waiting", waiting}});
}

}  // namespace

int list_holders(const Invocation& invocation) {
    ConfigError error;
    Settings settings;
    if (!load_launcher(settings, invocation, error)) return fail(error, kConfig);
    Failures failures;
    const Found found = read_all(sharing_folder(settings, invocation.environment), failures);
    for (const std::string& text : failures.texts) warn("ps: " + text);
    if (invocation.arguments.json)
        std::fputs(as_json(found).c_str(), stdout);
    else if (!found.rows.empty())
        std::fputs(as_table(found.rows).c_str(), stdout);
    else if (!failures.texts.empty())
        std::puts("Who holds what here could not be seen.");
    else
        std::puts("No job or group holds or reserves anything here.");
    if (!invocation.arguments.json && !found.waiting.empty())
        std::fputs(("\n" + as_table(found.waiting)).c_str(), stdout);
    return failures.own ? kNoGpu : 0;
}

}  // namespace cuslice::cli
