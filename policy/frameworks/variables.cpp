// SPDX-License-Identifier: Apache-2.0
#include "policy/frameworks/variables.h"

#include <algorithm>
#include <iterator>

#include "config/at_load.h"
#include "config/load.h"
#include "config/resolve.h"

namespace cuslice {
namespace {

// When they are read was tried with TensorFlow 2.21; JAX takes its options from os.environ, which Python fills when it
// starts. JAX 0.10 takes XLA_CLIENT_MEM_FRACTION as well and calls the other deprecated; only that one is known to
// every version. Both at once are an error, also where a program sets the newer one itself.
constexpr FrameworkVariable kVariables[kFrameworkKeys] = {
    {FrameworkKey::tensorflow_growth, "TF_FORCE_GPU_ALLOW_GROWTH", FrameworkRead::after_cuinit, ""},
    {FrameworkKey::jax_preallocate, "XLA_PYTHON_CLIENT_PREALLOCATE", FrameworkRead::at_start, ""},
    {FrameworkKey::tensorflow_reserve, "TF_DEVICE_MIN_SYS_MEMORY_IN_MB", FrameworkRead::after_cuinit, ""},
    {FrameworkKey::jax_fraction, "XLA_PYTHON_CLIENT_MEM_FRACTION", FrameworkRead::at_start, "XLA_CLIENT_MEM_FRACTION"},
};

constexpr uint64_t kMiB = 1 << 20;
// The share of a GPU's total that JAX takes by itself.
constexpr unsigned kJaxDefault = 7500, kWhole = 10000;

// A setting counts unless a stronger source answers the same question on that GPU.
bool holds(const Entry& entry, const Settings& settings) {
    return std::ranges::none_of(settings.entries(), [&](const Entry& other) {
        const bool stronger = other.key == entry.key && other.rank < entry.rank;
        return stronger && other.selector.covers(entry.selector);
    });
}

constexpr auto kGrowth = static_cast<uint64_t>(AllocatorMode::growth);

// 0 if it is none: so are `no` and the first word of a choice.
uint64_t number_in(Key key, std::string_view text) {
    uint64_t number = 0;
    bool automatic = false;
    Reason unused;
    return parse_value(key, text, number, automatic, unused) ? number : 0;
}
static_assert(kGrowth != 0);

const FrameworkVariable* named(std::string_view name) {
    const auto found = std::ranges::find(kVariables, name, &FrameworkVariable::name);
    return found == std::end(kVariables) ? nullptr : found;
}

size_t place_of(const FrameworkVariable& variable) { return static_cast<size_t>(variable.key); }

}  // namespace

std::span<const FrameworkVariable> framework_variables() { return kVariables; }

bool leaves_frameworks_alone(const Settings& settings) {
    const Entry* none = find(settings, Key::no_framework_env);
    return none != nullptr && none->number != 0;
}

bool any_grows(const Settings& settings) {
    return std::ranges::any_of(settings.entries(), [&](const Entry& entry) {
        const bool growth = entry.key == Key::allocator && entry.number == kGrowth;
        return growth && holds(entry, settings);
    });
}

CUSLICE_AT_LOAD bool grows_by_environment(const char* const* environment) {
    const std::string_view none = variable(environment, traits_of(Key::no_framework_env).variable);
    if (none.data() && number_in(Key::no_framework_env, none) != 0)
        return false;
    std::string_view list = variable(environment, traits_of(Key::allocator).variable);
    bool more = true;
    while (!list.empty()) {
        const std::string_view item = take_item(list, ',', more);
        if (number_in(Key::allocator, slice(item, item.rfind('=') + 1)) == kGrowth)
            return true;
    }
    return false;
}

void FrameworkValues::grow() { grows_ = true; }

void FrameworkValues::add(const SliceRoom& room) {
    limited_ = limited_ || room.limited;
    if (!room.plus_context)
        least_reserve_ = std::min(least_reserve_.value_or(room.libraries()), room.libraries());
    const uint64_t pool = room.left() - room.libraries();
    const double share = room.limit == 0 ? 0 : static_cast<double>(pool) / static_cast<double>(room.limit);
    const auto fraction = std::min(static_cast<unsigned>(share * kWhole), kWhole - 1);
    if (fraction < least_fraction_.value_or(kWhole)) {
        fraction_known_ = room.context_known;
        least_fraction_ = fraction;
    }
}

FrameworkValues::Text FrameworkValues::of(FrameworkKey key) const {
    switch (key) {
        case FrameworkKey::tensorflow_growth:
            return Text(grows_ ? "true" : "");
        case FrameworkKey::jax_preallocate:
            return Text(grows_ ? "false" : "");
        case FrameworkKey::tensorflow_reserve:
            return limited_ ? reserve() : Text();
        case FrameworkKey::jax_fraction:
            return limited_ ? fraction() : Text();
    }
    return Text();
}

FrameworkValues::Text FrameworkValues::reserve() const {
    Text text;
    return text.append(least_reserve_.value_or(0) / kMiB);
}

// Rounded down. Where the context is only believed, a guess must not leave JAX less than it takes anyway.
FrameworkValues::Text FrameworkValues::fraction() const {
    Text text;
    const unsigned fraction = least_fraction_.value_or(0);
    const bool poor_guess = !fraction_known_ && fraction < kJaxDefault;
    if (fraction == 0 || poor_guess)
        return text;
    text.append("0.");
    for (unsigned digit = kWhole / 10; digit > 0; digit /= 10)
        text.append(fraction / digit % 10);
    return text;
}

FrameworkRecord::FrameworkRecord(std::string_view text) {
    bool more = true;
    while (!text.empty()) {
        const std::string_view item = take_item(text, ',', more);
        const size_t equals = item.find('=');
        const FrameworkVariable* const known = equals == item.npos ? nullptr : named(slice(item, 0, equals));
        if (known)
            set(*known, slice(item, equals + 1));
    }
}

std::string_view FrameworkRecord::find(const FrameworkVariable& variable) const {
    const size_t place = place_of(variable);
    return known_[place] ? values_[place].view() : std::string_view();
}

void FrameworkRecord::set(const FrameworkVariable& variable, std::string_view value) {
    values_[place_of(variable)].assign(value);
    known_[place_of(variable)] = true;
}

void FrameworkRecord::drop(const FrameworkVariable& variable) { known_[place_of(variable)] = false; }

FixedText<256> FrameworkRecord::text() const {
    FixedText<256> text;
    for (const FrameworkVariable& variable : kVariables) {
        if (!known_[place_of(variable)])
            continue;
        if (!text.empty())
            text.append(',');
        text.append(variable.name, '=', values_[place_of(variable)]);
    }
    return text;
}

FrameworkChange plan_change(const FrameworkVariable& one, std::string_view wanted, const char* const* environment,
                            FrameworkRecord& record) {
    const std::string_view present = variable(environment, one.name);
    const std::string_view ours = record.find(one);
    const bool is_ours = ours.data() && present == ours;
    if (present.data() && !is_ours) {
        record.drop(one);  // the user's
        return FrameworkChange::keep;
    }
    if (!present.data() && ours.data())
        return FrameworkChange::keep;  // the program has removed it
    const bool has_synonym = !one.synonym.empty() && variable(environment, one.synonym).data();
    if (wanted.empty() || has_synonym) {
        record.drop(one);
        return present.data() ? FrameworkChange::remove : FrameworkChange::keep;
    }
    record.set(one, wanted);
    return present == wanted ? FrameworkChange::keep : FrameworkChange::set;
}

}  // namespace cuslice
