// All that happens when the library is loaded, in every program: what can't be known any more when CUDA is first
// called.
#include "shim/log.h"
#include "virtual_gpu/host_environment.h"

namespace cuslice {

namespace {

__attribute__((constructor)) void loaded() {
    note_stderr();
    keep_handed_on();
}

}  // namespace

}  // namespace cuslice
