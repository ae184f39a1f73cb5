// SPDX-License-Identifier: Apache-2.0
#pragma once
// Families of functions that differ in what a null stream means, in their arguments' widths, or in a stream at the end.

#include <string_view>

#include "fake/driver/api_prologue.h"
#include "fake/driver/stream.h"

namespace cuslice::fake {

/// Default stream that a null handle means to a function, by the function's name.
constexpr DefaultStream default_stream_of(std::string_view function) {
    return function.ends_with("_ptds") || function.ends_with("_ptsz") ? DefaultStream::PerThread
                                                                      : DefaultStream::Legacy;
}

}  // namespace cuslice::fake

/// Defines `name`, which calls `function` with its arguments and, last, which default stream is meant.
#define CUSLICE_STREAM_FORM(name, function, ...) \
    CUSLICE_ENTRY(name, __VA_ARGS__) { return function(__VA_ARGS__, ::cuslice::fake::default_stream_of(#name)); }
/// Both forms of a function that takes a stream.
#define CUSLICE_STREAM_PAIR(name, function, ...)     \
    CUSLICE_STREAM_FORM(name, function, __VA_ARGS__) \
    CUSLICE_STREAM_FORM(name##_ptsz, function, __VA_ARGS__)
/// The oldest form of a function, the one whose sizes have 64 bits, and that one's form for the per-thread default
/// stream: _ptsz where the function takes a stream, else _ptds.
#define CUSLICE_STREAM_FORMS(name, suffix, function, ...) \
    CUSLICE_STREAM_FORM(name, function, __VA_ARGS__)      \
    CUSLICE_STREAM_FORM(name##_v2, function, __VA_ARGS__) \
    CUSLICE_STREAM_FORM(name##_v2##suffix, function, __VA_ARGS__)
