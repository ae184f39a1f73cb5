// SPDX-License-Identifier: Apache-2.0
#include "config/other_words.h"

#include "config/text.h"

namespace cuslice {
namespace {

struct OtherWord {
    std::string_view part;
    std::string_view setting;
};
// In this order: gpu-memory is memory.
constexpr OtherWord kOtherWords[] = {
    {"mem", "limit"},    {"vram", "limit"},  {"share", "fraction"},  {"percent", "fraction"}, {"ratio", "fraction"},
    {"gpu", "gpus"},     {"device", "gpus"}, {"verbose", "log"},     {"quiet", "log"},        {"debug", "log"},
    {"timeout", "wait"}, {"queue", "wait"},  {"partition", "split"},
};

bool contains_ignoring_case(std::string_view text, std::string_view part) {
    for (size_t at = 0; at + part.size() <= text.size(); ++at)
        if (equal_ignoring_case(slice(text, at, part.size()), part))
            return true;
    return false;
}

}  // namespace

std::string_view setting_called(std::string_view word) {
    for (const OtherWord& other : kOtherWords)
        if (contains_ignoring_case(word, other.part))
            return other.setting;
    return {};
}

}  // namespace cuslice
