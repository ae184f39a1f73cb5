// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/holder.h"

#include <algorithm>
#include <cstring>

#include "cli/ledger/users.h"
#include "cli/text/command_line.h"
#include "cli/text/read_json.h"
#include "config/uuid/fake.h"
#include "policy/base/kernel_clock.h"
#include "policy/ledger/accounts.h"
#include "policy/ledger/refusal.h"
#include "policy/ledger/total.h"

namespace cuslice::cli {
namespace {

std::string name_of(ledger::AccountKind kind) {
    if (kind == ledger::AccountKind::rule)
        return "rule";
    return kind == ledger::AccountKind::group ? "group" : "job";
}

template <size_t Size>
std::string text_of(const char (&bytes)[Size]) {
    return {bytes, strnlen(bytes, Size)};
}

Tone tone_of(const Holder& holder) {
    const bool nearly_full = static_cast<double>(holder.together) >= 0.9 * static_cast<double>(holder.limit);
    return nearly_full ? Tone::nearly_full : Tone::plain;
}

template <auto Field>
constexpr ColumnKind kText = {
    .unit = "text",
    .cell = [](const Holder& holder, Form) { return Cell(holder.*Field); },
    .write = [](const Holder& holder) { return Json(holder.*Field); },
    .read = [](const Json& value, Holder& holder) { holder.*Field = read_text(value); },
};

template <auto Field>
constexpr ColumnKind kNumber = {
    .unit = "number",
    .align = Align::right,
    .cell = [](const Holder& holder, Form) { return Cell(std::to_string(holder.*Field)); },
    .write = [](const Holder& holder) { return Json(holder.*Field); },
    .read = [](const Json& value,
               Holder& holder) { holder.*Field = read_small_number<std::decay_t<decltype(holder.*Field)>>(value); },
};

template <auto Field>
constexpr ColumnKind kSize = {
    .unit = "bytes",
    .align = Align::right,
    .cell = [](const Holder& holder, Form form) { return size_cell(holder.*Field, form); },
    .write = [](const Holder& holder) { return Json(holder.*Field); },
    .read = [](const Json& value, Holder& holder) { holder.*Field = read_number(value); },
};

// A size in the colour that says how full the account is.
template <auto Field>
constexpr ColumnKind kUse = {
    .unit = "bytes",
    .align = Align::right,
    .cell = [](const Holder& holder, Form form) { return size_cell(holder.*Field, form, tone_of(holder)); },
    .write = kSize<Field>.write,
    .read = kSize<Field>.read,
};

template <auto Field>
constexpr ColumnKind kLimit = {
    .unit = "bytes; null: none",
    .align = Align::right,
    .cell = kSize<Field>.cell,
    .write = [](const Holder& holder) { return holder.*Field == ledger::kNoLimitBytes ? Json() : Json(holder.*Field); },
    .read = [](const Json& value,
               Holder& holder) { holder.*Field = read_number_or_null(value).value_or(ledger::kNoLimitBytes); },
};

template <auto Field>
constexpr ColumnKind kDuration = {
    .unit = "seconds",
    .align = Align::right,
    .cell = [](const Holder& holder, Form) { return Cell(age_text(holder.*Field)); },
    .write = [](const Holder& holder) { return Json(holder.*Field); },
    .read = [](const Json& value, Holder& holder) { holder.*Field = read_number(value); },
};

// A time, shown as how long ago it was, since machines' clocks differ.
template <auto Field>
constexpr ColumnKind kAge = {
    .unit = "seconds",
    .align = Align::right,
    .cell = [](const Holder& holder, Form) { return age_cell(holder.*Field); },
    .write = [](const Holder& holder) { return Json(ledger::seconds_since(holder.*Field)); },
    .read = [](const Json& value, Holder& holder) { holder.*Field = read_time_ago(value); },
};

constexpr ColumnKind kGpu = {
    .unit = "UUID",
    .cell = [](const Holder& holder, Form) { return gpu_cell(holder.gpu); },
    .write = kText<&Holder::gpu>.write,
    .read = kText<&Holder::gpu>.read,
};

constexpr ColumnKind kFake = {
    .unit = "true or false",
    .write = [](const Holder& holder) { return Json(is_fake_uuid(holder.gpu)); },
};

// Another machine may know the user by another name, or not at all.
constexpr ColumnKind kUser = {
    .unit = "text",
    .cell = [](const Holder& holder, Form) { return Cell(user_name(holder.user)); },
    .write = [](const Holder& holder) { return Json(user_name(holder.user)); },
};

constexpr ColumnKind kCommandLine = {
    .unit = "list of words; null: not known",
    .align = Align::flexible,
    .cell = [](const Holder& holder, Form form) { return command_cell(holder.command_line, holder.command, form); },
    .write = [](const Holder& holder) { return json_of_words(holder.command_line); },
    .read = [](const Json& value, Holder& holder) { holder.command_line = read_words(value); },
};

constexpr TopColumn::Of kOfAccount = TopColumn::Of::account, kOfProcess = TopColumn::Of::process;

constexpr HolderColumn kHolderColumns[] = {
    {.key = "gpu", .kind = kGpu, .heading = "GPU", .place = 1, .meaning = "GPU or partition", .required = true},
    {.key = "fake", .kind = kFake, .meaning = "GPU is one of `--fake`"},
    {.key = "uid", .kind = kNumber<&Holder::user>, .meaning = "user by number", .required = true},
    {.key = "user", .kind = kUser, .heading = "USER", .place = 3, .meaning = "user by name"},
    {.key = "kind",
     .kind = kText<&Holder::kind>,
     .heading = "KIND",
     .place = 7,
     .meaning = "account that it is in: job, group or rule",
     .required = true},
    {.key = "name",
     .kind = kText<&Holder::name>,
     .heading = "NAME",
     .place = 8,
     .meaning = "name of the job, group or rule",
     .required = true},
    {.key = "pid", .kind = kNumber<&Holder::pid>, .heading = "PID", .place = 2, .meaning = "process", .required = true},
    {.key = "command", .kind = kText<&Holder::command>, .meaning = "name of the process", .required = true},
    {.key = "command_line",
     .kind = kCommandLine,
     .heading = "COMMAND",
     .place = 6,
     .help = "its command",
     .meaning = "command line, in JSON at most 4096 bytes of it"},
    {.key = "used",
     .kind = kUse<&Holder::used>,
     .heading = "USED",
     .place = 4,
     .help = "the memory it holds (USED)",
     .meaning = "memory that the process itself holds",
     .required = true},
    {.key = "together",
     .kind = kUse<&Holder::together>,
     .heading = "JOB USED",
     .place = 9,
     .help = "what its job or group holds in total (JOB USED)",
     .meaning = "memory that all processes of the job, group or rule hold",
     .required = true},
    {.key = "peak",
     .kind = kSize<&Holder::peak>,
     .heading = "JOB PEAK",
     .place = 10,
     .help = "the most it has held (JOB PEAK)",
     .meaning = "the most that all of them have held at once",
     .top = {"PEAK", 3, kOfAccount},
     .required = true},
    {.key = "reserved",
     .kind = kSize<&Holder::reserved>,
     .heading = "RESERVED",
     .place = 11,
     .help = "what is reserved",
     .meaning = "memory that is reserved for the job, group or rule",
     .top = {"RESERVED", 4, kOfAccount},
     .required = true},
    {.key = "limit",
     .kind = kLimit<&Holder::limit>,
     .heading = "LIMIT",
     .place = 5,
     .help = "the limit",
     .meaning = "the most that the job, group or rule may hold",
     .top = {"LIMIT", 0, kOfAccount},
     .required = true},
    {.key = "seconds",
     .kind = kAge<&Holder::since>,
     .heading = "SINCE",
     .place = 12,
     .help = "when it joined",
     .meaning = "time since the process joined",
     .required = true},
    {.key = "idle_seconds",
     .kind = kDuration<&Holder::idle_seconds>,
     .heading = "IDLE",
     .place = 13,
     .help = "how long ago it last allocated (IDLE)",
     .meaning = "time since it last took memory",
     .top = {"IDLE", 5, kOfProcess},
     .required = true},
};

}  // namespace

Holder holder_of(const ledger::File& file, uint32_t index, const LedgerFiles::One& one) {
    const ledger::Member& member = file.members[index];
    const ledger::Account& account = file.accounts[member.account];
    Holder holder;
    holder.gpu = one.uuid;
    holder.user = one.where.user;
    holder.kind = name_of(account.kind);
    holder.inner = account.inner != 0;
    holder.name = text_of(account.name);
    holder.pid = member.pid;
    holder.command = text_of(member.command);
    holder.command_line = read_command_line({member.pid, member.pid_namespace, member.start_time}, one.where.owner);
    int64_t held = 0;
    uint64_t last_use = 0;
    for (uint32_t i = 0; i < ledger::kStripes; i++) {
        const auto& stripe = file.stripes[index * ledger::kStripes + i];
        held = ledger::plus(held, stripe.held.load());
        last_use = std::max(last_use, stripe.last_use.load());
    }
    holder.used = held > 0 ? static_cast<uint64_t>(held) : 0;
    holder.together = account.total.bytes;
    holder.peak = ledger::peak_of(account);
    holder.reserved = account.reserved.load();
    holder.limit = account.limit.load();
    holder.since = member.since;
    const uint64_t now = now_monotonic_seconds();
    // Both in whole seconds, of two clocks: nobody is idle for longer than since the beginning.
    holder.idle_seconds = std::min(now > last_use ? now - last_use : 0, ledger::seconds_since(holder.since));
    return holder;
}

std::span<const HolderColumn> holder_columns() { return kHolderColumns; }

std::vector<const HolderColumn*> ps_columns() {
    std::vector<const HolderColumn*> columns;
    for (const HolderColumn& column : kHolderColumns)
        if (!column.heading.empty())
            columns.push_back(&column);
    std::ranges::stable_sort(columns, {}, &HolderColumn::place);
    return columns;
}

std::vector<const HolderColumn*> top_columns(TopColumn::Of of) {
    std::vector<const HolderColumn*> columns;
    for (const HolderColumn& column : kHolderColumns)
        if (!column.top.heading.empty() && column.top.of == of)
            columns.push_back(&column);
    return columns;
}

Json json_of(const Holder& holder) {
    Json row = Json::object();
    for (const HolderColumn& column : kHolderColumns)
        row[std::string(column.key)] = column.kind.write(holder);
    return row;
}

Holder read_holder(const Json& row) {
    Holder holder;
    for (const HolderColumn& column : kHolderColumns) {
        const std::string key(column.key);
        const bool there = column.required || row.contains(key);
        if (there && column.kind.read != nullptr)
            column.kind.read(row.at(key), holder);
    }
    return holder;
}

std::string columns_in_words() {
    std::vector<std::string_view> words;
    for (const HolderColumn* column : ps_columns())
        if (!column->help.empty())
            words.push_back(column->help);
    std::string text;
    for (const std::string_view& one : words) {
        if (&one != &words.front())
            text += &one == &words.back() ? ", and " : ", ";
        text += one;
    }
    return text;
}

Json json_of_columns() {
    Json rows = Json::array();
    for (const HolderColumn& column : kHolderColumns)
        rows.push_back({{"key", column.key},
                        {"heading", column.heading},
                        {"place", column.place},
                        {"unit", column.kind.unit},
                        {"meaning", column.meaning}});
    return rows;
}

}  // namespace cuslice::cli
