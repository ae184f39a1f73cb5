// SPDX-License-Identifier: Apache-2.0
// Keys of the live view, as it shows them.
#include "cli/top/help.h"

#include <algorithm>

#include "cli/top/keys.h"
#include "cli/top/view_gpus.h"

namespace cuslice::cli::top {
namespace {

// Names of keys, of which a terminal without UTF-8 has no arrows.
std::string keys_text(std::string_view keys, const Look& look) {
    std::string text(keys);
    if (look.utf8)
        return text;
    for (const auto& [arrow, word] : {std::pair("↑", "Up"), std::pair("↓", "Down")})
        if (const size_t at = text.find(arrow); at != text.npos)
            text.replace(at, std::string_view(arrow).size(), word);
    return text;
}

}  // namespace

Lines draw_help(const Look& look) {
    Lines lines = {title("keys", "", look), {}};
    size_t widest = 0;
    for (const KeyHelp& key : key_help())
        widest = std::max(widest, columns_of(keys_text(key.keys, look)));
    for (const KeyHelp& key : key_help()) {
        const std::string keys = keys_text(key.keys, look);
        lines.push_back(clipped(Line{{"  " + keys + std::string(widest - columns_of(keys) + 2, ' '), Tone::heading},
                                     {std::string(key.meaning)}},
                                look));
    }
    lines.emplace_back();
    lines.push_back(clipped(Line{{"  A bar is yellow from 90 % on:", Tone::faint}}, look));
    lines.push_back(legend(look));
    return lines;
}

Span keys_row(const Choice& choice, const Look& look) {
    std::string text = "q quits  ? help";
    const std::string_view arrow = look.utf8 ? (choice.reversed ? " ↑" : " ↓") : (choice.reversed ? " up" : "");
    if (choice.order != Order::gpu || choice.reversed)
        text += "  by " + std::string(name_of(choice.order)) + std::string(arrow);
    if (!choice.filter.empty())
        text += "  only \"" + shown(choice.filter, look) + "\"";
    return {text, Tone::faint};
}

}  // namespace cuslice::cli::top
