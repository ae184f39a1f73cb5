// cuslice help: what a command does and takes, as text or as a page of the manual.
#include <cstdio>

#include "cli/commands.h"

namespace cuslice::cli {

void print_help(const Invocation& invocation, const char* version) {
    const Arguments& arguments = invocation.arguments;
    const std::string text = arguments.page.empty() ? help_text(arguments.topic) : manual_page(arguments.page, version);
    std::fputs(text.c_str(), stdout);
}

}  // namespace cuslice::cli
