// SPDX-License-Identifier: Apache-2.0
#include "config/toml/reader.h"

// The parser asserts things about its own state that some texts break (found by fuzzing: "[[[", a zero byte in a
// key). A failed assertion must not end the host, nor may the compiler rely on it, as it does with NDEBUG.
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Item {
    std::vector<std::string> path;
    cuslice_toml_kind kind;
    std::string value;
    toml::source_position at;
    bool strings = false;
    std::string joined = {};
    std::vector<std::string> list = {};
    bool element = false;
};

// A parsed number no longer knows how it was written, and an error must show what stands in the file.
std::string_view written_at(std::string_view text, toml::source_position at) {
    for (unsigned line = 1; line < at.line; ++line) {
        const size_t end = text.find('\n');
        if (end == text.npos)
            return {};
        text.remove_prefix(end + 1);
    }
    text = text.substr(0, std::min(text.find('\n'), text.size()));
    // Columns count code points: the bytes that continue one are not counted.
    size_t byte = 0;
    for (unsigned column = 1; column < at.column && byte < text.size(); ++column) {
        for (++byte; byte < text.size() && (static_cast<unsigned char>(text[byte]) & 0xc0) == 0x80;)
            ++byte;
    }
    text.remove_prefix(std::min(byte, text.size()));
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
        text.remove_suffix(1);
    return text;
}

// A number, boolean or date ends where its characters do; an array is shown to the end of its line.
std::string_view scalar_at(std::string_view text, toml::source_position at) {
    const std::string_view line = written_at(text, at);
    const size_t end = line.find_first_of(", \t#]}");
    return line.substr(0, std::min(end, line.size()));
}

cuslice_toml_kind kind_of(const toml::node& node) {
    switch (node.type()) {
        case toml::node_type::table:
            return CUSLICE_TOML_TABLE;
        case toml::node_type::string:
            return CUSLICE_TOML_STRING;
        case toml::node_type::integer:
            return CUSLICE_TOML_INTEGER;
        case toml::node_type::floating_point:
            return CUSLICE_TOML_FLOAT;
        case toml::node_type::boolean:
            return CUSLICE_TOML_BOOLEAN;
        case toml::node_type::array:
            return node.is_array_of_tables() ? CUSLICE_TOML_TABLES : CUSLICE_TOML_ARRAY;
        default:
            return CUSLICE_TOML_DATE;
    }
}

// A list within one setting, as an option writes it.
void join(const toml::array& array, Item& item) {
    item.strings = true;
    for (size_t i = 0; i < array.size() && item.strings; ++i) {
        const auto* string = array.get(i)->as_string();
        item.strings = string != nullptr;
        if (string != nullptr)
            item.joined.append(i == 0 ? "" : "+").append(string->get());
        if (string != nullptr)
            item.list.push_back(string->get());
    }
}

void collect(const toml::table& table, std::string_view text, const std::vector<std::string>& parents,
             std::vector<Item>& items);

void collect_tables(const toml::array& array, std::string_view text, const std::vector<std::string>& path,
                    std::vector<Item>& items) {
    for (const toml::node& node : array) {
        Item item{path, CUSLICE_TOML_TABLE, {}, node.source().begin};
        item.element = true;
        items.push_back(item);
        collect(*node.as_table(), text, path, items);
    }
}

void collect(const toml::table& table, std::string_view text, const std::vector<std::string>& parents,
             std::vector<Item>& items) {
    for (auto&& [key, node] : table) {
        Item item{parents, kind_of(node), {}, key.source().begin};
        item.path.emplace_back(key.str());
        if (const auto* string = node.as_string()) {
            item.value = string->get();
        } else if (const auto* array = node.as_array()) {
            item.value = written_at(text, node.source().begin);
            join(*array, item);
        } else if (!node.is_table()) {
            item.value = scalar_at(text, node.source().begin);
        }
        items.push_back(item);
        if (const auto* inner = node.as_table())
            collect(*inner, text, item.path, items);
        if (item.kind == CUSLICE_TOML_TABLES)
            collect_tables(*node.as_array(), text, item.path, items);
    }
}

bool give(const Item& item, cuslice_toml_callback* callback, void* context) {
    std::vector<const char*> path;
    for (const std::string& name : item.path)
        path.push_back(name.c_str());
    std::vector<const char*> strings;
    for (const std::string& string : item.list)
        strings.push_back(string.c_str());
    const cuslice_toml_item given{path.data(),          path.size(),       item.kind,
                                  item.value.data(),    item.value.size(), item.strings ? item.joined.data() : nullptr,
                                  item.joined.size(),   strings.data(),    item.strings ? strings.size() : 0,
                                  item.element ? 1 : 0, item.at.line,      item.at.column};
    return callback(context, &given) != 0;
}

}  // namespace

int cuslice_toml_parse(const char* text, size_t size, cuslice_toml_callback* callback, void* context,
                       cuslice_toml_failure* failure) {
    const std::string_view whole(text, size);
    // The parser takes a zero byte for the end of what it reads, in some places, and asserts that it isn't there.
    if (const size_t zero = whole.find('\0'); zero != whole.npos) {
        const std::string_view before = whole.substr(0, zero);
        const size_t start = before.rfind('\n');
        failure->line = static_cast<unsigned>(1 + std::count(before.begin(), before.end(), '\n'));
        failure->column = static_cast<unsigned>(1 + zero - (start == before.npos ? 0 : start + 1));
        constexpr std::string_view kWhy = "a zero byte is not allowed in TOML";
        std::memcpy(failure->reason, kWhy.data(), kWhy.size());
        return 1;
    }
    const toml::parse_result result = toml::parse(whole);
    if (!result) {
        const toml::parse_error& error = result.error();
        *failure = {error.source().begin.line, error.source().begin.column, {}};
        const std::string_view reason = error.description();
        const size_t length = std::min(reason.size(), sizeof failure->reason - 1);
        std::memcpy(failure->reason, reason.data(), length);
        return 1;
    }
    std::vector<Item> items;
    collect(result.table(), whole, {}, items);
    // The table keeps its keys by name; the first mistake to be told is the first in the file.
    std::stable_sort(items.begin(), items.end(),
                     [](const Item& left, const Item& right) { return left.at < right.at; });
    for (const Item& item : items) {
        if (!give(item, callback, context))
            break;
    }
    return 0;
}
