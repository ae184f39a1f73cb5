// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "config/text.h"
#include "shim/redirect/plan.h"
#include "virtual_gpu/driver/loaded_object.h"

namespace cuslice {

// The shared runtime that a static one's calls are led to. NVIDIA's own on a GPU, which proves itself to the driver
// in full as it does for programs that are linked to it; the fake GPU's on a fake one.
class RuntimeLibrary {
  public:
    // True if this one can stand in; otherwise says in `why` what stands in the way.
    using Fits = bool (*)(const SharedRuntime& runtime, void* argument, Reason& why);

    // Loads the first libcudart of this major version that fits: the one that CUSLICE_RUNTIME names, or else what the
    // loader finds by the name, or any_runtime_elsewhere() does. Of several that don't fit, `why` is the last one's.
    bool open(int major, Fits fits, void* argument, Reason& why);
    // Loads this file, if it is one that fits.
    bool open_file(int major, const char* path, Fits fits, void* argument);
    // Its functions, before which the runtime shim's stand where that is loaded.
    SharedRuntime functions() { return {path_.c_str(), find, this, runtime_.find(kLacking)}; }

  private:
    // How one is judged, as long as it is sought.
    struct Judge {
        Fits fits;
        void* argument;
        Reason& why;
    };
    bool open_named(const char* path, const Judge& judge);
    bool open_found(int major, const Judge& judge);
    void begin(int major);
    bool take(const char* path, const Judge& judge);
    static void* find(const char* name, void* self);

    LoadedObject runtime_;
    void* shim_ = nullptr;
    FixedText<32> soname_;
    FixedText<4096> path_;
};

}  // namespace cuslice
