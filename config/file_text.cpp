// SPDX-License-Identifier: Apache-2.0
// Applies a file's tables and keys to the settings.
#include <algorithm>
#include <iterator>

#include "config/load.h"
#include "config/refuse_item.h"

namespace cuslice {
namespace {

struct Reading {
    Settings& settings;
    std::string_view path;
    Source source;
    ConfigError& error;
    Take take;
    bool good = true;
};

// The names on the way to an item, and the parts of them that matter.
struct Place {
    std::string_view gpu;
    std::string_view key;
    bool ceiling = false;
    bool top = false;
};

std::string_view name_at(const cuslice_toml_item& item, size_t at) { return item.path[at]; }

// `reason` about the item, with its value where it is one.
bool refuse(Reading& reading, const cuslice_toml_item& item, std::string_view reason) {
    return refuse_item(item, reading.path, reason, reading.error);
}

bool is_table(const cuslice_toml_item& item) { return item.kind == CUSLICE_TOML_TABLE; }

// Written without quotes.
bool is_number(const cuslice_toml_item& item) {
    return item.kind == CUSLICE_TOML_INTEGER || item.kind == CUSLICE_TOML_FLOAT;
}

bool need_table(Reading& reading, const cuslice_toml_item& item, std::string_view reason) {
    return is_table(item) || refuse(reading, item, reason);
}

// Fake GPUs are a list of models, or a file of TOML.
bool is_path_of_fake_gpus(std::string_view value) { return value.find('/') != value.npos || value.ends_with(".toml"); }

// The path in a value; empty if there is none.
std::string_view path_in(ValueType type, std::string_view value) {
    switch (type) {
        case ValueType::file:
        case ValueType::absolute_file:
            return value;
        case ValueType::fake_gpus:
            return is_path_of_fake_gpus(value) ? value : std::string_view();
        case ValueType::log: {
            const size_t colon = value.find(':');
            return colon == value.npos ? std::string_view() : slice(value, colon + 1);
        }
        default:
            return {};
    }
}

// A file is read from many folders, so a path in it cannot be relative to one.
bool is_relative(ValueType type, std::string_view value) {
    const std::string_view path = path_in(type, value);
    return !path.empty() && path[0] != '/';
}

std::string_view kinds_of(const KeyTraits& traits) {
    if (traits.type == ValueType::split)
        return "a number, a string or an array of strings";
    constexpr ValueType kNumbers[] = {ValueType::fraction, ValueType::count, ValueType::percent};
    const bool number = std::ranges::find(kNumbers, traits.type) != std::end(kNumbers);
    return number ? "a number or a string" : "a string";
}

bool refuse_kind(Reading& reading, const cuslice_toml_item& item, const KeyTraits& traits) {
    Reason why;
    why.append(kinds_of(traits), " is needed, as ");
    return refuse(reading, item, why.append(traits.name, " = ", traits.example));
}

// Fractions, counts and splits may be TOML numbers, a split an array; everything else is a string, because it has a
// unit or is a name.
bool check_kind(Reading& reading, const cuslice_toml_item& item, const KeyTraits& traits) {
    if (item.kind == CUSLICE_TOML_STRING)
        return true;
    // A bare number of bytes goes on to the reader of sizes, which knows what to say.
    const bool number = is_number(item) && may_be_number(traits);
    const bool yes_or_no = item.kind == CUSLICE_TOML_BOOLEAN && traits.stands_alone;
    const bool sizes = item.joined != nullptr && traits.type == ValueType::split;
    return number || yes_or_no || sizes || refuse_kind(reading, item, traits);
}

bool refuse_unknown(Reading& reading, const cuslice_toml_item& item, std::string_view key) {
    Reason why;
    if (const LaterKey* later = find_later_key(key))
        explain_later(*later, why);
    else
        explain_unknown(Spelling::key, key, why);
    return refuse(reading, item, why);
}

// A key in the wrong table says where it belongs: the names are few, so the mistake is the place.
std::string_view misplaced(const KeyTraits& traits, const Place& place) {
    if (place.top && traits.per_gpu)
        return "belongs in a table: [memory] for every GPU, or [gpu.0] for one";
    if (!place.top && !traits.per_gpu)
        return "belongs at the top of the file, before the first table";
    if (place.ceiling && !traits.may_be_ceiling)
        return "a ceiling is a fraction or a limit";
    return {};
}

bool check_place(Reading& reading, const cuslice_toml_item& item, const KeyTraits& traits, const Place& place) {
    if (!traits.in_file) {
        Reason why(traits.name);
        return refuse(reading, item, why.append(" has no meaning in a file"));
    }
    const std::string_view reason = misplaced(traits, place);
    return reason.empty() || refuse(reading, item, reason);
}

bool refuse_value(Reading& reading, const cuslice_toml_item& item, Reason& why) {
    // The unit alone would not do: 4GiB without quotes is no TOML.
    const bool has_suggestion = why.view().find("did you mean") != std::string_view::npos;
    if (is_number(item) && has_suggestion)
        why.append(", in quotes");
    return refuse(reading, item, why);
}

// The origin is the key's own place, which editors understand: path:line:column.
bool add_value(Reading& reading, const cuslice_toml_item& item, const Place& place) {
    const KeyTraits* const traits = find_key(place.key);
    if (traits == nullptr)
        return refuse_unknown(reading, item, place.key);
    if (!check_place(reading, item, *traits, place))
        return false;
    if (!check_kind(reading, item, *traits))
        return false;
    const bool list = item.joined != nullptr;
    const auto value =
        list ? std::string_view(item.joined, item.joined_size) : std::string_view(item.value, item.value_size);
    if (is_relative(traits->type, value))
        return refuse(reading, item, "a path in a file is absolute: it begins with /");

    Reason why;
    NewEntry entry{.key = traits->key, .ceiling = place.ceiling, .rank = {reading.source, 0}, .value = value};
    const bool one_gpu = !place.gpu.empty();
    if (one_gpu && !parse_gpu_selector(place.gpu, entry.selector, why))
        return refuse(reading, item, why);
    FixedText<4300> origin(place.ceiling ? "ceiling " : "");
    origin.append(reading.path, ":", item.line, ":", item.column);
    entry.origin = origin.view();
    // Processes that share by a rule share in the system's own folder, even if only ceilings are taken from its file.
    if (traits->key == Key::dir && reading.source == Source::system_file)
        reading.settings.use_system_folder(value);
    if (reading.take == Take::ceilings && !place.ceiling)
        return true;
    return reading.settings.add(entry, why) || refuse_value(reading, item, why);
}

// [gpu.X] and [ceiling.gpu.X]; `first` is where "gpu" stands in the path.
bool read_gpu(Reading& reading, const cuslice_toml_item& item, size_t first, Place place) {
    constexpr std::string_view kNeeded = "a table is needed for each GPU, as [gpu.0] or [gpu.\"GPU-5f\"]";
    if (item.depth == first + 1)
        return need_table(reading, item, kNeeded);
    place.gpu = name_at(item, first + 1);
    if (item.depth == first + 2) {
        GpuSelector unused;
        Reason why;
        if (!is_table(item))
            return refuse(reading, item, kNeeded);
        return parse_gpu_selector(place.gpu, unused, why) || refuse(reading, item, why);
    }
    place.key = name_at(item, first + 2);
    return add_value(reading, item, place);
}

// Anybody could write a ceiling into a file of their own; that it binds others is the system's file's right alone.
bool read_ceiling(Reading& reading, const cuslice_toml_item& item) {
    if (reading.source != Source::system_file) {
        return refuse(reading, item, "only the system's file sets ceilings: /etc/cuslice/cuslice.toml");
    }
    if (item.depth == 1)
        return need_table(reading, item, "a table is needed: [ceiling]");
    Place place{.ceiling = true};
    if (name_at(item, 1) == "gpu")
        return read_gpu(reading, item, 1, place);
    place.key = name_at(item, 1);
    return add_value(reading, item, place);
}

bool read_item(Reading& reading, const cuslice_toml_item& item) {
    const std::string_view first = name_at(item, 0);
    if (first == "gpu")
        return read_gpu(reading, item, 0, {});
    if (first == "ceiling")
        return read_ceiling(reading, item);
    if (first == "memory") {
        if (item.depth > 1)
            return add_value(reading, item, {.key = name_at(item, 1)});
        return need_table(reading, item, "a table is needed: [memory]");
    }
    const bool is_key = find_key(first) != nullptr || find_later_key(first) != nullptr;
    if (is_table(item) && !is_key)
        return refuse(reading, item, "no such table; there are [memory], [gpu.X], [ceiling] and [ceiling.gpu.X]");
    return add_value(reading, item, {.key = first, .top = true});
}

// The text without the spaces around it.
std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kSpaces = " \t\r";
    const size_t first = text.find_first_not_of(kSpaces);
    return slice(text, first, text.find_last_not_of(kSpaces) - first + 1);
}

// One line of a text, from 1, without the spaces around it.
std::string_view line_at(std::string_view text, unsigned number) {
    bool more = true;
    for (unsigned line = 1; line < number; ++line)
        take_item(text, '\n', more);
    return trimmed(take_item(text, '\n', more));
}

bool refuse_text(Reading& reading, std::string_view text, const cuslice_toml_failure& failure) {
    const std::string_view line = line_at(text, failure.line);
    Reason why;
    why.assign("not TOML: ", failure.reason);
    // limit = 4GiB is what most people write first.
    const size_t equals = line.find('=');
    const bool quoted = line.find_first_of("\"'") != line.npos;
    if (equals != line.npos && !quoted)
        why.append("; a string is written in quotes, as limit = \"4GiB\"");
    reading.error.set(reading.path, line, why);
    reading.error.line = failure.line;
    reading.error.column = failure.column;
    reading.error.key.clear();
    return false;
}

}  // namespace

bool load_file_text(Settings& settings, std::string_view text, std::string_view path, Source source,
                    cuslice_toml_parse_function* parse, ConfigError& error, Take take) {
    Reading reading{settings, path, source, error, take};
    const auto on_item = [](void* context, const cuslice_toml_item* item) -> int {
        auto& now = *static_cast<Reading*>(context);
        now.good = read_item(now, *item);
        return now.good;
    };
    cuslice_toml_failure failure{};
    if (parse(text.data(), text.size(), on_item, &reading, &failure) != 0)
        return refuse_text(reading, text, failure);
    return reading.good;
}

}  // namespace cuslice
