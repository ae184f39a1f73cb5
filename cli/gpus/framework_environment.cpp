// SPDX-License-Identifier: Apache-2.0
#include "cli/gpus/framework_environment.h"

#include <algorithm>

#include "config/resolve.h"
#include "config/split/plan.h"
#include "policy/frameworks/variables.h"

namespace cuslice::cli {
namespace {

FrameworkRecord record_in(const Environment& environment) {
    return FrameworkRecord(environment.get(kFrameworkRecord).value_or(""));
}

bool is_set(const Environment& environment, std::string_view name) {
    return !name.empty() && environment.get(name).has_value();
}

// By others than cuslice.
bool is_the_users(const Environment& environment, const FrameworkVariable& variable) {
    if (is_set(environment, variable.synonym))
        return true;
    const FrameworkRecord record = record_in(environment);
    const std::string_view ours = record.find(variable);
    return is_set(environment, variable.name) && (!ours.data() || environment.get(variable.name) != ours);
}

bool limits_any(const Settings& settings) {
    const auto entries = settings.entries();
    return splits_any(settings) || std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
               return is_amount(entry.key) || entry.key == Key::group_limit;
           });
}

}  // namespace

bool wants_reserve_variables(const Environment& environment, const Settings& settings) {
    if (leaves_frameworks_alone(settings) || !limits_any(settings))
        return false;
    for (const FrameworkVariable& variable : framework_variables()) {
        const bool of_slices =
            variable.key == FrameworkKey::tensorflow_reserve || variable.key == FrameworkKey::jax_fraction;
        if (of_slices && !is_the_users(environment, variable))
            return true;
    }
    return false;
}

void tell_frameworks(Environment& environment, const Settings& settings, const std::vector<SliceRoom>& rooms) {
    FrameworkValues values;
    if (!leaves_frameworks_alone(settings)) {
        if (any_grows(settings))
            values.grow();
        values.add(rooms);
    }
    FrameworkRecord record = record_in(environment);
    for (const FrameworkVariable& variable : framework_variables()) {
        // Removed since an outer launcher set it: this one is asked for anew.
        if (!is_set(environment, variable.name))
            record.drop(variable);
        const auto value = values.of(variable.key);
        const std::vector<char*> lines = environment.pointers();
        const FrameworkChange change = plan_change(variable, value, lines.data(), record);
        if (change == FrameworkChange::set)
            environment.set(variable.name, value);
        if (change == FrameworkChange::remove)
            environment.unset(variable.name);
    }
    const auto text = record.text();
    if (text.empty()) {
        environment.unset(kFrameworkRecord);
    } else {
        environment.set(kFrameworkRecord, text);
    }
}

}  // namespace cuslice::cli
