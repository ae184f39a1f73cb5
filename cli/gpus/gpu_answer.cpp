// SPDX-License-Identifier: Apache-2.0
#include "cli/gpus/gpu_answer.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace cuslice::cli {
namespace {

// The first field of a line. `end` tells a whole answer from one of a child that died on the way.
constexpr std::string_view kFailure = "failure";
constexpr std::string_view kGpu = "gpu";
constexpr std::string_view kCount = "count";
constexpr std::string_view kEnd = "end";

std::string_view take(std::string_view& text, char separator) {
    const size_t end = std::min(text.find(separator), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return part;
}

template <typename Number>
Number number_of(std::string_view text) {
    Number number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

template <typename Number>
std::string text_of(const std::optional<Number>& number) {
    return number ? std::to_string(*number) : std::string();
}

template <typename Number>
void read_into(std::optional<Number>& number, std::string_view text) {
    if (!text.empty())
        number = number_of<Number>(text);
}

}  // namespace

std::string write_answer(const Gpus& gpus) {
    std::string text;
    if (!gpus.failure.empty())
        text.append(kFailure).append("\t").append(gpus.failure).append("\n");
    text.append(kCount).append("\t").append(std::to_string(gpus.count)).append("\n");
    // The name is the last field: it alone may hold anything.
    for (const Gpu& gpu : gpus.list) {
        text.append(kGpu).append("\t").append(std::to_string(gpu.ordinal)).append("\t").append(gpu.uuid);
        text.append("\t").append(gpu.pci).append("\t").append(std::to_string(gpu.total));
        text.append("\t").append(text_of(gpu.free)).append("\t").append(text_of(gpu.sensors.busy));
        text.append("\t").append(text_of(gpu.sensors.temperature)).append("\t").append(text_of(gpu.sensors.power));
        text.append("\t").append(text_of(gpu.sensors.most_power)).append("\t").append(gpu.name).append("\n");
    }
    return text.append(kEnd).append("\n");
}

Gpus parse_answer(std::string_view text) {
    Gpus gpus;
    while (!text.empty()) {
        std::string_view line = take(text, '\n');
        const std::string_view what = take(line, '\t');
        if (what == kEnd)
            return gpus;
        if (what == kFailure)
            gpus.failure = line;
        if (what == kCount)
            gpus.count = number_of<size_t>(line);
        if (what != kGpu)
            continue;
        Gpu gpu;
        gpu.ordinal = number_of<int>(take(line, '\t'));
        gpu.uuid = take(line, '\t');
        gpu.pci = take(line, '\t');
        gpu.total = number_of<uint64_t>(take(line, '\t'));
        read_into(gpu.free, take(line, '\t'));
        read_into(gpu.sensors.busy, take(line, '\t'));
        read_into(gpu.sensors.temperature, take(line, '\t'));
        read_into(gpu.sensors.power, take(line, '\t'));
        read_into(gpu.sensors.most_power, take(line, '\t'));
        gpu.name = line;
        gpus.list.push_back(gpu);
    }
    gpus.failure = "the query ended without an answer";
    return gpus;
}

}  // namespace cuslice::cli
