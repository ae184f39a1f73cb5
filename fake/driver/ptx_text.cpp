// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/ptx_text.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace cuslice::fake {

std::vector<std::string_view> ptx_tokens(std::string_view text) {
    std::vector<std::string_view> tokens;
    const auto word = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.' || c == '%';
    };
    for (size_t i = 0; i < text.size();) {
        const char c = text[i];
        if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == '\0') {
            i++;
        } else if (text.compare(i, 2, "//") == 0) {
            i = std::min(text.find('\n', i), text.size());
        } else if (text.compare(i, 2, "/*") == 0) {
            const size_t end = text.find("*/", i + 2);
            i = end == text.npos ? text.size() : end + 2;
        } else if (c == '"') {
            const size_t end = std::min(text.find('"', i + 1), text.size() - 1);
            tokens.push_back(text.substr(i, end - i + 1));
            i = end + 1;
        } else {
            size_t end = i + 1;
            if (word(c)) {
                while (end < text.size() && word(text[end]))
                    end++;
            }
            tokens.push_back(text.substr(i, end - i));
            i = end;
        }
    }
    return tokens;
}

std::string ptx_fault(std::string_view text, std::string_view token, std::string_view what) {
    const char* place = token.data() != nullptr ? token.data() : text.data() + text.size();
    const auto line = 1 + std::count(text.data(), place, '\n');
    return "line " + std::to_string(line) + ": '" + std::string(token) + "': " + std::string(what);
}

}  // namespace cuslice::fake
