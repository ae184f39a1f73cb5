// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>

#include "cli/answer_question.h"
#include "cli/commands.h"
#include "cli/launch/descriptors.h"
#include "cli/text/exit_codes.h"
#include "cli/text/report.h"

namespace cuslice::cli {
namespace {

// Everything that ends the launcher goes through here, except exec.
int run(int count, char** words) {
    Invocation invocation{{}, Environment(environ), CUSLICE_SYSTEM_FILE, CUSLICE_SYSTEM_ROOT};
    ConfigError error;
    const int code = parse_arguments({words + (count > 0 ? 1 : 0), words + count}, invocation.environment,
                                     invocation.arguments, error);
    if (code != 0)
        return fail(error, code);
    switch (invocation.arguments.command) {
        case Command::help:
            print_help(invocation, "cuslice " CUSLICE_VERSION);
            return 0;
        case Command::version:
            std::puts("cuslice " CUSLICE_VERSION);
            return 0;
        case Command::completion:
            return print_completion(invocation);
        case Command::run:
            return run_program(invocation);
        case Command::demo:
            return run_demo(invocation);
        case Command::devices:
            return list_devices(invocation);
        case Command::config:
            return show_config(invocation);
        case Command::ps:
            return list_holders(invocation);
        case Command::top:
            return show_top(invocation);
        case Command::set:
            return set_limit(invocation);
        case Command::stats:
            return show_statistics(invocation);
        case Command::plot:
            return plot_recordings(invocation);
        case Command::cdi:
            return write_cdi(invocation);
        case Command::jupyter:
            return install_kernel(invocation);
        case Command::install:
            return install_stub(invocation);
        case Command::uninstall:
            return uninstall_stub(invocation);
        case Command::doctor:
            return examine(invocation);
        case Command::query:
            return answer_question(invocation.arguments.query);
    }
    return kUsage;
}

}  // namespace
}  // namespace cuslice::cli

int main(int count, char** words) {
    // Opens nothing: it tells the stub of /etc/ld.so.preload, if there is one, that drivers are wanted as they are.
    ::dlopen("/proc/cuslice launcher", RTLD_LAZY | RTLD_NOLOAD);
    cuslice::cli::take_report_descriptor();
    cuslice::cli::settle_descriptors();
    return cuslice::cli::run(count, words);
}
