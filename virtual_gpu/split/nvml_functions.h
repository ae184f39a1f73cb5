#pragma once
#include "virtual_gpu/driver/nvml.h"

// The functions of this folder that take the place of NVML's (nvml_functions.def), each with the type that
// driver/nvml.h gives it.
namespace cuslice::split_nvml {

#define CUSLICE_SPLIT_NVML_OWN(name) extern nvml::functions::name name;
#define CUSLICE_SPLIT_NVML_REFUSED(name)
#include "virtual_gpu/split/nvml_functions.def"
#undef CUSLICE_SPLIT_NVML_OWN
#undef CUSLICE_SPLIT_NVML_REFUSED

}  // namespace cuslice::split_nvml
