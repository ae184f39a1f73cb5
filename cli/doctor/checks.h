// SPDX-License-Identifier: Apache-2.0
// The checks, in the order in which they are made. Each says what it has found, and notes in the set-up what later ones
// need. None changes anything on the machine, and what could hang is asked in a child with a deadline.
#pragma once

#include "cli/doctor/finding.h"
#include "cli/doctor/setup.h"

namespace cuslice::cli::doctor {

/// /proc, the files of the installation and its path, and whether ld.so preloads the library.
void check_installation(Setup& setup, Findings& findings);
/// Options, variables and files: whether they are understood, and what in them nothing serves.
void check_settings(Setup& setup, Findings& findings);
/// Finds the program that was named, and sees whether a slice reaches it.
void check_program(Setup& setup, Findings& findings);
/// Driver and NVML, real or fake.
void check_driver(Setup& setup, Findings& findings);
/// The GPUs that are left, and whether those that settings name are among them.
void check_gpus(Setup& setup, Findings& findings);
/// The folder with the host's ledgers.
void check_folder(Setup& setup, Findings& findings);
/// The effect of a container, or of systemd-logind, on that folder and on NVML's lists of processes.
void check_container(Setup& setup, Findings& findings);
/// The control daemon of MPS, where there is one or a variable names one.
void check_mps(Setup& setup, Findings& findings);
/// Libraries that are preloaded besides cuslice's.
void check_preload(Setup& setup, Findings& findings);

}  // namespace cuslice::cli::doctor
