#include "policy/ledger/refusal.h"

#include "config/size.h"

namespace cuslice::ledger {

namespace {

using Line = FixedText<1024>;
constexpr unsigned kMostNamed = 5;

void append_age(Line& line, std::uint64_t since) {
    const std::uint64_t now = now_realtime(), seconds = now > since ? (now - since) / 1'000'000'000 : 0;
    if (seconds < 120) {
        line.append_number(seconds).append(" s");
    } else if (seconds < 7200) {
        line.append_number(seconds / 60).append(" min");
    } else {
        line.append_number(seconds / 3600).append(" h");
    }
}

void append_holder(Line& line, const Holder& holder) {
    line.append("pid ").append_number(static_cast<std::uint64_t>(holder.pid)).append(" (").append(holder.command);
    line.append(", user ").append_number(holder.user).append(") ");
    line.append(format_size(holder.reserved > holder.used ? holder.reserved : holder.used).view()).append(" for ");
    append_age(line, holder.since);
}

}  // namespace

Line describe_refusal(const Refusal& refusal) {
    Line line;
    const Committed& committed = refusal.committed;
    line.append(format_size(refusal.asked).view()).append(" asked, ");
    line.append(format_size(refusal.available).view()).append(" left. Held: ");
    unsigned named = 0;
    for (; named < committed.count && named < kMostNamed; named++) {
        if (named) line.append("; ");
        append_holder(line, committed.holders[named]);
    }
    const unsigned more = committed.count - named + committed.left_out;
    if (more) line.append("; ").append_number(more).append(" more");
    if (refusal.in_use > committed.used) {
        if (named) line.append("; ");
        line.append("outside cuslice ").append(format_size(refusal.in_use - committed.used).view());
    }
    line.append(". Try --wait");
    constexpr std::uint64_t kMiB = 1 << 20;
    if (refusal.available >= kMiB) line.append(" or --limit ").append_number(refusal.available / kMiB).append("MiB");
    return line;
}

}  // namespace cuslice::ledger
