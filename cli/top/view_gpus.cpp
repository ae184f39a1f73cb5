// SPDX-License-Identifier: Apache-2.0
#include "cli/top/view_gpus.h"

#include <algorithm>

#include "cli/text/table.h"
#include "config/uuid/fake.h"

namespace cuslice::cli::top {
namespace {

// "63 %  41 °C  310/700 W", as far as it is known.
std::string sensors_text(const Sensors& sensors, const Look& look) {
    constexpr uint64_t kWatt = 1000;  // milliwatts
    const bool narrow = look.width < 60;
    std::vector<std::string> parts;
    if (sensors.busy)
        parts.push_back(std::to_string(*sensors.busy) + " %");
    if (sensors.temperature)
        parts.push_back(std::to_string(*sensors.temperature) + (look.utf8 ? " °C" : " C"));
    if (sensors.power && !narrow)
        parts.push_back(std::to_string(*sensors.power / kWatt) +
                        (sensors.most_power ? "/" + std::to_string(*sensors.most_power / kWatt) : "") + " W");
    std::string text;
    for (const std::string& part : parts)
        text += (text.empty() ? "" : narrow ? " " : "  ") + part;
    return text;
}

Line heading_of(const Gpu& gpu, const Look& look) {
    const std::string index = gpu.ordinal < 0 ? "?" : std::to_string(gpu.ordinal);
    std::string right = sensors_text(gpu.sensors, look);
    if (look.width >= 60)
        right += (right.empty() ? "" : "  ") + shown(gpu.uuid.substr(0, 12), look);
    return ends(
        {"GPU " + index + "  " + shown(gpu.name, look) + (is_fake_uuid(gpu.uuid) ? " (fake)" : ""), Tone::heading},
        right, look);
}

// The last moments below the bar, as wide as that.
void add_moments(const Moments& moments, size_t columns, const Look& look, Lines& lines) {
    constexpr size_t kFew = 2;
    if (moments.used.size() < kFew && moments.busy.size() < kFew)
        return;
    const bool narrow = look.width < 70;
    Line line = {{"  "}};
    append_spark(line, {moments.used}, columns);
    line.push_back({narrow ? "  over time" : "  in use over time", Tone::faint});
    if (moments.busy.size() >= kFew && !narrow) {
        line.push_back({"  load ", Tone::faint});
        append_spark(line, {moments.busy, Tone::reserved}, std::min<size_t>(columns, 30));
    }
    lines.push_back(clipped(line, look));
}

// Two lines, one for the last moments, and one where the settings limit a program on this GPU.
void add_gpu(const Snapshot& snapshot, const GpuLoad& load, const Look& look, Lines& lines) {
    const Gpu& gpu = load.gpu;
    lines.push_back(heading_of(gpu, look));
    const uint64_t used = gpu.total - std::min(gpu.total, gpu.free.value_or(gpu.total));
    const uint64_t beyond = snapshot.reserved_beyond_use(gpu.uuid);
    std::string said;
    if (!gpu.free)
        said = format_memory(gpu.total) + ", use unknown";
    else if (look.width < 70)
        said = memory_text(used) + "/" + memory_text(gpu.total);
    else
        said = format_memory(used) + " of " + format_memory(gpu.total) + " in use" +
               (beyond != 0 ? ", " + format_memory(beyond) + " more reserved" : "");
    const size_t taken = columns_of(said) + 4;
    Line bar = {{"  "}};
    // As wide for every GPU as the longest text leaves.
    const size_t room = look.width < 70 ? look.width - std::min(look.width, taken) : look.width - 58;
    const size_t columns = std::clamp<size_t>(room, 4, 60);
    append_bar(bar, bar_of(used, beyond, gpu.free ? gpu.total : 0), columns);
    bar.push_back({"  " + said});
    lines.push_back(clipped(bar, look));
    add_moments(load.moments, columns, look, lines);
    if (load.limit)
        lines.push_back(clipped(
            Line{{"  limit of a program here: " + format_memory(*load.limit) + ", from " + shown(load.origin, look),
                  Tone::faint}},
            look));
}

}  // namespace

Line legend(const Look& look) {
    Line line = {{"  "}};
    const auto add = [&](const Bar& piece, const char* text) {
        append_bar(line, piece, 2);
        line.push_back({text, Tone::faint});
    };
    add({1, 0, 1}, " in use  ");
    add({0, 1, 1}, " reserved  ");
    add({0, 0, 1}, " free");
    return clipped(line, look);
}

void append_gpus(const Snapshot& snapshot, const Look& look, Lines& lines) {
    if (!snapshot.gpus_known)
        lines.push_back({{"Asking which GPUs there are ...", Tone::faint}});
    if (!snapshot.gpus_failure.empty())
        append_whole("No GPU can be listed: " + shown(snapshot.gpus_failure, look), 0, look, lines);
    for (const GpuLoad& load : snapshot.gpus)
        add_gpu(snapshot, load, look, lines);
    if (!snapshot.gpus.empty())
        lines.push_back(legend(look));
}

}  // namespace cuslice::cli::top
