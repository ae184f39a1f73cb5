// SPDX-License-Identifier: Apache-2.0
#include "cli/text/read_json.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "policy/base/kernel_clock.h"

namespace cuslice::cli {

uint64_t read_number(const Json& value) {
    if (!value.is_number_unsigned())
        throw std::invalid_argument("no number");
    return value.get<uint64_t>();
}

std::optional<uint64_t> read_number_or_null(const Json& value) {
    if (value.is_null())
        return {};
    return read_number(value);
}

std::string read_text(const Json& value) {
    constexpr size_t kMost = 256;
    return value.get_ref<const std::string&>().substr(0, kMost);
}

std::vector<std::string> read_words(const Json& value) {
    constexpr size_t kMost = 4096;
    std::vector<std::string> words;
    if (value.is_null())
        return words;
    size_t left = kMost;
    for (const Json& word : read_list(value)) {
        if (left == 0)
            break;
        words.push_back(word.get_ref<const std::string&>().substr(0, left));
        left -= std::min(left, words.back().size() + 1);
    }
    return words;
}

uint64_t read_time_ago(const Json& value) {
    constexpr uint64_t kSecond = 1'000'000'000;  // nanoseconds
    const uint64_t now = now_realtime();
    return now - std::min(read_number(value), now / kSecond) * kSecond;
}

const Json& read_list(const Json& value) {
    if (!value.is_array())
        throw std::invalid_argument("no list");
    return value;
}

}  // namespace cuslice::cli
