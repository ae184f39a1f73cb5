#include "config/suggestion.h"

#include "config/fraction.h"
#include "config/gpu_selector.h"

namespace cuslice {
namespace {

using Value = FixedText<160>;

bool contains(std::string_view text, char character) { return text.find(character) != text.npos; }

bool all_digits(std::string_view text) {
    for (const char digit : text)
        if (!is_digit(digit)) return false;
    return !text.empty();
}

bool takes_decimals(Key key) {
    const ValueType type = traits_of(key).type;
    return type == ValueType::fraction || type == ValueType::limit || type == ValueType::size;
}

Value replaced(std::string_view text, std::string_view characters, char by) {
    Value value;
    for (const char character : text) value.append(contains(characters, character) ? by : character);
    return value;
}

// "--fraction 0=50%", "CUSLICE_FRACTION=0=50%", or in a file, whose table names the GPU, "fraction = "50%"".
void append_setting(const Refused& refused, Key key, Reason& why) {
    const KeyTraits& traits = traits_of(key);
    const bool in_file = refused.spelling == Spelling::key;
    if (refused.spelling == Spelling::option)
        why.append("--").append(traits.name).append(" ");
    else if (in_file)
        why.append(traits.name).append(" = \"");
    else
        why.append(traits.variable).append("=");
    if (!refused.gpu.empty() && !in_file) why.append(refused.gpu).append("=");
    why.append(refused.value).append(in_file ? "\"" : "");
}

bool suggest_fraction(const Refused& refused, Reason& why) {
    Fraction unused;
    Reason unused_why;
    const bool percent = contains(refused.value, '%');
    if (refused.key != Key::limit || (!percent && !contains(refused.value, '.'))) return false;
    if (!parse_fraction(refused.value, unused, unused_why)) return false;
    // 0.5 without a unit can be half a GPU or half a GiB.
    percent ? why.assign("a share of the GPU is a fraction: did you mean ") : why.append(", or ");
    append_setting(refused, Key::fraction, why);
    return true;
}

bool suggest_limit(const Refused& refused, Reason& why) {
    if (refused.key != Key::fraction || !refused.takes(Key::limit, refused.value)) return false;
    why.assign("a size is a limit: did you mean ");
    append_setting(refused, Key::limit, why);
    return true;
}

bool suggest_decimal_point(const Refused& refused, Reason& why) {
    if (!takes_decimals(refused.key) || !contains(refused.value, ',')) return false;
    if (!refused.takes(refused.key, replaced(refused.value, ",", '.').view())) return false;
    suggest_point(refused.value, why);
    return true;
}

bool suggest_commas(const Refused& refused, Reason& why) {
    if (is_amount(refused.key) && contains(refused.value, ';')) {
        why.assign("values of several GPUs are divided by commas, each with its GPU: ");
        why.append(refused.key == Key::limit ? "0=4GiB,1=1GiB" : "0=0.4,1=0.25");
        return true;
    }
    const Value list = replaced(refused.value, ":; ", ',');
    if (refused.key != Key::gpus || list.cut() || !refused.takes(Key::gpus, list.view())) return false;
    why.assign("GPUs are divided by commas: did you mean ").append(list.view());
    return true;
}

// 0:1GiB, as people write who know YAML.
bool suggest_equals_sign(const Refused& refused, Reason& why) {
    const std::size_t colon = refused.value.rfind(':');
    if (!traits_of(refused.key).per_gpu || colon == refused.value.npos || !refused.gpu.empty()) return false;
    const std::string_view gpu = slice(refused.value, 0, colon), value = slice(refused.value, colon + 1);
    GpuSelector unused;
    Reason unused_why;
    if (!parse_gpu_selector(gpu, unused, unused_why) || !refused.takes(refused.key, value)) return false;
    if (refused.spelling == Spelling::key) {
        why.assign("a GPU's own value is in its table: [gpu.").append(gpu).append("]");
        return true;
    }
    why.assign("a GPU and its value are joined by an equals sign: did you mean ");
    why.append(gpu).append("=").append(value);
    return true;
}

}  // namespace

void suggest(const Refused& refused, Reason& why) {
    static_cast<void>(suggest_fraction(refused, why) || suggest_limit(refused, why) ||
                      suggest_decimal_point(refused, why) || suggest_commas(refused, why) ||
                      suggest_equals_sign(refused, why));
}

bool begins_with_decimal_comma(Key key, Takes* takes, std::string_view text, std::string_view& value) {
    if (!takes_decimals(key)) return false;
    const std::size_t comma = text.find(',');
    if (comma == text.npos) return false;
    const std::string_view after = slice(text, comma + 1);
    value = slice(text, 0, comma + 1 + slice(after, 0, after.find(',')).size());
    const std::size_t equals = value.find('=');
    if (equals != value.npos && equals < comma) value = slice(value, equals + 1);
    const std::size_t mark = value.find(',');
    const std::string_view decimals = slice(value, mark + 1);
    if (!all_digits(slice(value, 0, mark)) || decimals.empty() || !is_digit(decimals[0])) return false;
    return takes(key, replaced(value, ",", '.').view());
}

void suggest_point(std::string_view value, Reason& why) {
    why.assign("the decimal mark is a point: did you mean ").append(replaced(value, ",", '.').view());
}

}  // namespace cuslice
