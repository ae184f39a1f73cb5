// SPDX-License-Identifier: Apache-2.0
#include "cli/text/command_line.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "config/brief_command.h"

namespace cuslice::cli {
namespace {

using Words = std::vector<std::string>;

std::string zero_ended(const Words& words) {
    std::string bytes;
    for (const std::string& word : words)
        bytes.append(word).push_back('\0');
    return bytes;
}

// The launcher has the program behind its own options, and says in the ledger how that one is called.
Words without_launcher(const Words& words, std::string_view name) {
    if (CommandWords(zero_ended(words)).program() != "cuslice" || name == "cuslice" || name.empty())
        return words;
    const auto program = std::find_if(words.begin() + 1, words.end(),
                                      [&](const std::string& word) { return file_name_of(word).starts_with(name); });
    return program != words.end() ? Words(program, words.end()) : Words();
}

std::string joined(const Words& words) {
    std::string text;
    for (const std::string& word : words)
        text.append(text.empty() ? "" : " ").append(word);
    return text;
}

std::string read_file(const std::string& path) {
    constexpr size_t kMost = 4096;
    std::string bytes(kMost, '\0');
    const int file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return {};
    const ssize_t size = ::pread(file, bytes.data(), bytes.size(), 0);
    ::close(file);
    bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return bytes;
}

}  // namespace

std::vector<std::string> read_command_line(const ledger::ProcessIdentity& process, unsigned owner) {
    if (process.pid <= 0 || process.pid_namespace == 0)
        return {};
    if (process.pid_namespace != ledger::own_pid_namespace())
        return {};
    const std::string folder = "/proc/" + std::to_string(process.pid);
    std::string bytes = read_file(folder + "/cmdline");
    // Asked afterwards: what was read is of the process that is there now.
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0 || info.st_uid != owner)
        return {};
    if (!ledger::is_same_start(ledger::start_time_of(process.pid), process.start_time))
        return {};
    // A title that a process has given itself has more of them behind it.
    bytes.erase(bytes.find_last_not_of('\0') + 1);
    Words words;
    for (size_t begin = 0; begin < bytes.size();) {
        const size_t end = std::min(bytes.find('\0', begin), bytes.size());
        words.push_back(bytes.substr(begin, end - begin));
        begin = end + 1;
    }
    return words;
}

Json json_of_words(const std::vector<std::string>& words) { return words.empty() ? Json() : Json(words); }

std::string command_text(const std::vector<std::string>& words, std::string_view name, CommandDetail detail) {
    Words shown = words.empty() ? words : without_launcher(words, name);
    if (shown.empty())
        return std::string(name);
    if (detail == CommandDetail::whole)
        return joined(shown);
    const std::string bytes = zero_ended(shown);
    const CommandWords command(bytes);
    if (detail == CommandDetail::program)
        return std::string(brief_command(command).view());
    shown[0] = command.program();
    if (const auto script = command.script())
        shown[*script] = file_name_of(shown[*script]);
    return joined(shown);
}

}  // namespace cuslice::cli
