// cuslice top: what the GPUs of the machine are used for, live.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/launcher_settings.h"
#include "cli/machine.h"
#include "cli/top/live.h"
#include "cli/top/screen.h"
#include "cli/top/view.h"
#include "cli/virtual_gpus.h"

namespace cuslice::cli {
namespace {

// Of a terminal its own width, also of one that is too narrow or too dumb to be drawn on again and again.
std::size_t width_of_output() {
    constexpr std::size_t kWidth = 80;
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : kWidth;
}

}  // namespace

int show_top(const Invocation& invocation) {
    ConfigError error;
    Launch launch;
    if (!load_launch(launch, invocation, error)) return fail(error, kConfig);
    const Settings& settings = launch.settings;
    Environment environment = invocation.environment;
    // Inside a launcher that has split GPUs, those that there are.
    const VirtualGpus virtual_gpus(settings, environment);
    const std::string folder = sharing_folder(settings, invocation.environment);
    const auto ask = [&] { return Machine(virtual_gpus.physical(), settings, launch.installation).all(); };
    const auto look = [&](const Gpus* gpus) { return top::take_snapshot(settings, folder, gpus); };
    const Arguments& arguments = invocation.arguments;
    if (!arguments.json && !arguments.once && top::is_terminal()) {
        top::show_live({look, ask, arguments.interval});
        return 0;
    }
    const Gpus gpus = ask();
    const top::Snapshot snapshot = look(&gpus);
    if (arguments.json)
        std::fputs(json_text(json_of(snapshot)).c_str(), stdout);
    else
        std::fputs(plain_text(draw(snapshot, {width_of_output(), top::locale_is_utf8()})).c_str(), stdout);
    for (const std::string& text : snapshot.holders.failures) warn("top: " + text);
    if (!snapshot.gpus_failure.empty()) return fail("no GPU can be listed: " + snapshot.gpus_failure, kNoGpu);
    return snapshot.holders.own_failed ? kNoGpu : 0;
}

}  // namespace cuslice::cli
