#include "cli/machine.h"

#include "config/visible.h"

namespace cuslice::cli {
namespace {

const Gpu* find_gpu(const std::vector<Gpu>& gpus, const std::string& uuid) {
    for (const Gpu& gpu : gpus)
        if (gpu.uuid == uuid) return &gpu;
    return nullptr;
}

}  // namespace

Machine::Machine(const Environment& environment, const Settings& settings, const Installation& installation)
    : environment_(environment), settings_(settings), installation_(installation) {}

const Gpus& Machine::all() {
    if (!all_) all_ = query_driver(environment_, settings_, installation_);
    return *all_;
}

const std::vector<Gpu>& Machine::allowed() {
    if (allowed_) return *allowed_;
    // Without the variable they are the same GPUs, perhaps in another order, in which nothing counts.
    return *(allowed_ = environment_.get(kCudaVisible) ? ask_visible() : all().list);
}

const std::vector<Gpu>& Machine::in_order() { return all().list.size() < 2 ? allowed() : ask_visible(); }

const std::vector<Gpu>& Machine::ask_visible() {
    if (in_order_) return *in_order_;
    // A driver that is left no GPU fails: that is a list without any.
    in_order_ = query_visible(environment_, settings_, installation_).list;
    for (Gpu& gpu : *in_order_) {
        const Gpu* listed = find_gpu(all().list, gpu.uuid);
        gpu.ordinal = listed ? listed->ordinal : -1;
    }
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
    if (!gpus.failure.empty() || gpus.list.size() != 1) return std::nullopt;
    Gpu gpu = gpus.list.front();
    const Gpu* listed = find_gpu(all().list, gpu.uuid);
    gpu.ordinal = listed ? listed->ordinal : -1;
    return gpu;
}

void Machine::refresh(std::vector<Gpu>& gpus) {
    const Gpus now = query_driver(environment_, settings_, installation_);
    for (Gpu& gpu : gpus)
        if (const Gpu* same = find_gpu(now.list, gpu.uuid)) gpu.free = same->free;
}

}  // namespace cuslice::cli
