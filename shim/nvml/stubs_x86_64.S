/* Every NVML function, exported and passed through. The symbols are weak, so that a hook in this folder takes its place by being
   defined. */
#include "shim/stub_x86_64.inc"

    .text
    resolver cuslice_resolve_nvml_stub, cuslice_resolve_nvml

    .set slot, 0
.macro nvml name
    .weak \name
    passed_through \name, cuslice_nvml_slots, slot, cuslice_resolve_nvml_stub
    .set slot, slot + 1
.endm
#define CUSLICE_NVML_FUNCTION(name) nvml name
#include "virtual_gpu/driver/nvml_functions.def"

    object_notes
