// SPDX-License-Identifier: Apache-2.0
#include "cli/top/view.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "cli/text/command_line.h"
#include "cli/text/table.h"
#include "cli/top/grid.h"
#include "cli/top/view_gpus.h"
#include "config/uuid/fake.h"
#include "policy/ledger/refusal.h"

namespace cuslice::cli::top {
namespace {

using Cell = Grid::Cell;
using Column = Grid::Column;

std::string counted(size_t count, const char* one, const char* many) {
    return std::to_string(count) + " " + (count == 1 ? one : many);
}

// "0", of a partition "0/2", and of a GPU that is not in the list the start of its UUID.
std::string label_of(const Snapshot& snapshot, const std::string& uuid, const Look& look) {
    constexpr size_t kEnough = 12;
    const auto found = snapshot.places.find(uuid);
    if (found == snapshot.places.end())
        return shown(uuid.substr(0, kEnough), look) + (is_fake_uuid(uuid) ? " fake" : "");
    const Place& place = found->second;
    return std::to_string(place.index) + (place.partition ? "/" + std::to_string(*place.partition) : "");
}

// No longer than a line: /proc may have given much more.
std::string command_shown(const std::vector<std::string>& words, std::string_view name, const Look& look) {
    return clipped(shown(command_text(words, name, CommandDetail::line), look), look.width, look);
}

// Counts of what there is on one machine, or on several.
struct Counts {
    size_t gpus = 0, jobs = 0, groups = 0, rules = 0, waiting = 0;

