// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/reservation.h"

#include <cstdio>

#include "cli/ledger/users.h"
#include "cli/text/command_line.h"
#include "config/resolve.h"
#include "config/size.h"

namespace cuslice::cli {
namespace {

ledger::CommandText command_of(const ledger::ProcessIdentity& process, unsigned user, std::string_view name) {
    constexpr size_t kColumns = 60;
    const std::string text = command_text(read_command_line(process, user), name, CommandDetail::program);
    return ledger::CommandText(text.size() <= kColumns ? text : text.substr(0, kColumns - 3) + "...");
}

const ledger::Telling kTelling{[](unsigned user) { return FixedText<64>(user_name(user)); }, command_of};

}  // namespace

Reservation::Reservation(const Gpu& gpu, const Settings& settings) : gpu_(gpu) {
    const Amount amount = amount_for(settings, identity_of(gpu, gpu.ordinal), gpu.total);
    if (amount.limited)
        refusal_.asked = amount.bytes;
    const auto ceiling = ceiling_for_all(settings, identity_of(gpu, gpu.ordinal), gpu.total);
    if (ceiling)
        ledger_.believes_others(*ceiling);
    const auto shared = shared_limit_for(settings, identity_of(gpu, gpu.ordinal), gpu.total);
    if (shared)
        ledger_.reserves_under(FixedText<64>(settings.shared_rule()).c_str(), shared->bytes);
}

std::string Reservation::name() const { return gpu_.ordinal < 0 ? gpu_.uuid : "GPU " + std::to_string(gpu_.ordinal); }

uint64_t Reservation::in_use() const { return gpu_.free && *gpu_.free < gpu_.total ? gpu_.total - *gpu_.free : 0; }

bool Reservation::open(const std::string& folder) {
    return ledger_.open(folder.c_str(), gpu_.uuid.c_str(), gpu_.total, true, &refusal_.failure);
}

std::string Reservation::failure() const { return told(refusal_.failure); }

std::string Reservation::made_in() const {
    char text[24];
    std::snprintf(text, sizeof text, "=%016llx", static_cast<unsigned long long>(ledger_.id()));
    return "@" + gpu_.uuid + text;
}

void Reservation::look() {
    refusal_.in_use = in_use();
    seen_ = ledger_.opened() && ledger_.look(refusal_.in_use, &refusal_.committed, &refusal_.available);
    if (!seen_)
        refusal_.available = gpu_.total - refusal_.in_use;
}

void Reservation::queue_up(const std::string& command) {
    refusal_.waiting = true;
    if (refusal_.asked != 0)
        ledger_.queue_up(refusal_.asked, command.c_str());
}

ledger::Joined Reservation::take(const std::string& job, const std::string& command) {
    ledger::Request request;
    request.name = job.c_str();
    request.command = command.c_str();
    request.limit = request.reserved = refusal_.asked;
    refusal_.in_use = in_use();
    return ledger_.join(request, refusal_.in_use, &place_, &refusal_.committed, &refusal_.available, &refusal_.failure);
}

std::string Reservation::refusal() const {
    return name() + ": " + std::string(ledger::describe_refusal(refusal_, kTelling));
}

std::string Reservation::place_in_queue() const {
    if (!ledger_.queued())
        return "without a place in the queue, which is full";
    const ledger::Queue& queue = refusal_.committed.queue;
    return "number " + std::to_string(queue.position()) + " of " + std::to_string(queue.total()) + " in the queue";
}

std::string Reservation::wish() const {
    return std::string(format_size(refusal_.asked)) + " on " + name() + ", " + place_in_queue() + ": " +
           std::string(ledger::describe_left(refusal_, kTelling));
}

void Reservation::close() {
    if (!place_.there())
        ledger_.close();
}

}  // namespace cuslice::cli
