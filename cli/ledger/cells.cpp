// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/cells.h"

#include "cli/text/command_line.h"
#include "config/uuid/fake.h"
#include "policy/ledger/accounts.h"
#include "policy/ledger/refusal.h"

namespace cuslice::cli {

std::string age_text(uint64_t seconds) { return std::string(ledger::format_age(seconds)); }

Cell size_cell(uint64_t bytes, Form form, Tone tone) {
    if (bytes == ledger::kNoLimitBytes)
        return {"-", tone};
    std::string text = format_memory(bytes);
    if (form == Form::tight)
        text.erase(text.find(' '), 1);
    return {text, tone};
}

Cell gpu_cell(const std::string& uuid) {
    const std::string start = uuid.substr(0, 12);
    return is_fake_uuid(uuid) ? Cell(start + " fake", Tone::faint) : Cell(start);
}

Cell age_cell(uint64_t since) { return age_text(ledger::seconds_since(since)); }

Cell command_cell(const std::vector<std::string>& words, const std::string& name, Form form) {
    return command_text(words, name, form == Form::whole ? CommandDetail::whole : CommandDetail::line);
}

}  // namespace cuslice::cli
