// SPDX-License-Identifier: Apache-2.0
#include "config/rules/read.h"

#include <algorithm>
#include <iterator>
#include <new>

#include "config/gpu_selector.h"
#include "config/plus_context.h"
#include "config/refuse.h"
#include "config/refuse_item.h"
#include "config/rules/glob.h"
#include "config/settings.h"

namespace cuslice::rules {
namespace {

struct Reading {
    std::string_view path;
    Names& names;
    Rule& rule;
    OnRule on_rule;
    void* context;
    ConfigError& error;
    bool in_rule = false, good = true;
};

bool refuse(Reading& reading, const cuslice_toml_item& item, std::string_view reason) {
    return refuse_item(item, reading.path, reason, reading.error);
}

constexpr std::string_view kCeilingForm = "a rule's ceiling is a fraction, a limit, a time-share or a time-share-cap";

bool is_table(const cuslice_toml_item& item) { return item.kind == CUSLICE_TOML_TABLE; }

bool is_number(const cuslice_toml_item& item) {
    return item.kind == CUSLICE_TOML_INTEGER || item.kind == CUSLICE_TOML_FLOAT;
}

bool refuse_rule(Reading& reading, std::string_view reason) {
    reading.error.set(reading.path, reason);
    reading.error.line = reading.rule.line;
    reading.error.column = reading.rule.column;
    reading.error.key.assign("rule");
    return false;
}

// Empty: every GPU.
bool same_gpu(std::string_view a, std::string_view b) {
    if (a.empty() || b.empty())
        return a.empty() == b.empty();
    GpuSelector first, second;
    Reason unused;
    const bool known = parse_gpu_selector(a, first, unused) && parse_gpu_selector(b, second, unused);
    return known && first.same_as(second);
}

const Limit* find_limit(const Rule& rule, Key key, std::string_view gpu) {
    for (const Limit& limit : rule.limit_list())
        if (same_question(limit.key, key) && same_gpu(limit.gpu, gpu))
            return &limit;
    return nullptr;
}

// A cap holds for a share of its own GPU, or of every one.
bool check_cap(Reading& reading, const Limit& cap) {
    const Limit* share = find_limit(reading.rule, Key::share, cap.gpu);
    if (share == nullptr)
        share = find_limit(reading.rule, Key::share, {});
    if (share == nullptr)
        return refuse_rule(reading, "time-share-cap needs a time-share");
    return cap.number >= share->number || refuse_rule(reading, "time-share-cap is below time-share");
}

bool check_caps(Reading& reading) {
    return std::ranges::all_of(reading.rule.limit_list(), [&](const Limit& limit) {
        return limit.key != Key::share_cap || check_cap(reading, limit);
    });
}

bool end_rule(Reading& reading) {
    if (!reading.in_rule)
        return true;
    reading.in_rule = false;
    const Rule& rule = reading.rule;
    if (rule.name.empty())
        return refuse_rule(reading, "a rule needs a name, as name = \"students\"");
    if (rule.share != Share::nobody && std::ranges::none_of(rule.limit_list(), is_amount, &Limit::key))
        return refuse_rule(reading, "share needs a limit or a fraction");
    if (rule.share == Share::cgroup && rule.cgroup.empty())
        return refuse_rule(reading, "share = \"cgroup\" needs a cgroup: which ones?");
    return check_caps(reading) && reading.on_rule(reading.context, reading.rule, reading.error);
}

bool begin_rule(Reading& reading, const cuslice_toml_item& item) {
    if (!end_rule(reading))
        return false;
    new (&reading.rule) Rule;
    reading.rule.path = reading.path;
    reading.rule.line = item.line;
    reading.rule.column = item.column;
    reading.in_rule = true;
    return true;
}

// It becomes a part of messages.
bool read_name(Reading& reading, const cuslice_toml_item& item) {
    const std::string_view name(item.value, item.value_size);
    const bool fits = !name.empty() && name.size() <= Rule::kMaxName;
    const bool plain = item.kind == CUSLICE_TOML_STRING && are_name_characters(name);
    if (!fits || !plain)
        return refuse(reading, item, "a name of up to 40 letters, digits, '.', '_' and '-' is needed");
    Reason why;
    if (!reading.names.add(name, why))
        return refuse(reading, item, why);
    reading.rule.name.assign(name);
    return true;
}

Share share_of(std::string_view word) {
    if (word == "user")
        return Share::user;
    if (word == "cgroup")
        return Share::cgroup;
    return Share::nobody;
}

bool read_share(Reading& reading, const cuslice_toml_item& item) {
    const std::string_view value(item.value, item.value_size);
    const Share share = item.kind == CUSLICE_TOML_STRING ? share_of(value) : Share::nobody;
    if (share == Share::nobody)
        return refuse(reading, item, "\"user\" or \"cgroup\" is needed; without share nothing is shared");
    reading.rule.share = share;
    return true;
}

bool add_value(Reading& reading, const cuslice_toml_item& item, Values& values, bool pattern, std::string_view value) {
    if (value.empty())
        return refuse(reading, item, "an empty value fits nobody: leave the condition out");
    if (has_control_character(value))
        return refuse(reading, item, "no control characters, please");
    if (pattern && value[0] != '/')
        return refuse(reading, item, "a pattern begins with /");
    if (pattern && value.size() > kMostOfPattern)
        return refuse(reading, item, "longer than 512 characters");
    return values.add(value) || refuse(reading, item, "more than 4 KiB of values: make two rules of it");
}

bool read_values(Reading& reading, const cuslice_toml_item& item, Values& values, bool pattern) {
    if (item.kind == CUSLICE_TOML_STRING)
        return add_value(reading, item, values, pattern, {item.value, item.value_size});
    if (item.joined == nullptr || item.string_count == 0)
        return refuse(reading, item, "a string or an array of strings is needed");
    for (size_t i = 0; i < item.string_count; ++i)
        if (!add_value(reading, item, values, pattern, item.strings[i]))
            return false;
    return true;
}

// Conditions of a rule.
struct KeyOfValues {
    std::string_view name;
    Values Rule::*values;
    bool patterns;  // of paths
};
constexpr KeyOfValues kKeysOfValues[] = {
    {"user", &Rule::user, false},
    {"group", &Rule::group, false},
    {"cgroup", &Rule::cgroup, true},
    {"executable", &Rule::executable, true},
};

bool refuse_key(Reading& reading, const cuslice_toml_item& item, std::string_view gpu) {
    if (!gpu.empty())
        return refuse(reading, item, kCeilingForm);
    return refuse(reading, item,
                  "no such key; a rule has name, user, group, cgroup, executable, share, limit, fraction, time-share, "
                  "time-share-cap and gpu.X");
}

bool read_number(Reading& reading, const cuslice_toml_item& item, Key key, std::string_view value, uint64_t& number) {
    const bool right_kind = item.kind == CUSLICE_TOML_STRING || is_number(item);
    if (!right_kind)
        return refuse(reading, item, "a number or a string is needed");
    Reason why;
    bool automatic = false;
    if (!parse_value(key, value, number, automatic, why))
        return refuse(reading, item, why);
    return !has_plus_context(value) || refuse(reading, item, "+context can't be had in a rule");
}

bool read_limit(Reading& reading, const cuslice_toml_item& item, std::string_view key, std::string_view gpu) {
    const CeilingWord* const word = std::ranges::find(kCeilingWords, key, &CeilingWord::name);
    if (word == std::end(kCeilingWords))
        return refuse_key(reading, item, gpu);
    const std::string_view value(item.value, item.value_size);
    uint64_t number = 0;
    if (!read_number(reading, item, word->key, value, number))
        return false;
    Rule& rule = reading.rule;
    if (find_limit(rule, word->key, gpu) != nullptr)
        return refuse(reading, item, "given twice for the same GPU: keep one");
    if (rule.limit_count == Rule::kMaxLimits)
        return refuse(reading, item, "more than 64 ceilings in one rule");
    Limit& limit = rule.limits[rule.limit_count++];
    limit.key = word->key;
    limit.number = number;
    limit.gpu.assign(gpu);
    limit.value.assign(value);
    limit.line = item.line;
    limit.column = item.column;
    const bool cut = limit.gpu.cut() || limit.value.cut();
    return !cut || refuse(reading, item, "too long");
}

// rule.gpu, rule.gpu.X and rule.gpu.X.limit
bool read_gpu(Reading& reading, const cuslice_toml_item& item) {
    if (item.depth > 4)
        return refuse(reading, item, kCeilingForm);
    if (item.depth == 4)
        return read_limit(reading, item, item.path[3], item.path[2]);
    if (!is_table(item))
        return refuse(reading, item, "a table is needed for each GPU, as [rule.gpu.0] or gpu.0.limit = \"8GiB\"");
    if (item.depth == 2)
        return true;
    GpuSelector unused;
    Reason why;
    return parse_gpu_selector(item.path[2], unused, why) || refuse(reading, item, why);
}

bool read_item(Reading& reading, const cuslice_toml_item& item) {
    constexpr std::string_view kOnlyRules = "a file of rules has [[rule]] tables alone";
    if (std::string_view(item.path[0]) != "rule")
        return refuse(reading, item, kOnlyRules);
    if (item.depth == 1) {
        if (item.kind == CUSLICE_TOML_TABLES)
            return true;  // its tables follow
        if (is_table(item) && item.element)
            return begin_rule(reading, item);
        return refuse(reading, item, "two brackets are needed: [[rule]]");
    }
    const std::string_view key = item.path[1];
    if (key == "gpu")
        return read_gpu(reading, item);
    if (is_table(item) || item.depth > 2)
        return refuse(reading, item, "no such table in a rule");
    if (key == "name")
        return read_name(reading, item);
    if (key == "share")
        return read_share(reading, item);
    for (const KeyOfValues& values : kKeysOfValues)
        if (key == values.name)
            return read_values(reading, item, reading.rule.*values.values, values.patterns);
    return read_limit(reading, item, key, {});
}

int on_item(void* context, const cuslice_toml_item* item) {
    auto& reading = *static_cast<Reading*>(context);
    reading.good = read_item(reading, *item);
    return reading.good ? 1 : 0;
}

}  // namespace

bool Names::add(std::string_view name, Reason& why) {
    for (size_t i = 0; i < count_; ++i) {
        if (names_[i].view() != name)
            continue;
        return refuse("there is a rule of this name already", why);
    }
    if (count_ == kMax)
        return refuse("more than 512 rules", why);
    names_[count_++].assign(name);
    return true;
}

bool read_rules(std::string_view text, std::string_view path, cuslice_toml_parse_function* parse, Names& names,
                Rule& rule, OnRule on_rule, void* context, ConfigError& error) {
    Reading reading{path, names, rule, on_rule, context, error};
    cuslice_toml_failure failure{};
    if (parse(text.data(), text.size(), on_item, &reading, &failure) != 0) {
        Reason why;
        why.assign("not TOML: ", failure.reason);
        error.set(path, why);
        error.line = failure.line;
        error.column = failure.column;
        error.key.clear();
        return false;
    }
    return reading.good && end_rule(reading);
}

}  // namespace cuslice::rules
