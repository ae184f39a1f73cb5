// SPDX-License-Identifier: Apache-2.0
// Checks that options, variables and files ask for something that can be done.
#include "cli/doctor/checks.h"
#include "cli/ledger/unserved.h"
#include "cli/settings/launcher_settings.h"

namespace cuslice::cli::doctor {
namespace {

constexpr const char* kCorrect = "Correct it; cuslice help options explains every setting";

}  // namespace

void check_settings(Setup& setup, Findings& findings) {
    ConfigError error;
    Launch launch;
    // The second reads the same, and then looks at what a start needs besides.
    setup.configured = load_launcher(setup.settings, setup.invocation, error) &&
                       (!setup.installed || load_launch(launch, setup.invocation, error));
    if (!setup.configured) {
        findings.problem("settings", message_of(error), kCorrect);
    } else if (!setup.settings.unreachable_file().empty()) {
        findings.warning(
            "settings",
            std::string(setup.settings.unreachable_file()) + ": skipped, as a folder on its path can't be entered",
            "If it is yours, let your user enter the folder; else set HOME or XDG_CONFIG_HOME");
    } else {
        findings.ok("settings", "options, variables and files are understood");
    }
    for (const ConfigError& notice : find_unserved(setup.environment))
        findings.warning("unserved-variable", message_of(notice), "Unset it, or start the tool that serves it");
}

}  // namespace cuslice::cli::doctor
