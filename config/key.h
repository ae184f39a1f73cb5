// The words of the configuration: the same for options, environment variables and keys of cuslice.toml. Listed once, in
// key.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "config/text.h"

namespace cuslice {

/// Settings of this version.
enum class Key : std::uint8_t {
    fraction,
    limit,
    headroom,
    allocator,
    free_mode,
    idle_release,
    no_framework_env,
    gpus,
    split,
    oversubscribe,
    group,
    group_limit,
    per_process,
    admission,
    wait,
    dir,
    log,
    summary,
    record,
    config,
    driver,
    fake,
    fake_kernels,
    fake_machine
};

/// Properties of a key. `name` is the word itself: the option is --name, the variable `variable`, the key of the file
/// `name`.
struct KeyTraits {
    Key key;
    std::string_view name;
    std::string_view variable;
    /// One value for each GPU ("0=4GiB,1=1GiB") or one for the process.
    bool per_gpu;
    /// False: has no meaning in a file.
    bool in_file;
    /// May also be a ceiling of the system's file.
    bool may_be_ceiling;
    /// May stand alone as an option, and then means "yes"; a value needs an equals sign.
    bool stands_alone;
    /// Stands for the value in help texts.
    std::string_view placeholder;
    std::string_view default_value;
    std::string_view help;
};

std::span<const KeyTraits> all_keys();
const KeyTraits& traits_of(Key key);
/// By the word ("fake-kernels") or by the variable ("CUSLICE_FAKE_KERNELS"); nullptr if there is no such key.
const KeyTraits* find_key(std::string_view name);
const KeyTraits* find_variable(std::string_view variable);

/// True for fraction and limit: two ways to answer the one question how much memory a GPU gives.
constexpr bool is_amount(Key key) { return key == Key::fraction || key == Key::limit; }

/// A word of the design that a later version brings. It is refused by name, never ignored.
struct LaterKey {
    std::string_view name;
    /// False: an option that stands alone.
    bool takes_value;
};
std::span<const LaterKey> later_keys();
const LaterKey* find_later_key(std::string_view name);
const LaterKey* find_later_variable(std::string_view variable);

/// Says in `why` that the word is not in this version yet.
void explain_later(const LaterKey& later, Reason& why);

/// The launcher's: names of the jobs that a program is part of, outermost first, divided by commas.
inline constexpr std::string_view kJobVariable = "CUSLICE_JOB";
/// The launcher's: the GPUs that were chosen for a program, as UUIDs, in which indices that it sets itself count.
inline constexpr std::string_view kChosenVariable = "CUSLICE_VISIBLE_DEVICES";
/// Variables that cuslice has set for frameworks, with their values (policy/frameworks/variables.h).
inline constexpr std::string_view kFrameworkRecord = "CUSLICE_FRAMEWORK_ENV";
/// The fake GPU's: the folder of its books.
inline constexpr std::string_view kFakeFolderVariable = "CUSLICE_FAKE_DIR";

/// Variables beginning with CUSLICE_ that are no setting: the fake GPU's own, and the launcher's hand-over.
bool is_internal_variable(std::string_view variable);
std::span<const std::string_view> internal_variables();

/// How a name may be spelled where it was found.
enum class Spelling : std::uint8_t { option, variable, key };
/// Says in `why` that there is no such name, with the nearest one that there is ("did you mean --limit"), or all of
/// them. `name` as found, with its "--" or "CUSLICE_".
void explain_unknown(Spelling spelling, std::string_view name, Reason& why);

}  // namespace cuslice
