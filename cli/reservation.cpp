#include "cli/reservation.h"

#include <cstdio>

#include "cli/users.h"
#include "config/resolve.h"

namespace cuslice::cli {

Reservation::Reservation(const Gpu& gpu, const Settings& settings) : gpu_(gpu) {
    const Amount amount = amount_for(settings, identity_of(gpu, gpu.ordinal), gpu.total);
    if (amount.limited) refusal_.asked = amount.bytes;
}

std::string Reservation::name() const { return gpu_.ordinal < 0 ? gpu_.uuid : "GPU " + std::to_string(gpu_.ordinal); }

std::uint64_t Reservation::in_use() const { return gpu_.free && *gpu_.free < gpu_.total ? gpu_.total - *gpu_.free : 0; }

bool Reservation::open(const std::string& folder) {
    return ledger_.open(folder.c_str(), gpu_.uuid.c_str(), gpu_.total, true, &refusal_.failure);
}

std::string Reservation::made_in() const {
    char text[24];
    std::snprintf(text, sizeof text, "=%016llx", static_cast<unsigned long long>(ledger_.id()));
    return "@" + gpu_.uuid + text;
}

void Reservation::look() {
    refusal_.in_use = in_use();
    if (!ledger_.opened() || !ledger_.look(refusal_.in_use, &refusal_.committed, &refusal_.available))
        refusal_.available = gpu_.total - refusal_.in_use;
}

ledger::Joined Reservation::take(const std::string& job, const std::string& command) {
    ledger::Request request;
    request.name = job.c_str();
    request.command = command.c_str();
    request.limit = request.reserved = refusal_.asked;
    refusal_.in_use = in_use();
    return ledger_.join(request, refusal_.in_use, &place_, &refusal_.committed, &refusal_.available, &refusal_.failure);
}

std::string Reservation::refusal(bool waiting) const {
    const ledger::Telling telling{[](unsigned user) { return FixedText<64>(user_name(user)); }, waiting};
    return name() + ": " + std::string(ledger::describe_refusal(refusal_, telling).view());
}

void Reservation::close() {
    if (!place_.there()) ledger_.close();
}

}  // namespace cuslice::cli
