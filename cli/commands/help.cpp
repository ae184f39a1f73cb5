// cuslice help: what a command does and takes, as text or as a page of the manual.
#include <cstdio>

#include "cli/commands.h"
#include "cli/settings/help.h"
#include "cli/settings/help_options.h"

namespace cuslice::cli {

void print_help(const Invocation& invocation, const char* version) {
    const Arguments& arguments = invocation.arguments;
    std::string text;
    if (!arguments.page.empty())
        text = manual_page(arguments.page, version);
    else if (arguments.shared_text.empty())
        text = help_text(arguments.topic);
    else
        text = arguments.shared_text == "options" ? options_text() : values_text();
    std::fputs(text.c_str(), stdout);
}

}  // namespace cuslice::cli
