// SPDX-License-Identifier: Apache-2.0
#include "cli/settings/unknown_command.h"

#include <algorithm>

#include "cli/launch/program.h"
#include "cli/settings/command.h"
#include "config/key.h"
#include "config/text.h"

namespace cuslice::cli {
namespace {

// One letter wrong in a short word, two in a long one: further away it would be guessing.
std::string_view nearest_command(const std::string& word) {
    std::string_view nearest;
    unsigned least = static_cast<unsigned>(word.size()) / 4 + 1;
    for (const auto& [name, command, summary] : command_names()) {
        const unsigned distance = edit_distance(word, name);
        if (distance > least || (distance == least && !nearest.empty()))
            continue;
        least = distance;
        nearest = name;
    }
    return nearest;
}

// Names that other tools have for what cuslice does.
struct OtherName {
    std::string_view word;
    std::string_view meant;
};
constexpr OtherName kOtherNames[] = {
    {"exec", "cuslice run -- program args"},
    {"info", "cuslice devices"},
    {"launch", "cuslice run -- program args"},
    {"limit", "cuslice run --limit SIZE -- program args, or cuslice set for what runs already"},
    {"list", "cuslice devices, which lists GPUs, or cuslice ps, which lists programs"},
    {"start", "cuslice run -- program args"},
    {"status", "cuslice ps, or cuslice top"},
};

// Empty where the word is known nowhere.
std::string explain_other_name(const std::vector<std::string>& words) {
    const std::string& word = words[0];
    if (word == "kill" || word == "stop") {
        const bool pid = words.size() > 1 && words[1].find_first_not_of("0123456789") == std::string::npos;
        return "no such command: cuslice ends no programs; kill " + (pid ? words[1] : "PID") + " does";
    }
    const auto* const name = std::ranges::find(kOtherNames, std::string_view(word), &OtherName::word);
    if (name == std::end(kOtherNames))
        return {};
    return "no such command; did you mean " + std::string(name->meant);
}

}  // namespace

std::string list_commands() {
    const auto names = command_names();
    std::string text = "there are ";
    for (size_t i = 0; i < names.size(); ++i)
        text.append(i == 0 ? "" : i + 1 == names.size() ? " and " : ", ").append(names[i].name);
    return text + "; cuslice --help explains them";
}

std::string explain_unknown_command(const std::vector<std::string>& words, const Environment& environment) {
    const std::string& word = words[0];
    if (word.starts_with("-")) {
        const std::string name = word.substr(0, word.find('='));
        if (name.size() > 2 && find_key(std::string_view(name).substr(2)) != nullptr)
            return "a command comes first; did you mean cuslice run " + name + " ... -- program args";
        return "no such option here; " + list_commands();
    }
    if (std::string other = explain_other_name(words); !other.empty())
        return other;
    // A program that is there was meant as one, whatever command its name resembles.
    const bool program = find_program(word, environment).exit_code == 0;
    if (program)
        return "no such command; did you mean cuslice run -- " + word;
    if (const std::string_view nearest = nearest_command(word); !nearest.empty())
        return "no such command; did you mean " + std::string(nearest);
    return "no such command; " + list_commands() + "; a program needs run: cuslice run -- program args";
}

std::string explain_short_option(const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    if (name == "-v" || name == "-vv")
        return "no such option; for more messages --log info, for the version -V";
    if (name.size() > 2 && find_key(std::string_view(name).substr(1)) != nullptr)
        return "no such option; did you mean -" + name;
    return "no such option; options begin with --";
}

std::string option_with_dash(const std::string& word) {
    for (const char* const dash : {"\xe2\x80\x93", "\xe2\x80\x94", "\xe2\x88\x92"}) {  // en dash, em dash, minus
        if (!word.starts_with(dash))
            continue;
        const std::string name = word.substr(std::string_view(dash).size(), word.find('=') - 3);
        if (find_key(name) != nullptr)
            return "--" + name;
    }
    return {};
}

}  // namespace cuslice::cli
