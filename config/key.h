// SPDX-License-Identifier: Apache-2.0
// The words of the configuration: the same for options, environment variables and keys of cuslice.toml. Listed once, in
// key.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "config/row_text.h"
#include "config/text.h"

namespace cuslice {

/// Settings of this version.
enum class Key : uint8_t {
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
    redirect_runtime,
    group,
    group_limit,
    per_process,
    admission,
    wait,
    dir,
    share,
    share_cap,
    share_quantum,
    log,
    summary,
    record,
    record_stacks,
    config,
    driver,
    runtime,
    fake,
    fake_kernels,
    fake_machine
};

/// How a value is written, and how it is checked (value.h).
enum class ValueType : uint8_t {
    fraction,
    limit,    // a size above 0
    size,     // also one of the row's words
    count,    // a whole number from 1 on
    percent,  // a whole one
    switch_,
    duration,            // or one of the row's words
    switch_or_duration,  // yes waits for ever
    choice,              // one of the row's words
    name,
    group,
    gpus,
    split,
    log,
    fake_gpus,
    file,
    absolute_file,
    absolute_folder
};

/// Headings of help and of the table of options, in their order.
enum class Heading : uint8_t { memory, gpus, sharing, time, fake_gpus, messages, files, kCount };

/// Commands that take an option, as bits. Those that start a program, or show what a program would get, take all.
enum Takers : uint8_t {
    kStarters = 0,
    kListings = 1,    // ps, stats
    kTop = 2,         // top
    kSet = 4,         // set
    kContainers = 8,  // cdi
    kLedgers = kListings | kTop | kSet
};

/// Kinds of names that a shell completes a value with; names of the launcher's own are asked for at that moment.
enum class Completes : uint8_t { words, files, folders, groups, profiles };

/// A variable's name, spelled from the word: "free-mode" is CUSLICE_FREE_MODE.
class VariableName : public RowText<28> {
  public:
    static constexpr std::string_view kStart = "CUSLICE_";
    template <size_t Capacity>
    constexpr VariableName(const RowText<Capacity>& word) {
        for (const char c : kStart)
            bytes_[size_++] = c;
        for (const char c : word.view())
            bytes_[size_++] = upper(c);
    }
    static constexpr char upper(char c) {
        if (c == '-')
            return '_';
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
};

/// A setting, whole: parsing, help, the manual, completion, JSON, the table of docs/configuration.md, Python's keywords
/// and the Slurm plugin read its row. `name` is the word itself: the option is --name, the variable `variable`, the key
/// of the file `name`.
struct KeyTraits {
    Key key;
    RowText<18> name;
    ValueType type;
    Heading heading;
    /// As Takers.
    uint8_t takers = kStarters;
    /// One value for each GPU ("0=4GiB,1=1GiB") or one for the process.
    bool per_gpu = false;
    /// False: has no meaning in a file.
    bool in_file = true;
    /// May also be a ceiling of the system's file.
    bool may_be_ceiling = false;
    /// May stand alone as an option, and then means "yes"; a value needs an equals sign.
    bool stands_alone = false;
    /// "+context" may stand behind it.
    bool takes_context = false;
    Completes completes = Completes::words;
    /// Stands for the value in help texts.
    RowText<16> placeholder;
    /// Words that the value may be, with spaces between them. Of `choice` a value's number is its word's place.
    RowText<32> words = {};
    /// The shortest and the longest time that a duration may be, in milliseconds.
    uint64_t least = 0, most = ~uint64_t{0};
    /// How a refusal names the values; empty where it is clear from type and words.
    RowText<64> needed = {};
    /// As a file has it.
    RowText<24> example;
    RowText<28> default_value;
    RowText<168> help;
    VariableName variable = name;
};

/// "size", "choice": for programs that read the rows.
std::string_view name_of(ValueType type);

std::span<const KeyTraits> all_keys();
const KeyTraits& traits_of(Key key);
/// By the word ("fake-kernels") or by the variable ("CUSLICE_FAKE_KERNELS"); nullptr if there is no such key.
const KeyTraits* find_key(std::string_view name);
const KeyTraits* find_variable(std::string_view variable);

/// True for fraction and limit: two ways to answer the one question how much memory a GPU gives.
constexpr bool is_amount(Key key) { return key == Key::fraction || key == Key::limit; }

/// True if one value answers both, as a fraction and a limit do.
constexpr bool same_question(Key a, Key b) { return a == b || (is_amount(a) && is_amount(b)); }

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
enum class Spelling : uint8_t { option, variable, key };
/// Says in `why` that there is no such name, with the nearest one that there is ("did you mean --limit"), or all of
/// them. `name` as found, with its "--" or "CUSLICE_".
void explain_unknown(Spelling spelling, std::string_view name, Reason& why);

}  // namespace cuslice
