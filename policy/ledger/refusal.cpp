// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/refusal.h"

#include <algorithm>
#include <cstring>

#include "config/printable.h"
#include "config/size.h"
#include "policy/base/kernel_clock.h"

namespace cuslice::ledger {

namespace {

using Line = FixedText<1024>;
constexpr unsigned kMaxNamed = 5;

// "pid 812 (python, user alice)", of a holder or a waiter.
template <typename Who>
void append_who(Line& line, const Who& who, const Telling& telling) {
    line.append("pid ", who.pid, " (");
    const std::string_view known(who.command, strnlen(who.command, sizeof who.command));
    if (telling.command)
        append_printable(line, telling.command(process_of(who), who.user, known));
    else
        append_printable(line, known);
    line.append(", user ");
    const FixedText<64> name = telling.user_name ? telling.user_name(who.user) : FixedText<64>();
    name.empty() ? line.append(who.user) : append_printable(line, name.view());
    line.append(")");
}

void append_holder(Line& line, const Holder& holder, const Telling& telling) {
    append_who(line, holder, telling);
    line.append(" ", format_size(holder.reserved > holder.used ? holder.reserved : holder.used).view(), " for ");
    line.append(format_age(seconds_since(holder.since)));
}

}  // namespace

bool may_be_charged_soon(const Refusal& refusal, uint64_t capacity) {
    const Committed& jobs = refusal.committed;
    const uint64_t outside = refusal.in_use - std::min(refusal.in_use, jobs.used);
    const uint64_t unused = jobs.promised - std::min(jobs.promised, jobs.used);
    return outside != 0 && outside <= unused && jobs.fits(refusal.asked, capacity - std::min(capacity, jobs.promised));
}

FixedText<32> format_age(uint64_t seconds) {
    FixedText<32> text;
    if (seconds < 120)
        return text.append(seconds, " s");
    if (seconds < 7200)
        return text.append(seconds / 60, " min");
    return text.append(seconds / 3600, " h");
}

uint64_t seconds_since(uint64_t moment) {
    const uint64_t now = now_realtime();
    return now > moment ? (now - moment) / 1'000'000'000 : 0;
}

Line describe_left(const Refusal& refusal, const Telling& telling) {
    Line line;
    const Committed& committed = refusal.committed;
    line.append(format_size(refusal.available + committed.kept), " left");
    if (committed.kept) {
        line.append(", ");
        if (refusal.available)
            line.append(format_size(committed.kept), " of it ");
        append_who(line.append("reserved for "), committed.kept_for, telling);
        line.append(", which has waited for ", format_size(committed.kept_for.bytes), " for ");
        line.append(format_age(seconds_since(committed.kept_for.since)));
    }
    const uint64_t known = committed.used + committed.unreserved;
    const bool outside = refusal.in_use > known;
    if (committed.count || outside)
        line.append(". Held: ");
    unsigned named = 0;
    for (; named < committed.count && named < kMaxNamed; named++) {
        if (named)
            line.append("; ");
        append_holder(line, committed.holders[named], telling);
    }
    const unsigned more = committed.count - named + committed.left_out;
    if (more)
        line.append("; ", more, " more");
    if (outside) {
        if (named)
            line.append("; ");
        line.append("outside cuslice ", format_size(refusal.in_use - known));
    }
    return line;
}

Line describe_refusal(const Refusal& refusal, const Telling& telling) {
    Line line;
    line.append(format_size(refusal.asked), " requested, ");
    line.append(describe_left(refusal, telling));
    if (refusal.waiting)
        return line;
    line.append(". Try ", refusal.launched ? "--wait" : "CUSLICE_WAIT=yes");
    constexpr uint64_t kMiB = 1 << 20;
    if (refusal.available < kMiB)
        return line;
    line.append(refusal.launched ? " or --limit " : " or CUSLICE_LIMIT=");
    line.append(refusal.available / kMiB, "MiB");
    return line;
}

}  // namespace cuslice::ledger
