// SPDX-License-Identifier: Apache-2.0
// cuslice doctor: explains why a program gets no slice on this machine, and what to do about it.
#include <cstdio>

#include "cli/commands.h"
#include "cli/doctor/checks.h"

namespace cuslice::cli {

int examine(const Invocation& invocation) {
    doctor::Setup setup(invocation);
    doctor::Findings findings;
    for (auto* const check :
         {doctor::check_installation, doctor::check_settings, doctor::check_program, doctor::check_driver,
          doctor::check_gpus, doctor::check_folder, doctor::check_container, doctor::check_mps, doctor::check_preload})
        check(setup, findings);
    std::fputs((invocation.arguments.json ? as_json(findings) : as_text(findings)).c_str(), stdout);
    constexpr int kProblem = 1, kWarning = 2;
    const doctor::Grade worst = findings.worst();
    return worst == doctor::Grade::ok ? 0 : worst == doctor::Grade::warning ? kWarning : kProblem;
}

}  // namespace cuslice::cli
