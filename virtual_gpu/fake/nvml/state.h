#pragma once
// The management library's view: the machine of CUSLICE_FAKE in PCI order, and the books of each GPU.

#include <mutex>
#include <string>
#include <vector>

#include "virtual_gpu/driver/nvml.h"
#include "virtual_gpu/fake/books/books.h"
#include "virtual_gpu/fake/spec/gpu_spec.h"

// What is defined here is what a program looks up.
#define CUSLICE_NVML_EXPORT extern "C" __attribute__((visibility("default")))

/// Declares an exported function with the signature that driver/nvml.h gives it; its definition follows.
#define CUSLICE_NVML(name) CUSLICE_NVML_EXPORT cuslice::nvml::functions::name name

namespace cuslice::fake {

struct NvmlDevice {
    GpuSpec spec;
    Books books;
    bool opened = false;
    /// The books, opened at the first question; false if they can't be.
    bool open();
};

class Nvml {
  public:
    /// Counts an nvmlInit; the first reads CUSLICE_FAKE. Devices keep their handles from then on.
    nvml::Return start(unsigned flags);
    /// Takes one back.
    nvml::Return stop();
    bool started();

    std::vector<NvmlDevice>& devices() { return devices_; }
    nvml::Device handle(std::size_t index) const;
    /// The device behind a handle: ERROR_UNINITIALIZED, ERROR_INVALID_ARGUMENT if it is none that this library gave.
    nvml::Return find(nvml::Device handle, NvmlDevice*& device);

    std::mutex lock;  // the books' first opening

  private:
    std::mutex count_lock_;
    int starts_ = 0;
    bool read_ = false;
    std::vector<NvmlDevice> devices_;
};

/// The process's one; never destroyed.
Nvml& nvml_state();

/// Copies text as NVML does: ERROR_INSUFFICIENT_SIZE if it doesn't fit with its end.
nvml::Return copy_text(const std::string& text, char* out, unsigned size);

/// Everybody who has a context on the device now.
nvml::Return holders_of(NvmlDevice& device, std::vector<Holder>& holders);

}  // namespace cuslice::fake
