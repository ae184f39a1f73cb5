// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "virtual_gpu/driver/cuda_api.h"
#include "virtual_gpu/driver/parameters.h"
#include "virtual_gpu/split/physical.h"

// The functions of this folder that take the driver's places: those whose split is `own` in the list.
namespace cuslice::split_driver {

#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) CUSLICE_DECLARE_##split(symbol)
#define CUSLICE_DECLARE_own(symbol) extern decltype(::symbol) symbol;
#define CUSLICE_DECLARE_none(symbol)
#define CUSLICE_DECLARE_context(symbol)
#define CUSLICE_DECLARE_device_0(symbol)
#define CUSLICE_DECLARE_device_1(symbol)
#define CUSLICE_DECLARE_device_2(symbol)
#define CUSLICE_DECLARE_device_3(symbol)
#define CUSLICE_DECLARE_refused(symbol)
#include "virtual_gpu/driver/functions.def"

}  // namespace cuslice::split_driver

// In namespace cuslice::split_driver: CUSLICE_SPLIT(cuMemPoolDestroy, pool) { ... }. The parameters' types are those of
// cuda.h.
#define CUSLICE_SPLIT(symbol, ...) CUresult symbol(CUSLICE_PARAMETERS(symbol, __VA_ARGS__))
// One of several forms: `function` is given the driver's own function and the arguments.
#define CUSLICE_SPLIT_FORM(symbol, function, ...) \
    CUSLICE_SPLIT(symbol, __VA_ARGS__) { return function(CUSLICE_PHYSICAL(symbol), __VA_ARGS__); }
