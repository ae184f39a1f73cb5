// SPDX-License-Identifier: Apache-2.0
// The launcher's commands. Each returns the exit code; `run` returns only if it has not become the program.
#pragma once
#include "cli/settings/invocation.h"

namespace cuslice::cli {

int run_program(const Invocation& invocation);
/// Runs a program of the installation in a slice: with `run`'s options, or with a small limit.
int run_demo(const Invocation& invocation);
int list_devices(const Invocation& invocation);
int show_config(const Invocation& invocation);
/// The rules of the system for the process `arguments.pid`.
int explain_rules(const Invocation& invocation);
int list_holders(const Invocation& invocation);
/// Returns when the view is left, or at once with --once and --json.
int show_top(const Invocation& invocation);
int set_limit(const Invocation& invocation);
int show_statistics(const Invocation& invocation);
/// Becomes the Python program that draws recordings, with `arguments.program` as its words.
int plot_recordings(const Invocation& invocation);
/// Writes a CDI specification to `arguments.output`, or to stdout.
int write_cdi(const Invocation& invocation);
/// Writes the specification of a kernel that starts under `cuslice run` with these options.
int install_kernel(const Invocation& invocation);
/// Puts the stub into /etc/ld.so.preload of this machine or of `arguments.root`, and takes it out again.
int install_stub(const Invocation& invocation);
int uninstall_stub(const Invocation& invocation);
/// The script of `arguments.shell`.
int print_completion(const Invocation& invocation);
/// A command's help, or a page of the manual. `version` is the program's name and version.
void print_help(const Invocation& invocation, const char* version);
int examine(const Invocation& invocation);

}  // namespace cuslice::cli
