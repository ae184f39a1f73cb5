#include "cli/settings/help_options.h"

#include "cli/settings/arguments.h"
#include "cli/text/table.h"

namespace cuslice::cli {
namespace {

struct Heading {
    std::string_view name;
    std::span<const Key> keys;
};

constexpr Key kLimits[] = {Key::limit,       Key::fraction,    Key::headroom,  Key::group,
                           Key::group_limit, Key::per_process, Key::admission, Key::wait};
constexpr Key kGpus[] = {Key::gpus, Key::split, Key::oversubscribe};
constexpr Key kCaching[] = {Key::allocator, Key::free_mode, Key::idle_release, Key::no_framework_env};
constexpr Key kMessages[] = {Key::log, Key::summary, Key::record};
constexpr Key kPlaces[] = {Key::config, Key::dir, Key::driver};
constexpr Key kFake[] = {Key::fake, Key::fake_kernels, Key::fake_machine};

constexpr Heading kHeadings[] = {{"Limits", kLimits},     {"GPUs", kGpus},     {"Caching", kCaching},
                                 {"Messages", kMessages}, {"Places", kPlaces}, {"Fake GPUs", kFake}};

constexpr std::size_t keys_under_headings() {
    std::size_t keys = 0;
    for (const Heading& heading : kHeadings) keys += heading.keys.size();
    return keys;
}
static_assert(keys_under_headings() == static_cast<std::size_t>(Key::fake_machine) + 1, "every option has a heading");

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
    constexpr std::size_t kVariables = 33;
    std::string line = "  " + written_option(traits);
    line.append(line.size() < kVariables ? kVariables - line.size() : 1, ' ').append(traits.variable).append("\n");
    return line + wrap(std::string(traits.help) + " (default: " + std::string(traits.default_value) + ")", 6);
}

// "  Limits     --limit --fraction …", wrapped below the first option.
std::string names_in_short(const Heading& heading, Command command) {
    constexpr std::size_t kNames = 13;
    std::string names;
    for (const Key key : heading.keys)
        if (takes(command, key)) names.append(names.empty() ? "--" : " --").append(traits_of(key).name);
    if (names.empty()) return {};
    std::string lines = wrap(names, kNames);
    return lines.replace(2, heading.name.size(), heading.name);
}

}  // namespace

std::string written_option(const KeyTraits& traits) {
    const std::string name = "--" + std::string(traits.name), placeholder(traits.placeholder);
    return traits.stands_alone ? name + "[=" + placeholder + "]" : name + " " + placeholder;
}

std::string options_in_short(Command command) {
    std::string text = "\nSettings (cuslice help options explains them, cuslice help values their values):\n";
    for (const Heading& heading : kHeadings) text += names_in_short(heading, command);
    return text;
}

std::string options_text() {
    std::string text = "Options of cuslice run and other commands, and the variables that mean the same\n";
    for (const Heading& heading : kHeadings) {
        text.append("\n").append(heading.name).append(":\n");
        for (const Key key : heading.keys) text += option_text(traits_of(key));
    }
    return text + "\ncuslice help values explains sizes, fractions, GPUs' names and where settings\ncome from.\n";
}

std::string_view values_text() { return kValues; }

}  // namespace cuslice::cli
