// SPDX-License-Identifier: Apache-2.0
#include "cli/text/command_line.h"

#include <algorithm>

#include "cli/text/process_text.h"
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

}  // namespace

std::vector<std::string> read_command_line(const ledger::ProcessIdentity& process, unsigned owner) {
    constexpr size_t kMost = 4096;
    std::string bytes = read_process_text(process, owner, "cmdline", kMost);
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
