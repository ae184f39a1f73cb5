// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/lookups.h"

#include <fstream>
#include <regex>
#include <stdexcept>

#include "tests/preload/places.h"

namespace cuslice::tests {
namespace {

Place parse_place(const std::string& text) {
    std::smatch parts;
    static const std::regex form("([^:]+):([^:]+):([^:]+)");
    if (!std::regex_match(text, parts, form))
        return {text, "", ""};
    return {parts[1], parts[2], parts[3]};
}

Answer parse_answer(const std::string& line) {
    const Words words = split_words(line);
    if (words.size() < 5)
        throw std::runtime_error("not an answer: " + line);
    Answer answer{std::stoi(words[0]), parse_place(words[1]), std::stoi(words[2]),
                  std::stoi(words[3]), parse_place(words[4]), ""};
    for (size_t i = 5; i < words.size(); ++i)
        answer.more += " " + words[i];
    return answer;
}

// Symbols of the rows that end so.
std::set<std::string> symbols_where(const std::string& last) {
    std::set<std::string> all;
    const std::string text = read_text(CUSLICE_TEST_FUNCTIONS);
    const std::regex row("CUSLICE_FUNCTION\\((\\w+),[^)]*, " + last + "\\)");
    for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it)
        all.insert((*it)[1]);
    return all;
}

std::set<std::string> symbols_of_route(const std::string& route) { return symbols_where(route + ", \\w+, \\w+"); }

}  // namespace

std::vector<LookUp> of_typedefs() {
    std::vector<LookUp> all;
    const std::string text = read_text(std::string(CUSLICE_TEST_INCLUDE) + "/cudaTypedefs.h");
    static const std::regex row("\\*PFN_(cu\\w+?)_v(\\d+)(_ptsz|_ptds)?\\)");
    std::set<std::pair<std::string, int>> known;
    for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) {
        const std::pair<std::string, int> entry{(*it)[1], std::stoi((*it)[2])};
        if (!known.insert(entry).second)
            continue;
        for (const unsigned long flags : {0ul, 1ul, 2ul})
            all.push_back({entry.first, entry.second, flags});
    }
    return all;
}

std::vector<LookUp> of_runtime() {
    std::vector<LookUp> all;
    for (const std::string& line : split_lines(read_text(kSources + "/data/cudart13-lookups.txt"))) {
        const Words words = split_words(line);
        if (words.size() == 3 && words[0][0] != '#')
            all.push_back({words[0], std::stoi(words[1]), std::stoul(words[2])});
    }
    return all;
}

std::set<std::string> hooked_symbols() { return symbols_of_route("hook"); }
std::set<std::string> checked_symbols() { return symbols_of_route("checked"); }
std::set<std::string> gated_symbols() { return symbols_where("gated"); }

std::vector<Answer> ask(const std::vector<LookUp>& look_ups, const Words& environment, bool after_init,
                        std::string* err) {
    const Folder folder;
    std::string questions;
    for (const LookUp& look_up : look_ups)
        questions += look_up.text() + "\n";
    const std::string file = folder.write("questions", questions);
    const Outcome outcome = run(
        {"/bin/sh", "-c", "exec \"$1\" $2 <\"$3\"", "sh", kGuests + "/guest_lookups", after_init ? "init" : "", file},
        environment);
    if (err)
        *err = outcome.err;
    std::vector<Answer> answers;
    for (const std::string& line : split_lines(outcome.out))
        answers.push_back(parse_answer(line));
    if (answers.size() != look_ups.size())
        throw std::runtime_error(std::to_string(answers.size()) + " answers, exit code " +
                                 std::to_string(outcome.exit_code) + ": " + outcome.err);
    return answers;
}

}  // namespace cuslice::tests
