// SPDX-License-Identifier: Apache-2.0
#include "cli/text/tone.h"

namespace cuslice::cli {
namespace {

const char* colour_of(Tone tone) {
    switch (tone) {
        case Tone::plain:
        case Tone::heading:
            return "";
        case Tone::faint:
            return "\x1b[90m";
        case Tone::used:
            return "\x1b[32m";
        case Tone::nearly_full:
            return "\x1b[33m";
        case Tone::reserved:
            return "\x1b[36m";
        case Tone::warning:
            return "\x1b[31m";
    }
    return "";
}

}  // namespace

std::string coloured(const std::string& text, Tone tone, bool colours) {
    std::string before = tone == Tone::heading ? "\x1b[1m" : "";
    if (colours)
        before += colour_of(tone);
    return before.empty() || text.empty() ? text : before + text + "\x1b[0m";
}

}  // namespace cuslice::cli
