#include "cli/unknown_command.h"

#include "cli/command.h"
#include "cli/program.h"
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
        if (distance > least || (distance == least && !nearest.empty())) continue;
        least = distance;
        nearest = name;
    }
    return nearest;
}

}  // namespace

std::string list_commands() {
    const auto names = command_names();
    std::string text = "there are ";
    for (std::size_t i = 0; i < names.size(); ++i)
        text.append(i == 0 ? "" : i + 1 == names.size() ? " and " : ", ").append(names[i].name);
    return text + "; cuslice --help explains them";
}

std::string explain_unknown_command(const std::string& word, const Environment& environment) {
    if (word.starts_with("-")) {
        const std::string name = word.substr(0, word.find('='));
        if (name.size() > 2 && find_key(std::string_view(name).substr(2)) != nullptr)
            return "a command comes first; did you mean cuslice run " + name + " ... -- program args";
        return "no such option here; " + list_commands();
    }
    // A program that is there was meant as one, whatever command its name resembles.
    const bool program = find_program(word, environment).exit_code == 0;
    if (program) return "no such command; did you mean cuslice run -- " + word;
    if (const std::string_view nearest = nearest_command(word); !nearest.empty())
        return "no such command; did you mean " + std::string(nearest);
    return "no such command; " + list_commands() + "; a program needs run: cuslice run -- program args";
}

}  // namespace cuslice::cli
