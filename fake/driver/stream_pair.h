#pragma once
// A function that takes a stream has two exported forms, which differ in what a null stream means.

#include "fake/driver/api_prologue.h"
#include "fake/driver/stream.h"

/// Defines `name` and `name_ptsz` with the parameter list `parameters` (in brackets); both call `function` with the
/// arguments that follow and, last, which default stream is meant.
#define CUSLICE_STREAM_PAIR(name, function, parameters, ...)                     \
    CUresult CUDAAPI name parameters {                                           \
        CUSLICE_ENTER(name)                                                      \
        return function(__VA_ARGS__, ::cuslice::fake::DefaultStream::Legacy);    \
    }                                                                            \
    CUresult CUDAAPI name##_ptsz parameters {                                    \
        CUSLICE_ENTER(name##_ptsz)                                               \
        return function(__VA_ARGS__, ::cuslice::fake::DefaultStream::PerThread); \
    }
