// SPDX-License-Identifier: Apache-2.0
// Checks that processes can share a limit: the folder of the ledgers, and the size that a file there may have.
#include "cli/doctor/checks.h"
#include "cli/doctor/folder_probe.h"
#include "cli/launch/program_environment.h"
#include "cli/settings/launcher_settings.h"
#include "config/resolve.h"
#include "policy/base/own_descriptors.h"
#include "policy/ledger/layout.h"

namespace cuslice::cli::doctor {

void check_folder(Setup& setup, Findings& findings) {
    if (!setup.configured || setup.installation.executable.empty())
        return;
    if (is_on(setup.settings, Key::per_process))
        return;  // nothing is shared
    Environment plain = setup.environment;
    remove_preload(plain);
    findings.add(ask_about_folder(setup.installation, plain, sharing_folder(setup.settings, setup.environment)));
    if (!file_may_have(sizeof(ledger::File)))
        findings.warning("file-size",
                         "ulimit -f leaves no room for a ledger of " + std::to_string(sizeof(ledger::File) / 1024) +
                             " KiB, so no program that shares a limit starts",
                         "Raise it: ulimit -f unlimited");
}

}  // namespace cuslice::cli::doctor
