// SPDX-License-Identifier: Apache-2.0
#pragma once
// The management library's view: the machine of CUSLICE_FAKE in PCI order, and the books of each GPU.

#include <mutex>
#include <string>
#include <vector>

#include "fake/books/books.h"
#include "fake/spec/gpu_spec.h"
// Programs look up the functions that NVIDIA's header declares, so they are exported.
#pragma GCC visibility push(default)
#include "virtual_gpu/driver/nvml.h"
#pragma GCC visibility pop
#include "virtual_gpu/driver/parameters.h"

/// Defines an exported function: CUSLICE_NVML(nvmlShutdown) { ... }. The parameters' types are those of NVIDIA's
/// header.
#define CUSLICE_NVML(name, ...) nvmlReturn_t name(CUSLICE_PARAMETERS(name, __VA_ARGS__))

namespace cuslice::fake {

struct NvmlDevice {
    static constexpr size_t kNone = ~size_t{0};

    GpuSpec spec;
    size_t parent = kNone;  // of a MIG instance, the place of the GPU that it is a part of
    unsigned place = 0;     // of a MIG instance, its place among the GPU's
    Books books;
    bool opened = false;
    /// The books, opened at the first question; false if they can't be.
    bool open();
};

class Nvml {
  public:
    /// Counts an nvmlInit; the first reads CUSLICE_FAKE. Devices keep their handles from then on.
    nvmlReturn_t start(unsigned flags);
    /// Takes one back.
    nvmlReturn_t stop();
    bool started();

    /// The GPUs in PCI order, and behind them the MIG instances of all of them.
    std::vector<NvmlDevice>& devices() { return devices_; }
    /// How many GPUs there are; instances are none.
    size_t gpus() const { return gpus_; }
    /// The place of a GPU's instance; NvmlDevice::none if it has no such one.
    size_t instance(size_t gpu, unsigned place) const;
    size_t place_of(const NvmlDevice& device) const { return static_cast<size_t>(&device - devices_.data()); }
    nvmlDevice_t handle(size_t index) const;
    /// The device behind a handle: ERROR_UNINITIALIZED, ERROR_INVALID_ARGUMENT if it is none that this library gave.
    nvmlReturn_t find(nvmlDevice_t handle, NvmlDevice*& device);

    std::mutex lock;  // the books' first opening

  private:
    std::mutex count_lock_;
    int starts_ = 0;
    bool read_ = false;
    std::vector<NvmlDevice> devices_;
    size_t gpus_ = 0;
};

/// The process's one; never destroyed.
Nvml& nvml_state();

/// Copies text as NVML does: ERROR_INSUFFICIENT_SIZE if it doesn't fit with its end.
nvmlReturn_t copy_text(const std::string& text, char* out, unsigned size);

/// Somebody who has a context on a device now.
struct NvmlHolder {
    Holder holder;
    int pid;              // as the list shows it
    const GpuSpec* spec;  // of the GPU or the instance
};

/// Everybody who has a context on the device, or on one of its instances.
nvmlReturn_t holders_of(NvmlDevice& device, std::vector<NvmlHolder>& holders);

}  // namespace cuslice::fake
