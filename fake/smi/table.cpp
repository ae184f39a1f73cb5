// SPDX-License-Identifier: Apache-2.0
#include "fake/smi/table.h"

namespace cuslice::fake {
namespace {

// Columns between the bars.
constexpr int kLeft = 41, kMiddle = 24, kRight = 22, kAll = kLeft + kMiddle + kRight + 2;

std::string rule(char line) {
    const auto dashes = [line](int count) { return std::string(static_cast<size_t>(count), line); };
    return "+" + dashes(kLeft) + "+" + dashes(kMiddle) + "+" + dashes(kRight) + "+\n";
}

std::string whole_rule() { return "+" + std::string(kAll, '-') + "+\n"; }

std::string row(const std::string& left, const std::string& middle, const std::string& right) {
    return format("|%-*.*s|%*.*s|%*.*s|\n", kLeft, kLeft, left.c_str(), kMiddle, kMiddle, middle.c_str(), kRight,
                  kRight, right.c_str());
}

std::string whole_row(const std::string& text) { return format("|%-*.*s|\n", kAll, kAll, text.c_str()); }

/// A field with its unit right behind it, as in "70W"; "N/A" for none.
std::string field(const ListedGpu& gpu, std::string_view name) {
    const Value value = find_field(gpu_fields(), name)->read(gpu);
    if (value.text == kNone)
        return "N/A";
    return value.text + std::string(value.unit);
}

/// "70W" of "70.12W".
std::string whole_watts(const std::string& watts) {
    const size_t point = watts.find('.');
    return point == watts.npos ? watts : watts.substr(0, point) + "W";
}

std::string rows_of(const ListedGpu& gpu) {
    const std::string persistence = field(gpu, "persistence_mode") == "Enabled" ? "On" : "Off";
    const std::string degrees = field(gpu, "temperature.gpu");
    const std::string temperature = degrees == "N/A" ? degrees : degrees + "C";
    const std::string power = whole_watts(field(gpu, "power.draw")) + " / " + whole_watts(field(gpu, "power.limit"));
    const std::string memory = field(gpu, "memory.used") + " / " + field(gpu, "memory.total");
    return row(format("%4u  %-26.26s %6s ", gpu.index, name_of(gpu).c_str(), persistence.c_str()),
               bus_id_of(gpu) + " Off ", "N/A ") +
           row(format("%4s %6s %5s %20s ", field(gpu, "fan.speed").c_str(), temperature.c_str(),
                      field(gpu, "pstate").c_str(), power.c_str()),
               memory + " ",
               format("%7s %12s ", field(gpu, "utilization.gpu").c_str(), field(gpu, "compute_mode").c_str())) +
           row("", "", (field(gpu, "mig.mode.current") + " ").c_str()) + rule('-');
}

std::string row_of(const App& app) {
    const std::string memory = find_field(app_fields(), "used_gpu_memory")->read(app).text;
    return whole_row(format("%5u   N/A  N/A  %14u      C   %-35.35s %10s ", app.gpu.index, app.pid,
                            process_name(app.pid).c_str(), memory == kNone ? "N/A" : (memory + "MiB").c_str()));
}

}  // namespace

std::string table_of(const std::vector<ListedGpu>& gpus, const std::vector<App>& apps) {
    std::string table = whole_rule();
    table += whole_row(format(" NVIDIA-SMI of cuslice (fake GPUs)   Driver Version: %-14s CUDA Version: %s",
                              driver_version().c_str(), cuda_version().c_str()));
    table += rule('-') +
             row(" GPU  Name                 Persistence-M ", " Bus-Id          Disp.A ", " Volatile Uncorr. ECC ") +
             row(" Fan  Temp   Perf          Pwr:Usage/Cap ", "           Memory-Usage ", " GPU-Util  Compute M. ") +
             row("", "", "MIG M. ") + rule('=');
    for (const ListedGpu& gpu : gpus)
        table += rows_of(gpu);
    table += "\n" + whole_rule() + whole_row(" Processes:") +
             whole_row("  GPU   GI   CI              PID   Type   Process name                        GPU Memory ") +
             "|" + std::string(kAll, '=') + "|\n";
    if (apps.empty())
        table += whole_row("  No running processes found");
    for (const App& app : apps)
        table += row_of(app);
    return table + whole_rule();
}

}  // namespace cuslice::fake
