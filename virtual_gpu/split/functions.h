#pragma once
#include "virtual_gpu/driver/cuda_api.h"

// The functions of this folder that take the place of the driver's (functions.def), each declared with the type that
// cuda.h gives it.
namespace cuslice::split_driver {

#define CUSLICE_SPLIT_OWN(symbol) extern decltype(::symbol) symbol;
#define CUSLICE_SPLIT_DEVICE(symbol, place)
#define CUSLICE_SPLIT_CONTEXT(symbol)
#define CUSLICE_SPLIT_REFUSED(symbol)
#include "virtual_gpu/split/functions.def"
#undef CUSLICE_SPLIT_OWN
#undef CUSLICE_SPLIT_DEVICE
#undef CUSLICE_SPLIT_CONTEXT
#undef CUSLICE_SPLIT_REFUSED

}  // namespace cuslice::split_driver
