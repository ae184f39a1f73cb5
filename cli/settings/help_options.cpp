// SPDX-License-Identifier: Apache-2.0
#include "cli/settings/help_options.h"

#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/settings/arguments.h"
#include "cli/text/table.h"

namespace cuslice::cli {
namespace {

// In the order of enum Heading.
constexpr std::string_view kHeadings[] = {"Memory", "GPUs", "Sharing", "GPU time", "Fake GPUs", "Log", "Files"};
static_assert(std::size(kHeadings) == static_cast<size_t>(Heading::kCount));

std::string_view name_of(Heading heading) { return kHeadings[static_cast<size_t>(heading)]; }

template <typename Visit>
void each_heading(Visit visit) {
    for (unsigned i = 0; i < static_cast<unsigned>(Heading::kCount); ++i)
        visit(static_cast<Heading>(i));
}

bool is_listed(const KeyTraits& traits, Heading heading, Command command) {
    return traits.heading == heading && takes(command, traits.key);
}

constexpr std::string_view kValues = R"(A size needs a unit, in upper or lower case: KiB MiB GiB TiB (K or Ki means
KiB, and so on; KB MB GB TB are powers of 1000). A fraction is above 0 and at
most 1, or a percentage. A GPU is named by its index in cuslice devices and
nvidia-smi, the start of its UUID, its PCI id, or * for every GPU, regardless
of --gpus and CUDA_VISIBLE_DEVICES. Giving both fraction and limit for one GPU
in one source is an error. --gpus chooses among the GPUs that
CUDA_VISIBLE_DEVICES leaves; if the program sets that variable itself, its
numbers count within the list of --gpus.

Sources, highest priority first: options, CUSLICE_* variables, the file of
--config or CUSLICE_CONFIG, ./cuslice.toml, ~/.config/cuslice/cuslice.toml
($XDG_CONFIG_HOME), /etc/cuslice/cuslice.toml, CUDA_DEVICE_MEMORY_LIMIT[_i]
(HAMi), CUDA_MPS_PINNED_DEVICE_MEM_LIMIT (MPS). The system's file may set
ceilings, which no other source can raise.
)";

// An option as it is written, and its variable; on the next lines its explanation and its default.
std::string option_text(const KeyTraits& traits) {
    constexpr size_t kVariables = 33;
    std::string line = "  " + written_option(traits);
    line.append(line.size() < kVariables ? kVariables - line.size() : 1, ' ').append(traits.variable).append("\n");
    return line + wrap(std::string(traits.help) + " (default: " + std::string(traits.default_value) + ")", 6);
}

// "  Memory     --limit --fraction …", wrapped below the first option.
std::string names_in_short(Heading heading, Command command) {
    constexpr size_t kNames = 13;
    std::string names;
    for (const KeyTraits& traits : all_keys())
        if (is_listed(traits, heading, command))
            names.append(names.empty() ? "--" : " --").append(traits.name);
    if (names.empty())
        return {};
    return wrap(names, kNames).replace(2, name_of(heading).size(), name_of(heading));
}

std::string explained(Heading heading, Command command) {
    std::string text;
    for (const KeyTraits& traits : all_keys())
        if (is_listed(traits, heading, command))
            text += option_text(traits);
    return text.empty() ? text : "\n" + std::string(name_of(heading)) + ":\n" + text;
}

nlohmann::ordered_json row_of(const KeyTraits& traits) {
    nlohmann::ordered_json commands;
    for (const CommandName& command : command_names())
        if (takes(command.command, traits.key))
            commands.push_back(command.name);
    return {{"key", traits.name.view()},
            {"option", written_option(traits)},
            {"variable", traits.variable.view()},
            {"type", name_of(traits.type)},
            {"per_gpu", traits.per_gpu},
            {"in_file", traits.in_file},
            {"may_be_ceiling", traits.may_be_ceiling},
            {"words", traits.words.view()},
            {"example", traits.example.view()},
            {"default", traits.default_value.view()},
            {"heading", name_of(traits.heading)},
            {"help", traits.help.view()},
            {"commands", commands}};
}

}  // namespace

std::string written_option(const KeyTraits& traits) {
    const std::string name = "--" + std::string(traits.name), placeholder(traits.placeholder);
    return traits.stands_alone ? name + "[=" + placeholder + "]" : name + " " + placeholder;
}

std::string options_in_short(Command command) {
    std::string names;
    each_heading([&](Heading heading) { names += names_in_short(heading, command); });
    if (names.empty())
        return names;
    return "\nSettings (--help-all explains them, cuslice help values their values):\n" + names;
}

std::string options_text(Command command) {
    std::string text;
    each_heading([&](Heading heading) { text += explained(heading, command); });
    return text;
}

std::string options_text() {
    return "Options of cuslice run and other commands, and the variables that mean the same\n" +
           options_text(Command::run) +
           "\ncuslice help values explains sizes, fractions, GPUs' names and where settings\ncome from.\n";
}

Json json_of_options() {
    Json rows = Json::array();
    for (const KeyTraits& traits : all_keys())
        rows.push_back(row_of(traits));
    return rows;
}

std::string_view values_text() { return kValues; }

}  // namespace cuslice::cli
