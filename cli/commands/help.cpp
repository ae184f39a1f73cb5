// SPDX-License-Identifier: Apache-2.0
// cuslice help: what a command does and takes, as text or as a page of the manual.
#include <cstdio>

#include "cli/commands.h"
#include "cli/ledger/holder.h"
#include "cli/settings/help.h"
#include "cli/settings/help_options.h"

namespace cuslice::cli {
namespace {

// The text of `cuslice help options --json`, from which scripts/settings_tables.py writes tables of the documents.
std::string rows_for_programs() {
    return json_text({{"version", 1}, {"settings", json_of_options()}, {"columns", json_of_columns()}});
}

}  // namespace

void print_help(const Invocation& invocation, const char* version) {
    const Arguments& arguments = invocation.arguments;
    const Detail detail = arguments.help_all ? Detail::all : Detail::most_used;
    std::string text;
    if (!arguments.page.empty())
        text = manual_page(arguments.page, version);
    else if (arguments.shared_text == "options")
        text = arguments.json ? rows_for_programs() : options_text();
    else if (arguments.shared_text == "values")
        text = values_text();
    else
        text = help_text(arguments.topic, detail, columns_in_words());
    std::fputs(text.c_str(), stdout);
}

}  // namespace cuslice::cli
