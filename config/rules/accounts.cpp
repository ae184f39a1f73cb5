// SPDX-License-Identifier: Apache-2.0
#include "config/rules/accounts.h"

#include "config/text_file.h"

namespace cuslice::rules {

bool parse_number(std::string_view text, unsigned& number) {
    if (!are_digits(text) || text.size() > 10)
        return false;
    const uint64_t value = decimal_number(text);
    number = static_cast<unsigned>(value);
    return value < 0xffffffff;
}

bool find_number(std::string_view file, std::string_view name, unsigned& number) {
    std::string_view line;
    while (take_line(file, line)) {
        if (!starts_with(line, name) || !starts_with(slice(line, name.size()), ":"))
            continue;
        const size_t second = line.find(':', name.size() + 1);
        if (second == line.npos)
            continue;
        const std::string_view rest = slice(line, second + 1);
        return parse_number(slice(rest, 0, rest.find(':')), number);
    }
    return false;
}

}  // namespace cuslice::rules
