// SPDX-License-Identifier: Apache-2.0
// cuslice jupyter install: the specification of a kernel that Jupyter starts under `cuslice run`.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "cli/gpus/fake_check.h"
#include "cli/launch/program.h"
#include "cli/settings/launcher_settings.h"
#include "cli/text/exit_codes.h"
#include "cli/text/json.h"
#include "cli/text/report.h"
#include "cli/text/write_file.h"
#include "config/resolve.h"
#include "config/text.h"

namespace cuslice::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> options_of(const std::vector<Flag>& flags) {
    std::vector<std::string> words;
    for (const Flag& flag : flags)
        words.push_back("--" + std::string(traits_of(flag.key).name) + "=" + flag.value);
    return words;
}

// Jupyter takes letters, digits, dots, hyphens and underscores.
bool is_in_name(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || c == '.'; }

std::string name_of_options(const std::vector<Flag>& flags) {
    std::string name = "cuslice";
    for (const std::string& word : options_of(flags)) {
        name += '-';
        for (const char c : word) {
            const char lower = to_lower(c);
            if (is_in_name(lower) || !name.ends_with('-'))
                name += is_in_name(lower) ? lower : '-';
        }
    }
    while (name.ends_with('-'))
        name.pop_back();
    return name;
}

bool is_kernel_name(const std::string& name) {
    return !name.empty() && !name.starts_with('.') && std::ranges::all_of(name, [](char c) {
        return is_in_name(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
    });
}

// The folder of kernels: below a prefix, or this user's.
std::string kernels_folder(const Invocation& invocation) {
    if (!invocation.arguments.prefix.empty())
        return invocation.arguments.prefix + "/share/jupyter/kernels";
    const auto value = [&](std::string_view name) { return invocation.environment.get(name).value_or(""); };
    if (const std::string data = value("JUPYTER_DATA_DIR"); !data.empty())
        return data + "/kernels";
    const std::string home = value("XDG_DATA_HOME");
    return (home.empty() ? value("HOME") + "/.local/share" : home) + "/jupyter/kernels";
}

// True if this interpreter has what a kernel is made of. Where that can't be tried, it is believed to.
bool has_ipykernel(const std::string& python, const Environment& environment) {
    std::string path = python, option = "-c", text = "import ipykernel";
    char* const words[] = {path.data(), option.data(), text.data(), nullptr};
    posix_spawn_file_actions_t quiet;
    if (::posix_spawn_file_actions_init(&quiet) != 0)
        return true;
    for (const int file : {0, 1, 2})
        ::posix_spawn_file_actions_addopen(&quiet, file, "/dev/null", O_RDWR, 0);
    pid_t child = -1;
    Environment copy = environment;
    const int failed = ::posix_spawn(&child, path.c_str(), &quiet, nullptr, words, copy.pointers().data());
    ::posix_spawn_file_actions_destroy(&quiet);
    int status = 0;
    if (failed != 0 || ::waitpid(child, &status, 0) != child)
        return true;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string display_name_of(const Invocation& invocation) {
    const Arguments& arguments = invocation.arguments;
    if (!arguments.display_name.empty())
        return arguments.display_name;
    std::string name = "Python 3 (cuslice";
    for (const std::string& word : options_of(arguments.flags))
        name += " " + word;
    return name + ")";
}

Json specification_of(const Invocation& invocation, const Installation& installation, const std::string& python) {
    Json words = {installation.executable, "run"};
    for (const std::string& word : options_of(invocation.arguments.flags))
        words.push_back(word);
    for (const char* const word : {"--", python.c_str(), "-m", "ipykernel_launcher", "-f", "{connection_file}"})
        words.push_back(word);
    return {{"argv", words},
            {"display_name", display_name_of(invocation)},
            {"language", "python"},
            {"metadata", {{"debugger", true}}}};
}

bool check_settings(const Invocation& invocation, const Installation& installation, ConfigError& error) {
    Settings settings;
    std::vector<LookedAt> files;
    if (!load_launcher(settings, invocation.arguments.flags, invocation.environment, places_of(invocation), files,
                       error))
        return false;
    ContextSizes unused;
    const Entry* const fake = find(settings, Key::fake);
    return fake == nullptr || check_fake(*fake, installation, invocation.environment, unused, error);
}

}  // namespace

int install_kernel(const Invocation& invocation) {
    ConfigError error;
    Installation installation;
    if (!find_installation(installation, error) || !check_settings(invocation, installation, error))
        return fail(error, kConfig);
    const Arguments& arguments = invocation.arguments;
    const std::string name = arguments.name.empty() ? name_of_options(arguments.flags) : arguments.name;
    if (!is_kernel_name(name))
        return fail("--name " + name + ": a name has letters, digits, dots, hyphens and underscores", kUsage);
    const Program python =
        find_program(arguments.python.empty() ? "python3" : arguments.python, invocation.environment);
    if (python.exit_code != 0)
        return fail(python.message, python.exit_code);
    // Not what it links to: a virtual environment's interpreter is known by its own place.
    const std::string interpreter = fs::absolute(python.path).lexically_normal();
    const std::string folder = fs::absolute(kernels_folder(invocation)).lexically_normal() / name;
    std::error_code failure;
    fs::create_directories(folder, failure);
    if (failure)
        return fail(folder + ": cannot be made: " + failure.message(), kCantWrite);
    const std::string text = json_text(specification_of(invocation, installation, interpreter));
    if (const int code = write_file(folder + "/kernel.json", text); code != 0)
        return fail(folder + "/kernel.json: cannot be written: " + std::strerror(code), kCantWrite);
    std::printf("kernel %s: %s\n", name.c_str(), folder.c_str());
    if (!has_ipykernel(interpreter, invocation.environment))
        warn(interpreter + " has no ipykernel, without which the kernel doesn't start: " + interpreter +
             " -m pip install ipykernel");
    return 0;
}

}  // namespace cuslice::cli