    void add(const Snapshot& snapshot) {
        std::set<std::pair<unsigned, std::string>> names[3];
        for (const Holder& holder : snapshot.holders.holding)
            names[holder.kind == "group" ? 1 : holder.kind == "rule" ? 2 : 0].insert({holder.user, holder.name});
        gpus += snapshot.gpus.size();
        jobs += names[0].size(), groups += names[1].size(), rules += names[2].size();
        waiting += snapshot.holders.waiting.size();
    }
    std::string text(bool gpus_known) const {
        std::string text = gpus_known ? counted(gpus, "GPU", "GPUs") + ", " : "";
        text += counted(jobs, "job", "jobs");
        if (groups != 0)
            text += ", " + counted(groups, "group", "groups");
        if (rules != 0)
            text += ", " + counted(rules, "rule", "rules");
        return waiting != 0 ? text + ", " + std::to_string(waiting) + " waiting" : text;
    }
};

constexpr TopColumn::Of kOfAccount = TopColumn::Of::account, kOfProcess = TopColumn::Of::process;

void add_columns(TopColumn::Of of, std::vector<Column>& columns) {
    for (const HolderColumn* column : top_columns(of))
        columns.push_back({std::string(column->top.heading), column->top.rank, column->kind.align == Align::right});
}

// Cells of those columns, which stay empty without a holder.
void add_cells(TopColumn::Of of, const Holder* holder, const Look& look, std::vector<Cell>& row) {
    for (const HolderColumn* column : top_columns(of))
        row.push_back({holder == nullptr ? "" : shown(column->kind.cell(*holder, Form::tight).text, look)});
}

// Holders in one account, which stand next to one another.
using Members = std::vector<const Holder*>;

void add_account(const Snapshot& snapshot, const Members& members, bool unfolded, const Look& look, Grid& grid) {
    const Holder& first = *members.front();
    const bool alone = members.size() == 1, group = first.kind != "job";
    const std::string name = shown(first.name, look);
    std::string command =
        alone ? command_shown(first.command_line, first.command, look) : std::to_string(members.size()) + " processes";
    if (group)
        command = first.kind + " " + name + ": " + command;
    const uint64_t most = first.limit == ledger::kNoLimitBytes ? 0 : first.limit;
    const uint64_t beyond = first.reserved > first.together ? first.reserved - first.together : 0;
    std::vector<Cell> row = {{label_of(snapshot, first.gpu, look)},
                             {shown(snapshot.user_called(first.user), look)},
                             {alone ? std::to_string(first.pid) : "-"},
                             {command},
                             {memory_text(first.together)}};
    add_cells(kOfAccount, &first, look, row);
    row.push_back({"", Tone::plain, bar_of(first.together, beyond, most)});
    add_cells(kOfProcess, alone ? &first : nullptr, look, row);
    row.push_back({group ? first.kind : name, Tone::faint});
    grid.add(std::move(row));
    if (alone || !unfolded)
        return;
    for (const Holder* member : members) {
        row = {{},
               {},
               {std::to_string(member->pid)},
               {"  " + command_shown(member->command_line, member->command, look)},
               {memory_text(member->used)}};
        add_cells(kOfAccount, nullptr, look, row);
        row.push_back({"", Tone::plain, Bar{member->used, 0, most}});
        add_cells(kOfProcess, member, look, row);
        row.emplace_back();
        grid.add(std::move(row));
    }
}

void add_section(const char* heading, const Grid& grid, const Look& look, Lines& lines) {
    if (grid.empty())
        return;
    lines.emplace_back();
    lines.push_back(clipped(Line{{heading, Tone::heading}}, look));
    for (Line& line : grid.draw(look))
        lines.push_back(std::move(line));
}

void add_jobs(const Snapshot& snapshot, const Look& look, const Choice& choice, Lines& lines) {
    const auto& holding = snapshot.holders.holding;
    std::vector<Column> columns = {{"GPU", 0, false, 8},
                                   {"USER", 1, false, 4},
                                   {"PID", 0, true},
                                   {"COMMAND", 0, false, 8, 0, 32},
                                   {"USED", 0, true}};
    add_columns(kOfAccount, columns);
    columns.push_back({"", 2, false, 10, 30});
    add_columns(kOfProcess, columns);
    columns.push_back({"NAME", 6});
    Grid grid(std::move(columns));
    for (size_t i = 0; i < holding.size();) {
        Members members;
        for (; i < holding.size() && (members.empty() || account_of(holding[i]) == account_of(*members.front())); ++i)
            members.push_back(&holding[i]);
        add_account(snapshot, members, choice.unfolded, look, grid);
    }
    if (grid.empty()) {
        const char* const text = !snapshot.holders.failures.empty() ? "Who holds what here could not be seen."
                                 : !choice.filter.empty()           ? "No job or group has this text in it."
                                                          : "No job or group holds or reserves anything here.";
        lines.emplace_back();
        lines.push_back(clipped(Line{{text, Tone::faint}}, look));
    }
    add_section("JOBS AND GROUPS", grid, look, lines);
}

void add_waiting(const Snapshot& snapshot, const Look& look, Lines& lines) {
    Grid grid({Column{"GPU", 0, false, 8},
               {"QUEUE", 3, true},
               {"USER", 1, false, 4},
               {"PID", 0, true},
               {"COMMAND", 0, false, 8, 0, 32},
               {"WANTS", 0, true},
               {"SINCE", 2, true},
               {"OVERTAKEN", 4, true}});
    for (const WaitingProcess& one : snapshot.holders.waiting)
        grid.add({{label_of(snapshot, one.gpu, look)},
                  {std::to_string(one.position)},
                  {shown(snapshot.user_called(one.waiter.user), look)},
                  {std::to_string(one.waiter.pid)},
                  {command_shown(one.command_line, one.waiter.command, look)},
                  {memory_text(one.waiter.bytes)},
                  {age_text(ledger::seconds_since(one.waiter.since))},
                  {std::to_string(one.past)}});
    add_section("WAITING", grid, look, lines);
}

// "37%" of the time since the last frame.
std::string recent_text(const JobTime& job) {
    constexpr double kWhole = 100;
    return job.recent ? std::to_string(std::lround(*job.recent * kWhole)) + "%" : "-";
}

void add_times(const Snapshot& snapshot, const Look& look, Lines& lines) {
    Grid grid({Column{"GPU", 0, false, 8},
               {"USER", 1, false, 4},
               {"PID", 0, true},
               {"COMMAND", 0, false, 8, 0, 32},
               {"SHARE", 0, true},
               {"CAP", 3, true},
               {"LATELY", 0, true},
               {"HAD", 2, true},
               {"WAITED", 4, true},
               {"NOW", 5},
               {"NAME", 6}});
    for (const JobTime& job : snapshot.holders.times)
        grid.add({{label_of(snapshot, job.gpu, look)},
                  {shown(snapshot.user_called(job.user), look)},
                  {job.pids.empty() ? "-" : std::to_string(job.pids.front())},
                  {command_shown(job.command_line, "", look)},
                  {share_text(job.share)},
                  {cap_text(job.cap)},
                  {recent_text(job)},
                  {time_text(job.had)},
                  {time_text(job.waited)},
                  {shown(job.state, look)},
                  {shown(job.name, look), Tone::faint}});
    add_section("GPU TIME", grid, look, lines);
}

void add_caches(const Snapshot& snapshot, const Look& look, Lines& lines) {
    Grid grid({Column{"GPU", 0, false, 8},
               {"PID", 0, true},
               {"COMMAND", 0, false, 8, 0, 32},
               {"LIVE", 0, true},
               {"HELD", 0, true},
               {"PEAK", 1, true},
               {"MODE", 3},
               {"", 2, false, 10, 30}});
    for (const Cache& cache : snapshot.caches) {
        const Statistics& s = cache.stats.statistics;
        const uint64_t live = s.allocated.current, held = s.reserved.current;
        grid.add({{label_of(snapshot, cache.stats.uuid, look)},
                  {std::to_string(cache.pid)},
                  {command_shown(cache.command_line, cache.command, look)},
                  {memory_text(live)},
                  {memory_text(held)},
                  {memory_text(s.reserved.peak)},
                  {mode_of(cache.stats)},
                  {"", Tone::plain, Bar{live, held > live ? held - live : 0, s.reserved.peak}}});
    }
    add_section("CACHES", grid, look, lines);
}

void add_machine(const Snapshot& whole, const Look& look, const Choice& choice, Lines& lines) {
    const Snapshot snapshot = chosen(whole, choice);
    append_gpus(snapshot, look, lines);
    add_jobs(snapshot, look, choice, lines);
    add_waiting(snapshot, look, lines);
    add_times(snapshot, look, lines);
    add_caches(snapshot, look, lines);
    for (const std::string& failure : snapshot.holders.failures)
        append_whole(shown(failure, look), 0, look, lines);
}

// "-- n1 ------ 2 GPUs, 1 job", as wide as the terminal.
Line heading_of(const std::string& name, const std::string& right, const Look& look) {
    const std::string dash = look.utf8 ? "─" : "-";
    std::string left = dash + dash + " " + shown(name, look) + " ";
    const size_t taken = columns_of(left) + (right.empty() ? 0 : columns_of(right) + 1);
    for (size_t i = taken; i < look.width; ++i)
        left += dash;
    return clipped(Line{{left, Tone::heading}, {right.empty() ? "" : " " + right, Tone::faint}}, look);
}

}  // namespace

Lines draw(const Snapshot& snapshot, const Look& look, const Choice& choice) {
    Counts counts;
    counts.add(snapshot);
    Lines lines = {title(counts.text(snapshot.gpus_known), snapshot.clock, look)};
    add_machine(snapshot, look, choice, lines);
    return lines;
}

std::vector<Target> targets(const Snapshot& snapshot, const Look& look) {
    std::vector<Target> all;
    std::set<AccountName> known;
    for (const Holder& one : snapshot.holders.holding) {
        const bool settable = one.user == ::geteuid() && (one.kind == "job" || one.kind == "group");
        if (!settable || !known.insert(account_of(one)).second)
            continue;
        // Beside it there is to be room for what is typed.
        const size_t room = look.width / 3;
        const std::string command = clipped(command_shown(one.command_line, one.command, look), room, look);
        const std::string what =
            one.kind == "job" ? "job " + command : "group " + clipped(shown(one.name, look), room, look);
        all.push_back({one.kind, one.name, one.gpu, what + " on GPU " + label_of(snapshot, one.gpu, look), one.limit});
    }
    return all;
}

Lines draw_nodes(const std::vector<NodeView>& nodes, const std::string& clock, const Look& look, const Choice& choice) {
    Counts all;
    size_t failed = 0;
    Lines lines(1);
    for (const NodeView& node : nodes) {
        Counts counts;
        if (node.snapshot != nullptr) {
            counts.add(*node.snapshot);
            all.add(*node.snapshot);
        }
        lines.emplace_back();
        lines.push_back(heading_of(node.name, node.snapshot != nullptr ? counts.text(true) : "", look));
        if (node.overdue != 0)
            append_whole("No answer for " + age_text(node.overdue) + ". The last was:", 2, look, lines);
        if (node.snapshot != nullptr) {
            add_machine(*node.snapshot, look, choice, lines);
        } else if (node.failure.empty()) {
            lines.push_back({{"Asking ...", Tone::faint}});
        } else {
            ++failed;
            append_whole("No answer: " + shown(node.failure, look), 2, look, lines);
        }
    }
    std::string text = counted(nodes.size(), "node", "nodes");
    if (failed != 0)
        text += " (" + std::to_string(failed) + " without an answer)";
    lines.front() = title(text + ", " + all.text(true), clock, look);
    return lines;
}

Lines scrolled(const Lines& lines, size_t rows, size_t& offset, const Span& last, const Look& look) {
    const size_t body = lines.size() - 1, room = rows > 2 ? rows - 2 : 1;
    offset = std::min(offset, body > room ? body - room : 0);
    const size_t end = std::min(offset + room, body), more = body - end;
    Lines part = {lines.front()};
    for (size_t i = offset; i < end; ++i)
        part.push_back(lines[i + 1]);
    part.resize(room + 1);
    std::string left_out = offset != 0 ? std::to_string(offset) + " above" : "";
    if (more != 0)
        left_out += (offset != 0 ? ", " : "") + std::string(look.utf8 ? "… " : "") + std::to_string(more) + " more";
    part.push_back(ends(last, left_out, look));
    return part;
}

}  // namespace cuslice::cli::top
