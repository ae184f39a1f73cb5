// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/selection/visible_devices.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "config/load.h"
#include "config/resolve.h"
#include "config/split/plan.h"
#include "virtual_gpu/driver/scratch.h"
#include "virtual_gpu/nvml/nvml_gpu.h"

namespace cuslice {

namespace {

// The setting that has not been resolved yet: one that is nearer than the launcher, or that it could not resolve.
const Entry* open_setting(const Settings& settings, const char* const* environment) {
    const Entry* gpus = find(settings, Key::gpus);
    if (!gpus || gpus->value == kAllGpus)
        return nullptr;  // what is visible stays so
    const bool resolved = variable(environment, kChosenVariable).data() != nullptr;
    return gpus->rank.level == 0 || !resolved ? gpus : nullptr;
}

// The host's GPUs, and those MIG devices that are named somewhere and that NVML knows. They are looked up by name, as
// NVML lists GPUs only.
class KnownGpus {
  public:
    void add(std::span<const GpuIdentity> gpus) {
        for (const GpuIdentity& gpu : gpus)
            add(gpu);
    }
    void add_mig(std::string_view names) {
        bool more = true;
        while (!names.empty())
            add_one_mig(take_item(names, ',', more));
    }
    std::span<const GpuIdentity> view() const { return {list_, count_}; }

  private:
    void add(const GpuIdentity& gpu) {
        if (count_ < GpuPlaces::kMax)
            list_[count_++] = gpu;
    }
    void add_one_mig(std::string_view name) {
        GpuIdentity gpu;
        if (!is_mig_uuid(name) || name.size() >= sizeof(gpu.uuid))
            return;
        std::memcpy(gpu.uuid, name.data(), name.size());
        for (const GpuIdentity& known : view())
            if (std::strcmp(known.uuid, gpu.uuid) == 0)
                return;
        if (NvmlGpu().open(gpu.uuid))
            add(gpu);
    }

