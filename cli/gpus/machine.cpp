// SPDX-License-Identifier: Apache-2.0
#include "cli/gpus/machine.h"

#include <algorithm>

#include "config/visible.h"

namespace cuslice::cli {
namespace {

const Gpu* find_gpu(const std::vector<Gpu>& gpus, const std::string& uuid) {
    for (const Gpu& gpu : gpus)
        if (gpu.uuid == uuid)
            return &gpu;
    return nullptr;
}

bool has_instance(const std::vector<Gpu>& gpus) {
    return std::any_of(gpus.begin(), gpus.end(), [](const Gpu& gpu) { return is_mig_uuid(gpu.uuid); });
}

// Completes the driver's answer about a GPU from the list of all GPUs.
void complete(Gpu& gpu, const Gpu* listed) {
    gpu.ordinal = listed ? listed->ordinal : -1;
    if (listed && !gpu.free)
        gpu.free = listed->free;
    gpu.host_memory = listed && listed->host_memory;
}

}  // namespace

Machine::Machine(const Environment& environment, const Settings& settings, const Installation& installation)
    : environment_(environment), settings_(settings), installation_(installation) {}

// If there are more than `most` they are only counted. Memory that is the host's has no figures in NVML.
Gpus Machine::ask_all(size_t most, bool with_sensors) const {
    Gpus gpus = query_nvml(environment_, settings_, installation_, most, with_sensors);
    if (gpus.hung || (gpus.failure.empty() && gpus.count > most))
        return gpus;
    const bool whole = gpus.failure.empty() && !gpus.list.empty() &&
                       std::none_of(gpus.list.begin(), gpus.list.end(), [](const Gpu& gpu) { return gpu.total == 0; });
    if (whole)
        return gpus;
    Gpus drivers = query_driver(environment_, settings_, installation_);
    for (Gpu& gpu : drivers.list) {
        const Gpu* const listed = find_gpu(gpus.list, gpu.uuid);
        gpu.host_memory = listed && listed->total == 0;
        if (listed)
            gpu.free = listed->free, gpu.sensors = listed->sensors;
    }
    return drivers;
}

const Gpus& Machine::all() {
    if (!all_)
        all_ = ask_all(GpuPlaces::kMax);
    return *all_;
}

Gpus Machine::all_with_sensors() const { return ask_all(GpuPlaces::kMax, true); }

const std::vector<Gpu>& Machine::allowed() {
    if (allowed_)
        return *allowed_;
    // Without the variable they are the same GPUs, perhaps in another order, in which nothing counts. But of MIG
    // instances a program sees one, and the driver chooses it.
    const bool same = !environment_.get(kCudaVisible) && !has_instance(all().list);
    return *(allowed_ = same ? all().list : ask_visible());
}

std::span<const Gpu> Machine::known() const {
    if (allowed_)
        return *allowed_;
    return all_ ? std::span<const Gpu>(all_->list) : std::span<const Gpu>();
}

const std::vector<Gpu>& Machine::in_order() { return all().list.size() < 2 ? allowed() : ask_visible(); }

std::optional<Gpu> Machine::only() {
    if (!all_ && !environment_.get(kCudaVisible)) {
        Gpus gpus = ask_all(1);
        if (gpus.failure.empty() && gpus.count > gpus.list.size())
            return std::nullopt;
        all_ = std::move(gpus);
    }
    const std::vector<Gpu>& seen = allowed();
    return seen.size() == 1 ? std::optional(seen.front()) : std::nullopt;
}

// CUDA's own order puts faster GPUs first, by a rule that only the driver knows; GPUs of one model stay in PCI order.
// Which MIG instance a program sees only the driver knows either.
std::optional<std::vector<Gpu>> Machine::read_variable() {
    const std::vector<Gpu>& list = all().list;
    const auto variable = environment_.get(kCudaVisible);
    const std::string_view visible = variable ? std::string_view(*variable) : std::string_view();
    const bool by_name = variable && !counts_gpus(visible);
    const bool one_model =
        std::all_of(list.begin(), list.end(), [&](const Gpu& gpu) { return gpu.name == list.front().name; });
    const bool known = by_name || one_model || environment_.get(kCudaOrder) == "PCI_BUS_ID";
    if (!all().failure.empty() || list.empty() || !known || has_instance(list))
        return std::nullopt;
    std::vector<GpuIdentity> identities;
    for (const Gpu& gpu : list)
        identities.push_back(identity_of(gpu, gpu.ordinal));
    const GpuPlaces places = read_cuda_list(visible, identities);
    std::vector<Gpu> gpus;
    for (const uint8_t place : places.view())
        gpus.push_back(list[place]);
    return gpus;
}

const std::vector<Gpu>& Machine::ask_visible() {
    if (in_order_ || (in_order_ = read_variable()))
        return *in_order_;
    // A driver that is left no GPU fails: that is a list without any.
    in_order_ = query_visible(environment_, settings_, installation_).list;
    for (Gpu& gpu : *in_order_)
        complete(gpu, find_gpu(all().list, gpu.uuid));
    return *in_order_;
}

void Machine::narrow(std::string_view uuids) {
    environment_.set(kCudaVisible, uuids);
    allowed_.reset();
    in_order_.reset();
}

std::optional<Gpu> Machine::unlisted(const std::string& uuid) {
    Environment alone = environment_;
    alone.set(kCudaVisible, uuid);
    const Gpus gpus = query_visible(alone, settings_, installation_);
    if (!gpus.failure.empty() || gpus.list.size() != 1)
        return std::nullopt;
    Gpu gpu = gpus.list.front();
    complete(gpu, find_gpu(all().list, gpu.uuid));
    return gpu;
}

void Machine::refresh(std::vector<Gpu>& gpus) {
    const Gpus now = ask_all(GpuPlaces::kMax);
    for (Gpu& gpu : gpus)
        if (const Gpu* same = find_gpu(now.list, gpu.uuid))
            gpu.free = same->free;
}

}  // namespace cuslice::cli
