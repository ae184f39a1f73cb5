// SPDX-License-Identifier: Apache-2.0
#include "config/value.h"

#include <algorithm>
#include <span>

#include "config/fraction.h"
#include "config/group_value.h"
#include "config/log_setting.h"
#include "config/percent.h"
#include "config/plus_context.h"
#include "config/refuse.h"
#include "config/size.h"
#include "config/split/value.h"
#include "config/visible.h"

namespace cuslice {
namespace {

/// Takes the first of `words` off them. Empty if there is none left.
std::string_view next_word(std::string_view& words) {
    bool more = false;
    return take_item(words, ' ', more);
}

// `place`: among the row's words; 0 of any other text.
bool find_word(const KeyTraits& traits, std::string_view text, uint64_t& place) {
    std::string_view words = traits.words;
    for (place = 0; !words.empty(); ++place)
        if (next_word(words) == text)
            return true;
    place = 0;
    return false;
}

bool is_word(const KeyTraits& traits, std::string_view text) {
    uint64_t unused = 0;
    return find_word(traits, text, unused);
}

bool parse_fraction(std::string_view text, uint64_t& number, Reason& why) {
    Fraction fraction;
    if (!parse_fraction(text, fraction, why))
        return false;
    number = fraction.parts();
    return true;
}

bool parse_limit(std::string_view text, uint64_t& number, Reason& why) {
    // "did you mean 0GiB" would be no help.
    if (text != "0" && !parse_size(text, number, why, BareNumber::gib))
        return false;
    return number != 0 || refuse("a limit of 0 leaves no memory: more than 0", why);
}

bool parse_size_or_word(const KeyTraits& traits, std::string_view text, uint64_t& number, bool& automatic,
                        Reason& why) {
    automatic = is_word(traits, text);
    if (automatic)
        return true;
    if (parse_size(text, number, why, BareNumber::mib))
        return true;
    why.append("; or ");
    append_words(traits, why);
    return false;
}

bool parse_count(std::string_view text, uint64_t& number, Reason& why) {
    constexpr size_t kMostDigits = 18;
    if (are_digits(text) && text.size() <= kMostDigits)
        number = decimal_number(text);
    return number != 0 || refuse("a whole number is needed, 1 or more", why);
}

struct Name {
    std::string_view name;
    uint64_t number;
};

// `number`: 0 of any other text.
bool find_name(std::span<const Name> names, std::string_view text, uint64_t& number) {
    const auto found = std::ranges::find(names, text, &Name::name);
    const bool is_there = found != names.end();
    number = is_there ? found->number : 0;
    return is_there;
}

constexpr Name kAnswers[] = {{"yes", kForEver}, {"true", kForEver}, {"no", 0}, {"false", 0}, {"1", kForEver}, {"0", 0}};

// Words alone: beside a time 1 would read as a second, and 0 as no time.
bool parse_yes_or_no(std::string_view text, uint64_t& number) {
    return find_name(std::span(kAnswers).first(4), text, number);
}

bool parse_switch(std::string_view text, uint64_t& number, Reason& why) {
    return find_name(kAnswers, text, number) || refuse("yes or no", why);
}

bool parse_choice(const KeyTraits& traits, std::string_view text, uint64_t& number, Reason& why) {
    if (find_word(traits, text, number))
        return true;
    why.clear();
    append_words(traits, why);
    return false;
}

constexpr uint64_t kMillisecondsOfSecond = 1000;
constexpr Name kMilliseconds[] = {{"ms", 1}, {"s", kMillisecondsOfSecond}, {"m", 60'000}, {"h", 3'600'000}};

// Milliseconds. Without a unit nobody could tell minutes from seconds.
bool parse_duration(const KeyTraits& traits, std::string_view text, uint64_t& number, Reason& why) {
    constexpr size_t kMostDigits = 9;
    const std::string_view digits = leading_digits(slice(text, 0, kMostDigits));
    const std::string_view unit = slice(text, digits.size());
    const uint64_t count = decimal_number(digits);
    find_name(kMilliseconds, unit, number);
    number *= count;
    if (number != 0 && number >= traits.least && number <= traits.most)
        return true;
    why.assign(traits.needed);
    if (count != 0 && unit.empty())
        why.append("; did you mean ", text, traits.most < kMillisecondsOfSecond ? "ms" : "s");
    return false;
}

// It becomes a part of messages, tables, command lines and paths.
bool parse_name(std::string_view text, Reason& why) {
    const bool fits = !text.empty() && text.size() < 64;
    if (fits && are_name_characters(text))
        return true;
    return refuse("a name of up to 63 letters, digits, '.', '_' and '-' is needed", why);
}

bool parse_group(std::string_view text, Reason& why) {
    if (text == kContainerGroup)
        return true;
    if (parse_name(text, why))
        return true;
    why.append("; or ", kContainerGroup);
    return false;
}

bool parse_log(std::string_view text, Reason& why) {
    LogSetting log;
    return parse_log(text, log, why);
}

bool parse_fake_gpus(std::string_view text, Reason& why) {
    if (text.empty())
        return refuse("empty: fake GPUs are needed, as 4xh200, or a TOML file", why);
    if (!has_control_character(text))
        return true;
    return refuse("it has control characters: fake GPUs are written as 4xh200", why);
}

bool check_path(std::string_view text, Reason& why) {
    return !has_control_character(text) || refuse("a path has no control characters in it", why);
}

bool parse_path(std::string_view text, Reason& why) {
    if (text.empty())
        return refuse("empty: the path of a file is needed", why);
    return check_path(text, why);
}

bool parse_absolute_path(std::string_view text, std::string_view if_relative, Reason& why) {
    if (!starts_with(text, "/"))
        return refuse(if_relative, why);
    return check_path(text, why);
}

bool parse_absolute_file(std::string_view text, Reason& why) {
    if (text.empty())
        return parse_path(text, why);
    return parse_absolute_path(
        text, "an absolute path is needed: only cuslice run knows the folder that it is relative to", why);
}

}  // namespace

void append_words(const KeyTraits& traits, Reason& to) {
    std::string_view words = traits.words;
    for (bool first = true; !words.empty(); first = false) {
        const std::string_view word = next_word(words);
        if (!first)
            to.append(words.empty() ? " or " : ", ");
        to.append(word);
    }
}

bool parse_value(Key key, std::string_view text, uint64_t& number, bool& automatic, Reason& why) {
    return parse_value(traits_of(key), text, number, automatic, why);
}

bool parse_value(const KeyTraits& traits, std::string_view text, uint64_t& number, bool& automatic, Reason& why) {
    number = 0;
    automatic = false;
    switch (traits.type) {
        case ValueType::fraction:
            return parse_fraction(text, number, why);
        case ValueType::limit:
            return parse_limit(traits.takes_context ? without_plus_context(text) : text, number, why);
        case ValueType::size:
            return parse_size_or_word(traits, text, number, automatic, why);
        case ValueType::count:
            return parse_count(text, number, why);
        case ValueType::percent:
            return parse_percent(text, number, why);
        case ValueType::switch_:
            return parse_switch(text, number, why);
        case ValueType::duration:
            return is_word(traits, text) || parse_duration(traits, text, number, why);
        case ValueType::switch_or_duration:
            return parse_yes_or_no(text, number) || parse_duration(traits, text, number, why);
        case ValueType::choice:
            return parse_choice(traits, text, number, why);
        case ValueType::name:
            return parse_name(text, why);
        case ValueType::group:
            return parse_group(text, why);
        case ValueType::gpus:
            return parse_gpus(text, why);
        case ValueType::split:
            return parse_split(text, number, why);
        case ValueType::log:
            return parse_log(text, why);
        case ValueType::fake_gpus:
            return parse_fake_gpus(text, why);
        case ValueType::file:
            return parse_path(text, why);
        case ValueType::absolute_file:
            return parse_absolute_file(text, why);
        case ValueType::absolute_folder:
            return parse_absolute_path(text, "an absolute path is needed, the same for everybody", why);
    }
    return refuse("no such key", why);
}

}  // namespace cuslice