    GpuIdentity list_[GpuPlaces::kMax];
    size_t count_ = 0;
};

// The one with most free memory, whoever holds the rest. Nothing is reserved without the launcher.
int emptiest(const GpusQuestion& question) {
    int best = -1;
    uint64_t most = 0;
    for (const uint8_t place : question.allowed.view()) {
        NvmlGpu gpu;
        uint64_t used = 0, total = 0;
        if (!gpu.open(question.gpus[place].uuid) || gpu.used_by_all(&used, &total) != Reading::ok)
            continue;
        const uint64_t free = total > used ? total - used : 0;
        if (best >= 0 && free <= most)
            continue;
        best = place;
        most = free;
    }
    return best;
}

// CUDA's own order puts faster GPUs first, by a rule that only the driver knows; GPUs of one model stay in PCI order.
bool order_is_known(std::string_view visible, const char* const* environment) {
    return !counts_gpus(visible) || variable(environment, kCudaOrder) == "PCI_BUS_ID" || nvml_one_model();
}

bool resolve(const Entry& setting, std::string_view visible, std::span<const GpuIdentity> gpus,
             const char* const* environment, VisibleText& list, ConfigError& error) {
    if (names_no_gpu(setting.value))
        return true;
    if (gpus.empty())
        return error.set(setting.origin, setting.value,
                         "GPUs can't be chosen where NVML shows none: use cuslice run, or set CUDA_VISIBLE_DEVICES");
    if (!order_is_known(visible, environment))
        return error.set(kCudaVisible, visible,
                         "CUDA's order of GPUs of several models is not known here, which gpus has to stay within: set "
                         "CUDA_DEVICE_ORDER=PCI_BUS_ID, or write UUIDs");
    const Scratch<KnownGpus> scratch;
    if (!scratch)
        return error.set(setting.origin, setting.value, "there is no memory to choose GPUs in");
    KnownGpus& known = *scratch;
    known.add(gpus);
    known.add_mig(setting.value);
    known.add_mig(visible);
    GpusQuestion question{setting.origin, setting.value, known.view(), {}, visible};
    question.allowed = read_cuda_list(visible, known.view());
    GpuPlaces chosen;
    if (setting.value == kAnyGpu) {
        const int place = emptiest(question);
        if (place < 0)
            return refuse_any(question, error);
        chosen.add(static_cast<size_t>(place));
    } else if (!resolve_gpus(question, chosen, error)) {
        return false;
    }
    for (const uint8_t place : chosen.view())
        append_visible(list, question.gpus[place].uuid);
    return true;
}

// The line belongs to the environment from then on, so there is one for the process and it is never freed.
char* set_visible(std::string_view list) {
    static char line[sizeof("CUDA_VISIBLE_DEVICES=") + sizeof(VisibleText)];
    std::snprintf(line, sizeof(line), "CUDA_VISIBLE_DEVICES=%.*s", static_cast<int>(list.size()), list.data());
    putenv(line);
    return line;
}

// The line that getenv finds, with the variable's name.
char* visible_line() {
    for (char** line = environ; line && *line; line++)
        if (starts_with(*line, "CUDA_VISIBLE_DEVICES="))
            return *line;
    return nullptr;
}

}  // namespace

bool resolves_gpus(const Settings& settings, const char* const* environment) {
    return open_setting(settings, environment) != nullptr;
}

bool VisibleDevices::decide(const Settings& settings, std::span<const GpuIdentity> gpus, const char* const* environment,
                            ConfigError& error) {
    before_ = visible_line();
    if (splits_any(settings))
        return true;
    const std::string_view chosen = variable(environment, kChosenVariable);
    const Entry* const setting = open_setting(settings, environment);
    if (!chosen.data() && !setting)
        return true;
    std::string_view visible = variable(environment, kCudaVisible);
    struct Lists {
        VisibleText counted, resolved;
    };
    const Scratch<Lists> lists;
    if (!lists)
        return error.set("cuslice", "there is no memory to choose GPUs in");
    VisibleText &counted = lists->counted, &resolved = lists->resolved;
    change_ = chosen.data() && count_in_chosen(chosen, visible, counted);
    if (change_)
        visible = counted.view();
    if (setting) {
        if (!resolve(*setting, visible, gpus, environment, resolved, error))
            return false;
        change_ = change_ || !visible.data() || visible != resolved.view();
        visible = resolved.view();
    }
    if (change_)
        list_.append(visible);
    return true;
}

bool VisibleDevices::apply() {
    if (!change_)
        return true;
    if (visible_line() != before_)
        return false;
    set_visible(list_);
    return true;
}

bool physical_list(const Settings& settings, std::span<const GpuIdentity> gpus, const char* const* environment,
                   VisibleText& list, bool* set, ConfigError& error) {
    list.clear();
    const std::string_view chosen = variable(environment, kChosenVariable);
    const Entry* setting = open_setting(settings, environment);
    *set = chosen.data() || setting;
    if (setting)
        return resolve(*setting, chosen, gpus, environment, list, error);
    list.append(chosen);
    return true;
}

VisibleDuringInit::VisibleDuringInit(std::string_view list, bool set) : before_(visible_line()) {
    const std::string_view now = before_ ? slice(before_, sizeof("CUDA_VISIBLE_DEVICES")) : std::string_view();
    const bool as_wanted = set ? before_ && now == list : !before_;
    changed_ = !as_wanted;
    if (!changed_)
        return;
    if (set)
        during_ = set_visible(list);
    else
        unsetenv("CUDA_VISIBLE_DEVICES");
}

VisibleDuringInit::~VisibleDuringInit() {
    if (!changed_ || visible_line() != during_)
        return;
    if (before_)
        putenv(before_);
    else
        unsetenv("CUDA_VISIBLE_DEVICES");
}

}  // namespace cuslice
