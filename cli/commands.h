// The launcher's commands. Each returns the exit code; `run` returns only if it has not become the program.
#pragma once

#include "cli/arguments.h"
#include "cli/environment.h"

namespace cuslice::cli {

/// Input of all commands.
struct Invocation {
    Arguments arguments;
    Environment environment;
    /// The system's file of settings.
    const char* system_file;
    /// Prefix of the paths of the machine's own files that doctor reads; empty except in tests.
    std::string system_root;
};

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
/// Puts the stub into /etc/ld.so.preload of this machine or of `arguments.root`, and takes it out again.
int install_stub(const Invocation& invocation);
int uninstall_stub(const Invocation& invocation);
/// The script of `arguments.shell`.
int print_completion(const Invocation& invocation);
/// A command's help, or a page of the manual. `version` is the program's name and version.
void print_help(const Invocation& invocation, const char* version);

/// The source of a page of the manual, in the macros of man(7): cuslice(1), or cuslice.toml(5) for "cuslice.toml".
std::string manual_page(const std::string& page, const std::string& version);
int examine(const Invocation& invocation);

/// The text of `cuslice --help`, or of `cuslice COMMAND --help`.
std::string help_text(Command topic);

/// "--limit SIZE", "--wait[=TIME]": how a help text writes an option.
std::string written_option(const KeyTraits& traits);

inline constexpr const char* kReportVariable = "CUSLICE_REPORT";
/// Takes it out of this process's environment: the number of a descriptor that whoever starts the launcher
/// reads. It gets every line that goes to stderr, and a NUL byte right before the program is started; the program
/// doesn't have it.
void take_report_descriptor();
/// Writes that NUL byte.
void report_start();

/// One line on stderr, beginning with `cuslice: `.
void warn(const std::string& message);
void warn(const ConfigError& error);
/// The same, of what ends the command. Returns `exit_code`.
int fail(const ConfigError& error, int exit_code);
int fail(const std::string& message, int exit_code);

}  // namespace cuslice::cli
