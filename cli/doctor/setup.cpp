// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/setup.h"

#include <unistd.h>

#include <climits>
#include <fstream>
#include <sstream>

#include "cli/launch/driver_folders.h"

namespace cuslice::cli::doctor {

Environment Setup::asking_driver() const {
    Environment asking = environment;
    if (!program.path.empty())
        search_as(started_file(program.path), asking);
    return asking;
}

std::string message_of(const ConfigError& error) {
    constexpr std::string_view kName = "cuslice: ";
    std::string line(line_of(error));
    if (line.starts_with(kName))
        line.erase(0, kName.size());
    if (line.ends_with('.'))
        line.pop_back();
    return line;
}

std::string kernel_driver_version(const Setup& setup) {
    const std::string text = text_of(setup.machine_file("/proc/driver/nvidia/version"));
    size_t at = text.find("Kernel Module");
    if (at == text.npos)
        return {};
    at = text.find_first_of("0123456789", at + std::string_view("Kernel Module").size());
    // "for x86_64" may stand before it.
    while (at != text.npos && text[at - 1] != ' ')
        at = text.find_first_of("0123456789", text.find(' ', at));
    return at == text.npos ? "" : text.substr(at, text.find_first_of(" \n", at) - at);
}

std::string pid_namespace(const Setup& setup) {
    char name[PATH_MAX];
    const ssize_t length = ::readlink(setup.machine_file("/proc/self/ns/pid").c_str(), name, sizeof name);
    return length > 0 ? std::string(name, static_cast<size_t>(length)) : std::string();
}

std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

}  // namespace cuslice::cli::doctor
