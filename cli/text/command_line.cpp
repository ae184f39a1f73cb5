// SPDX-License-Identifier: Apache-2.0
#include "cli/text/command_line.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace cuslice::cli {
namespace {

using Words = std::vector<std::string>;

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The name in a command line's first word, which is a title where the process has given itself one.
std::string_view program_name(std::string_view word) { return word.find(' ') == word.npos ? file_name(word) : word; }

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_python(std::string_view program) { return program.starts_with("python") || program.starts_with("pypy"); }

// A program that runs the file that its first argument names.
bool is_interpreter(std::string_view program) {
    return is_python(program) || is_one_of(program, {"sh", "bash", "dash", "zsh", "perl", "ruby", "node", "julia"});
}

// The place of the script, or behind the end. Python has the name of a module behind -m, and code behind -c.
size_t script_in(const Words& words) {
    size_t i = 1;
    const bool python = is_python(program_name(words[0]));
    for (; i < words.size() && words[i].starts_with("-"); ++i) {
        if (is_one_of(words[i], {"-m", "-c"}))
            return words.size();
        if (python && is_one_of(words[i], {"-W", "-X"}))
            ++i;
    }
    return std::min(i, words.size());
}

// "-m torch.distributed.run", "-c", or nothing.
void append_module(const Words& words, Words& to) {
    for (size_t i = 1; i < words.size() && words[i].starts_with("-"); ++i) {
        if (!is_one_of(words[i], {"-m", "-c"}))
            continue;
        to.push_back(words[i]);
        if (words[i] == "-m" && i + 1 < words.size())
            to.push_back(words[i + 1]);
        return;
    }
}

// The launcher has the program behind its own options, and says in the ledger how that one is called.
Words without_launcher(const Words& words, std::string_view name) {
    if (program_name(words[0]) != "cuslice" || name == "cuslice" || name.empty())
        return words;
    const auto program = std::find_if(words.begin() + 1, words.end(),
                                      [&](const std::string& word) { return file_name(word).starts_with(name); });
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
    const std::string program(program_name(shown[0]));
    const size_t script = is_interpreter(program) ? script_in(shown) : shown.size();
    if (script < shown.size())
        shown[script] = file_name(shown[script]);
    if (detail == CommandDetail::line) {
        shown[0] = program;
        return joined(shown);
    }
    Words brief = {program};
    if (script < shown.size())
        brief.push_back(shown[script]);
    else if (is_interpreter(program))
        append_module(shown, brief);
    return joined(brief);
}

}  // namespace cuslice::cli
