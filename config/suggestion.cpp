// SPDX-License-Identifier: Apache-2.0
#include "config/suggestion.h"

#include "config/fraction.h"
#include "config/gpu_selector.h"

namespace cuslice {
namespace {

using Value = FixedText<160>;

bool contains(std::string_view text, char character) { return text.find(character) != text.npos; }

bool takes_decimals(Key key) {
    switch (traits_of(key).type) {
        case ValueType::fraction:
        case ValueType::limit:
        case ValueType::size:
        case ValueType::percent:
            return true;
        default:
            return false;
    }
}

bool is_fraction(std::string_view text) {
    Fraction unused;
    Reason why;
    return parse_fraction(text, unused, why);
}

bool names_gpu(std::string_view text) {
    GpuSelector unused;
    Reason why;
    return parse_gpu_selector(text, unused, why);
}

Value replaced(std::string_view text, std::string_view characters, char by) {
    Value value;
    for (const char character : text)
        value.append(contains(characters, character) ? by : character);
    return value;
}

// "--fraction 0=50%", "CUSLICE_FRACTION=0=50%", or in a file, whose table names the GPU, "fraction = "50%"".
void append_setting(const Refused& refused, Key key, Reason& why) {
    const KeyTraits& traits = traits_of(key);
    if (refused.spelling == Spelling::key) {
        why.append(traits.name, " = \"", refused.value, "\"");
        return;
    }
    if (refused.spelling == Spelling::option)
        why.append("--", traits.name, " ");
    else
        why.append(traits.variable, "=");
    if (!refused.gpu.empty())
        why.append(refused.gpu, "=");
    why.append(refused.value);
}

bool suggest_fraction(const Refused& refused, Reason& why) {
    const bool percent = contains(refused.value, '%');
    const bool looks_so = percent || contains(refused.value, '.');
    if (refused.key != Key::limit || !looks_so)
        return false;
    if (!is_fraction(refused.value))
        return false;
    // 0.5 without a unit can be half a GPU or half a GiB.
    if (percent)
        why.assign("a share of the GPU is a fraction: did you mean ");
    else
        why.append(", or ");
    append_setting(refused, Key::fraction, why);
    return true;
}

bool suggest_limit(const Refused& refused, Reason& why) {
    if (refused.key != Key::fraction || !refused.takes(Key::limit, refused.value))
        return false;
    why.assign("a size is a limit: did you mean ");
    append_setting(refused, Key::limit, why);
    return true;
}

bool suggest_decimal_point(const Refused& refused, Reason& why) {
    if (!takes_decimals(refused.key) || !contains(refused.value, ','))
        return false;
    if (!refused.takes(refused.key, replaced(refused.value, ",", '.')))
        return false;
    suggest_point(refused.value, why);
    return true;
}

bool suggest_commas_of_amounts(const Refused& refused, Reason& why) {
    if (!is_amount(refused.key) || !contains(refused.value, ';'))
        return false;
    why.assign("values of several GPUs are divided by commas, each with its GPU: ");
    why.append(refused.key == Key::limit ? "0=4GiB,1=1GiB" : "0=0.4,1=0.25");
    return true;
}

bool suggest_commas_of_gpus(const Refused& refused, Reason& why) {
    if (refused.key != Key::gpus)
        return false;
    const Value list = replaced(refused.value, ":; ", ',');
    if (list.cut() || !refused.takes(Key::gpus, list))
        return false;
    why.assign("GPUs are divided by commas: did you mean ", list);
    return true;
}

// 0:1GiB, as people write who know YAML.
bool suggest_equals_sign(const Refused& refused, Reason& why) {
    const size_t colon = refused.value.rfind(':');
    const bool could_name_gpu = traits_of(refused.key).per_gpu && refused.gpu.empty();
    if (colon == refused.value.npos || !could_name_gpu)
        return false;
    const std::string_view gpu = slice(refused.value, 0, colon);
    const std::string_view value = slice(refused.value, colon + 1);
    if (!names_gpu(gpu) || !refused.takes(refused.key, value))
        return false;
    if (refused.spelling == Spelling::key) {
        why.assign("a GPU's own value is in its table: [gpu.", gpu, "]");
        return true;
    }
    why.assign("a GPU and its value are joined by an equals sign: did you mean ");
    why.append(gpu, "=", value);
    return true;
}

}  // namespace

void suggest(const Refused& refused, Reason& why) {
    using Suggest = bool (*)(const Refused&, Reason&);
    constexpr Suggest kAll[] = {suggest_fraction,          suggest_limit,          suggest_decimal_point,
                                suggest_commas_of_amounts, suggest_commas_of_gpus, suggest_equals_sign};
    for (const Suggest makes_one : kAll)
        if (makes_one(refused, why))
            return;
}

bool begins_with_decimal_comma(Key key, Takes* takes, std::string_view text, std::string_view& value) {
    if (!takes_decimals(key))
        return false;
    const size_t comma = text.find(',');
    if (comma == text.npos)
        return false;
    const std::string_view after = slice(text, comma + 1);
    value = slice(text, 0, comma + 1 + slice(after, 0, after.find(',')).size());
    const size_t equals = value.find('=');
    if (equals != value.npos && equals < comma)
        value = slice(value, equals + 1);
    const size_t mark = value.find(',');
    const std::string_view decimals = slice(value, mark + 1);
    if (!are_digits(slice(value, 0, mark)) || leading_digits(decimals).empty())
        return false;
    return takes(key, replaced(value, ",", '.'));
}

void suggest_point(std::string_view value, Reason& why) {
    why.assign("the decimal mark is a point: did you mean ", replaced(value, ",", '.'));
}

}  // namespace cuslice
