#include "policy/frameworks/variables.h"

#include <algorithm>

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

constexpr std::uint64_t kMiB = 1 << 20;
// The share of a GPU's total that JAX takes by itself.
constexpr unsigned kJaxDefault = 7500, kWhole = 10000;

// A setting counts unless a stronger source answers the same question on that GPU.
bool holds(const Entry& entry, const Settings& settings) {
    for (const Entry& other : settings.entries()) {
        const bool covers = other.selector.kind == GpuSelector::Kind::every || other.selector.same_as(entry.selector);
        if (other.key == entry.key && other.rank < entry.rank && covers) return false;
    }
    return true;
}

bool is_growth(std::string_view text) {
    std::uint64_t mode = 0;
    bool automatic = false;
    Reason unused;
    return parse_value(Key::allocator, text, mode, automatic, unused) &&
           mode == static_cast<std::uint64_t>(AllocatorMode::growth);
}

bool is_yes(Key key, std::string_view text) {
    std::uint64_t number = 0;
    bool automatic = false;
    Reason unused;
    return parse_value(key, text, number, automatic, unused) && number != 0;
}

std::size_t place_of(const FrameworkVariable& variable) { return static_cast<std::size_t>(variable.key); }

}  // namespace

std::span<const FrameworkVariable> framework_variables() { return kVariables; }

bool leaves_frameworks_alone(const Settings& settings) {
    const Entry* none = find(settings, Key::no_framework_env);
    return none != nullptr && none->number != 0;
}

bool any_grows(const Settings& settings) {
    for (const Entry& entry : settings.entries()) {
        const bool growth =
            entry.key == Key::allocator && entry.number == static_cast<std::uint64_t>(AllocatorMode::growth);
        if (growth && holds(entry, settings)) return true;
    }
    return false;
}

CUSLICE_AT_LOAD bool grows_by_environment(const char* const* environment) {
    const std::string_view none = variable(environment, traits_of(Key::no_framework_env).variable);
    if (none.data() && is_yes(Key::no_framework_env, none)) return false;
    std::string_view list = variable(environment, traits_of(Key::allocator).variable);
    while (!list.empty()) {
        const std::size_t comma = list.find(',');
        const std::string_view item = slice(list, 0, comma);
        if (is_growth(slice(item, item.rfind('=') + 1))) return true;
        list = comma == list.npos ? std::string_view() : slice(list, comma + 1);
    }
    return false;
}

void FrameworkValues::grow() { grows_ = true; }

void FrameworkValues::add(const SliceRoom& room) {
    limited_ = limited_ || room.limited;
    if (!room.plus_context) least_reserve_ = std::min(least_reserve_.value_or(room.libraries()), room.libraries());
    const std::uint64_t pool = room.left() - room.libraries();
    const double share = room.limit == 0 ? 0 : static_cast<double>(pool) / static_cast<double>(room.limit);
    const auto fraction = std::min(static_cast<unsigned>(share * kWhole), kWhole - 1);
    if (!least_fraction_ || fraction < *least_fraction_) fraction_known_ = room.context_known;
    least_fraction_ = std::min(least_fraction_.value_or(fraction), fraction);
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
    return text.append_number(least_reserve_.value_or(0) / kMiB);
}

// Rounded down. Where the context is only believed, a guess must not leave JAX less than it takes anyway.
FrameworkValues::Text FrameworkValues::fraction() const {
    Text text;
    const unsigned fraction = least_fraction_.value_or(0);
    if (fraction == 0 || (!fraction_known_ && fraction < kJaxDefault)) return text;
    text.append("0.");
    for (unsigned digit = kWhole / 10; digit > 0; digit /= 10) text.append_number(fraction / digit % 10);
    return text;
}

FrameworkRecord::FrameworkRecord(std::string_view text) {
    while (!text.empty()) {
        const std::size_t comma = text.find(',');
        const std::string_view item = slice(text, 0, comma);
        const std::size_t equals = item.find('=');
        for (const FrameworkVariable& variable : kVariables)
            if (equals != item.npos && slice(item, 0, equals) == variable.name) set(variable, slice(item, equals + 1));
        text = comma == text.npos ? std::string_view() : slice(text, comma + 1);
    }
}

std::string_view FrameworkRecord::find(const FrameworkVariable& variable) const {
    const std::size_t place = place_of(variable);
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
        if (!known_[place_of(variable)]) continue;
        if (!text.empty()) text.append(',');
        text.append(variable.name).append('=').append(values_[place_of(variable)].view());
    }
    return text;
}

FrameworkChange plan_change(const FrameworkVariable& one, std::string_view wanted, const char* const* environment,
                            FrameworkRecord& record) {
    const std::string_view present = variable(environment, one.name), ours = record.find(one);
    if (present.data() && (!ours.data() || present != ours)) {
        record.drop(one);  // the user's
        return FrameworkChange::keep;
    }
    if (!present.data() && ours.data()) return FrameworkChange::keep;  // the program has removed it
    const bool has_synonym = !one.synonym.empty() && variable(environment, one.synonym).data();
    if (wanted.empty() || has_synonym) {
        record.drop(one);
        return present.data() ? FrameworkChange::remove : FrameworkChange::keep;
    }
    record.set(one, wanted);
    return present.data() && present == wanted ? FrameworkChange::keep : FrameworkChange::set;
}

}  // namespace cuslice
